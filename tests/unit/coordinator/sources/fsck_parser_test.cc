// SPDX-License-Identifier: Apache-2.0
#include "coordinator/sources/fsck_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ecpipe::fsck_parser_test {
namespace {

using ::testing::HasSubstr;

const std::string kPool = "BP-1-127.0.0.1-17";
constexpr int64_t kGroup = INT64_MIN + 16;

const char kBegin[] =
    "FSCK started by hdfs (auth:SIMPLE) from /127.0.0.1 for path / at Sun Nov 22 02:00:00 UTC "
    "2026\n\n/ <dir>\n";
const char kFile[] =
    "/ec/a 13300001 bytes, erasure-coded: policy=RS-6-3-1024k, 1 block(s):  OK\n"
    "0. BP-1-127.0.0.1-17:blk_-9223372036854775792_1001 len=13300001 Live_repl=9\n\n";
const char kEnd[] =
    "\nStatus: HEALTHY\n Number of data-nodes:\t10\n\nErasure Coded Block Groups:\n Total size:\t1 "
    "B\nFSCK ended at Sun Nov 22 02:00:01 UTC 2026 in 12 milliseconds\n\n\n"
    "The filesystem under path '/' is HEALTHY";

absl::StatusOr<GroupTable> Parse(const std::string& text, size_t step = SIZE_MAX) {
  FsckParser parser;
  for (size_t at = 0; at < text.size(); at += std::min(step, text.size())) {
    const absl::Status added = parser.Add(std::string_view(text).substr(at, step));
    if (!added.ok()) return added;
  }
  return parser.Finish();
}

TEST(FsckParser, ReadsGroupsInPiecesOfAnySize) {
  for (const size_t step : {size_t{1}, size_t{7}, size_t{64}, SIZE_MAX}) {
    const auto table = Parse(std::string(kBegin) + kFile + kEnd, step);
    ASSERT_TRUE(table.ok()) << table.status();
    ASSERT_EQ(table->size(), 1u);
    const BlockGroup* const group = table->Find(kPool, kGroup);
    ASSERT_NE(group, nullptr);
    const auto facts = table->GroupOf(*group);
    ASSERT_TRUE(facts.ok()) << facts.status();
    EXPECT_EQ(facts->stamp, 1001u);
    EXPECT_EQ(facts->bytes, 13300001u);
    EXPECT_EQ(facts->codec, "rs");
    EXPECT_EQ(facts->data, 6);
    EXPECT_EQ(facts->parity, 3);
    EXPECT_EQ(facts->cell_bytes, 1048576u);
    EXPECT_EQ(facts->BlockBytes(0), 2814241u);
    EXPECT_EQ(table->Find(kPool, kGroup + 16), nullptr);
    EXPECT_EQ(table->Find("BP-2", kGroup), nullptr);
  }
}

TEST(FsckParser, ReadsWhatStandsAroundDamage) {
  const std::string text =
      "/ec/b 100 bytes, erasure-coded: policy=XOR-2-1-1024k, 2 block(s):  Under replicated "
      "BP-1-127.0.0.1-17:blk_-9223372036854775792_1001. Target Replicas is 3 but found 2 live "
      "replica(s), 0 decommissioned replica(s), 0 decommissioning replica(s).\n"
      "\n/ec/b: CORRUPT blockpool BP-1-127.0.0.1-17 block blk_-9223372036854775776\n"
      "\n/ec/b: CORRUPT blockpool BP-1-127.0.0.1-17 block blk_-9223372036854775760\n"
      " MISSING 1 blocks of total size 40 B\n"
      "0. BP-1-127.0.0.1-17:blk_-9223372036854775792_1001 len=60 Live_repl=2\n"
      "1. BP-1-127.0.0.1-17:blk_-9223372036854775776_1002 len=40 MISSING!\n\n";
  std::string end = kEnd;
  end.replace(end.rfind("HEALTHY"), 7, "CORRUPT");
  const auto table = Parse(kBegin + text + end + "\n");
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_EQ(table->size(), 2u);
  EXPECT_EQ(table->Find(kPool, kGroup)->bytes, 60u);
  EXPECT_EQ(table->Find(kPool, kGroup + 16)->stamp, 1002u);
}

TEST(FsckParser, OfAnOpenFileWhatIsWritten) {
  const std::string open =
      "/c 60 bytes, erasure-coded: policy=RS-6-3-1024k, 3 block(s), OPENFORWRITE:  OK\n"
      "0. BP-1-127.0.0.1-17:blk_-9223372036854775776_1003 len=30 Live_repl=9\n"
      "1. BP-1-127.0.0.1-17:blk_-9223372036854775760_1004 len=30 Live_repl=9\n"
      "\nUnder Construction Block:\n"
      "2. BP-1-127.0.0.1-17:blk_-9223372036854775744_1005 len=0 Expected_repl=9\n\n";
  const auto table = Parse(kBegin + open + kFile + kEnd);
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->size(), 3u);
  EXPECT_EQ(table->Find(kPool, kGroup + 32)->bytes, 30u);
  EXPECT_EQ(table->Find(kPool, kGroup + 48), nullptr);
}

TEST(FsckParser, LeavesOutWhatIsNoWholeGroup) {
  const std::string replicated =
      "/b 5 bytes, replicated: replication=3, 1 block(s):  OK\n"
      "0. BP-1-127.0.0.1-17:blk_1073741825_1002 len=5 Live_repl=3\n\n";
  const std::string strange =
      "/c 5 bytes, erasure-coded: policy=RS-6-3-1024k, 1 block(s), HALFOPEN:  OK\n"
      "0. BP-1-127.0.0.1-17:blk_-9223372036854775760_1003 len=5 Live_repl=9\n\n";
  // Some releases print the blocks of open files without a line for the file.
  const std::string without_file =
      " OK\n0. BP-1-127.0.0.1-17:blk_-9223372036854775744_1004 len=5 Live_repl=9\n\n";
  const std::string odd =
      "/d 5 bytes, erasure-coded: policy=RS-6-3-1024k, 3 block(s):  OK\n"
      "0. BP-1-127.0.0.1-17:blk_-9223372036854775743_1004 len=5 Live_repl=9\n"
      "1. BP-1-127.0.0.1-17:blk_-9223372036854775728_-1 len=5 Live_repl=9\n"
      "1. BP 1:blk_-9223372036854775728_1 len=5 Live_repl=9\n"
      "1. BP-1:blk_-99999999999999999999_1 len=5 Live_repl=9\n";
  const auto table = Parse(kBegin + replicated + kFile + without_file + strange + odd + kEnd);
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_EQ(table->size(), 1u);
  EXPECT_EQ(table->groups()[0].id, kGroup);
}

TEST(FsckParser, AFilesNameIsNoBlock) {
  const std::string name =
      "/x\n0. BP-1-127.0.0.1-17 blk_-9223372036854775776_9 len=1\n"
      "The filesystem under path '/' is HEALTHY 7 bytes, replicated: replication=3, 0 block(s):  "
      "OK\n\n";
  const auto table = Parse(kBegin + name + kFile + kEnd);
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->size(), 1u);
}

TEST(FsckParser, RefusesWhatWasCutOff) {
  const std::string whole = std::string(kBegin) + kFile + kEnd;
  ASSERT_TRUE(Parse(whole).ok());
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    const auto table = Parse(whole.substr(0, bytes));
    EXPECT_TRUE(absl::IsUnavailable(table.status())) << bytes << ": " << table.status();
  }
  const auto failed =
      Parse(std::string(kBegin) + "FSCK ended at Sun\nDisk\n\n\n" + "Fsck on path '/' FAILED");
  EXPECT_THAT(std::string(failed.status().message()), HasSubstr("Fsck on path '/' FAILED"));
  EXPECT_TRUE(
      absl::IsNotFound(Parse(std::string(kBegin) + "\n\nPath '/x' does not exist").status()));
}

TEST(FsckParser, HasLimits) {
  FsckParser parser;
  const std::string line(FsckParser::kMaxLineBytes, 'x');
  EXPECT_TRUE(parser.Add(line).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(parser.Add("x")));
}

TEST(GroupTable, TheNewerGenerationCounts) {
  GroupTable table;
  for (const uint64_t stamp : {uint64_t{5}, uint64_t{7}, uint64_t{6}}) {
    ASSERT_TRUE(table.Add(kPool, kGroup, stamp, 10, "RS-6-3-1024k").ok());
  }
  ASSERT_TRUE(table.Add("BP-2", kGroup, 1, 10, "RS-3-2-1024k").ok());
  table.Seal();
  EXPECT_EQ(table.size(), 2u);
  EXPECT_EQ(table.Find(kPool, kGroup)->stamp, 7u);
  EXPECT_EQ(table.PoolOf(*table.Find("BP-2", kGroup)), "BP-2");
}

TEST(GroupTable, SaysWhyAGroupCannotBeRepaired) {
  GroupTable table;
  ASSERT_TRUE(table.Add(kPool, kGroup, 5, 10, "CLAY-6-3-1024k").ok());
  ASSERT_TRUE(table.Add(kPool, kGroup + 16, 5, 0, "RS-6-3-1024k").ok());
  ASSERT_TRUE(table.Add(kPool, kGroup + 32, 5, 10, "RS-6-3").ok());
  table.Seal();
  for (const BlockGroup& group : table.groups()) {
    const auto facts = table.GroupOf(group);
    EXPECT_TRUE(absl::IsFailedPrecondition(facts.status())) << facts.status();
    EXPECT_THAT(std::string(facts.status().message()), HasSubstr(std::to_string(group.id)));
  }
}

TEST(GroupTable, HasLimitedNames) {
  GroupTable table;
  absl::Status added;
  for (size_t i = 0; i <= GroupTable::kMaxPolicies && added.ok(); ++i) {
    added = table.Add(kPool, kGroup, 1, 1, "P" + std::to_string(i));
  }
  EXPECT_TRUE(absl::IsResourceExhausted(added)) << added;
}

}  // namespace
}  // namespace ecpipe::fsck_parser_test
