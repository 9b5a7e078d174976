// SPDX-License-Identifier: Apache-2.0
#include "coordinator/upkeep/extra_copies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "unit/coordinator/repairs/hosted_fixture.h"

namespace ecpipe::extra_copies_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kSha(64, 'a');
const std::string kOther(64, 'b');

// The files of one node, and what reading blocks shows.
class FakeFiles : public BlockFileGateway {
 public:
  absl::StatusOr<Files> ListBlockFiles(const HelperAddress& helper,
                                       const std::string& after) override {
    EXPECT_EQ(helper.node, "spare");
    if (!error.ok()) return error;
    Files listed;
    for (const BlockFile& file : files) {
      if (file.block_id <= after) continue;
      listed.more = listed.files.size() == most;
      if (listed.more) break;
      listed.files.push_back(file);
    }
    return listed;
  }

  absl::StatusOr<std::vector<absl::Status>> RemoveBlockFiles(
      const HelperAddress&, const std::vector<BlockFile>& asked) override {
    if (!error.ok()) return error;
    std::vector<absl::Status> answers;
    for (const BlockFile& file : asked) {
      if (answers.size() == most) break;
      const auto gone =
          std::erase_if(files, [&](const BlockFile& each) { return IsSameFile(each, file); });
      answers.push_back(gone > 0 ? absl::OkStatus() : absl::NotFoundError("another file by now"));
    }
    return answers;
  }

  absl::StatusOr<WholeBlock> CheckBlock(const HelperAddress& helper, const std::string& block_id,
                                        const std::stop_token&) override {
    EXPECT_EQ(helper.control_address, helper.node + ":1");
    if (on_read) on_read();
    const auto found = read.find({helper.node, block_id});
    if (found == read.end()) return WholeBlock{1000, kSha, false};
    return found->second;
  }

  // By node and block; others have kSha, and no checksums.
  std::map<std::pair<std::string, std::string>, absl::StatusOr<WholeBlock>> read;
  std::function<void()> on_read;
  std::vector<BlockFile> files;
  size_t most = 100;
  absl::Status error;
};

class ExtraCopiesTest : public HostedRepairs {
 protected:
  // What the cluster would remove of the files that "spare" has, and what not, with the reason.
  std::vector<ExtraCopy> List(const std::string& page = "") {
    const auto listed = copies_.List("spare", page);
    EXPECT_TRUE(listed.ok()) << listed.status();
    return listed.ok() ? listed->copies : std::vector<ExtraCopy>();
  }
  std::string WhyKept(const std::string& block_id) {
    for (const ExtraCopy& copy : List()) {
      if (copy.file.block_id == block_id) return copy.kept_because;
    }
    return "it is not extra";
  }
  std::vector<std::string> Remove() {
    std::vector<BlockFile> files;
    for (const ExtraCopy& copy : List()) files.push_back(copy.file);
    return Remove(files);
  }
  std::vector<std::string> Remove(const std::vector<BlockFile>& files) {
    return Remove(files, Compare(files));
  }
  ExtraCopies::Comparison Compare(const std::vector<BlockFile>& files) {
    const auto compared = copies_.Compare("spare", files, [] { return false; });
    EXPECT_TRUE(compared.ok()) << compared.status();
    return compared.ok() ? *compared : ExtraCopies::Comparison();
  }
  std::vector<std::string> Remove(const std::vector<BlockFile>& files,
                                  const ExtraCopies::Comparison& comparison) {
    const auto removed = copies_.Remove("spare", files, comparison);
    EXPECT_TRUE(removed.ok()) << removed.status();
    std::vector<std::string> reasons;
    undecided_ = 0;
    for (const ExtraCopy& copy : *removed) {
      reasons.push_back(copy.kept_because);
      undecided_ += copy.ask_again ? 1 : 0;
    }
    return reasons;
  }
  std::string& Sha256OfB0() { return catalog_.stripes["s1000"].blocks[0].sha256; }

  FakeFiles files_;
  int undecided_ = 0;  // of those that the latest Remove kept
  ExtraCopies copies_{&catalog_, &coordinator_, &helpers_, &files_, &clock_};
};

TEST_F(ExtraCopiesTest, ACopyOfABlockThatIsElsewhereGoes) {
  files_.files = {{"b0", 1000, "v1"}, {"b1", 1000, "v2"}};
  ASSERT_EQ(List().size(), 2u);
  EXPECT_EQ(List()[0].holder, "n0");
  EXPECT_THAT(Remove(), ElementsAre("", ""));
  EXPECT_THAT(files_.files, IsEmpty());
}

TEST_F(ExtraCopiesTest, WhatTheCatalogDoesNotHaveStays) {
  files_.files = {{"stranger", 1000, "v1"}};
  EXPECT_EQ(List()[0].holder, "");
  EXPECT_THAT(Remove(), ElementsAre(HasSubstr("catalog does not have it")));
  EXPECT_EQ(files_.files.size(), 1u);
}

TEST_F(ExtraCopiesTest, ABlockInItsPlaceIsNotExtra) {
  files_.files = {{"b0", 1000, "v1"}};
  catalog_.stripes["s1000"].blocks[0].node = "spare";
  EXPECT_THAT(List(), IsEmpty());
  EXPECT_THAT(Remove(files_.files), ElementsAre(HasSubstr("in its place")));
  EXPECT_EQ(files_.files.size(), 1u);
}

TEST_F(ExtraCopiesTest, TheOnlyCopyStays) {
  files_.files = {{"b0", 1000, "v1"}};
  helpers_.missing.emplace("b0", absl::NotFoundError("no root has b0"));
  EXPECT_THAT(WhyKept("b0"), HasSubstr("n0 does not have it"));
  helpers_.missing.clear();
  helpers_.missing.emplace("b0", uint64_t{999});
  EXPECT_THAT(WhyKept("b0"), HasSubstr("another length"));
  helpers_.missing.clear();
  helpers_.down.insert("n0");
  EXPECT_THAT(WhyKept("b0"), HasSubstr("does not say"));
  EXPECT_TRUE(List()[0].ask_again);
  helpers_.down.clear();
  coordinator_.corrupt().Add({.block_id = "b0",
                              .node = "n0",
                              .reason = "somebody says so",
                              .found_unix_ms = 1,
                              .suspect = true});
  EXPECT_THAT(WhyKept("b0"), HasSubstr("on n0 it is suspect"));
  EXPECT_FALSE(List()[0].ask_again);
  coordinator_.corrupt().Add(
      {.block_id = "b0", .node = "n0", .reason = "its checksum", .found_unix_ms = 1});
  EXPECT_THAT(WhyKept("b0"), HasSubstr("corrupt on n0"));
  EXPECT_THAT(Remove(files_.files), ElementsAre(HasSubstr("corrupt on n0")));
  EXPECT_EQ(files_.files.size(), 1u);
}

// The node with the file of an older generation, or a rotten one, came back, and then an old
// manifest was loaded.
TEST_F(ExtraCopiesTest, AnExtraCopyStaysWhereTheOneAtItsPlaceIsBad) {
  files_.files = {{"b0", 1000, "v1"}};
  Sha256OfB0() = kSha;
  const std::pair<std::string, std::string> at_its_place{"n0", "b0"};
  const std::vector<std::pair<absl::StatusOr<WholeBlock>, std::string>> bad = {
      {WholeBlock{1000, kOther, true}, "but the catalog " + kSha},
      {WholeBlock{999, kSha, true}, "instead of 1000"},
      {absl::DataLossError("chunk 7 is damaged"), "chunk 7"}};
  for (const auto& [read, why] : bad) {
    files_.read.insert_or_assign(at_its_place, read);
    EXPECT_EQ(WhyKept("b0"), "") << "nothing is read for a list";
    EXPECT_THAT(Remove(files_.files), ElementsAre(HasSubstr("on n0 it is suspect: ")));
    EXPECT_EQ(undecided_, 0);
    EXPECT_EQ(files_.files.size(), 1u);
    EXPECT_THAT(coordinator_.corrupt().Suspicion("b0", "n0"), HasSubstr(why));
    coordinator_.corrupt().Forget("b0");
  }
  files_.read.clear();
  EXPECT_THAT(Remove(), ElementsAre(""));
  EXPECT_THAT(files_.files, IsEmpty());
}

TEST_F(ExtraCopiesTest, WhatCannotBeReadAtItsPlaceStaysAndIsAskedForAgain) {
  files_.files = {{"b0", 1000, "v1"}};
  files_.read.emplace(std::pair("n0", "b0"), absl::ResourceExhaustedError("another block"));
  EXPECT_THAT(Remove(), ElementsAre(HasSubstr("n0 could not read it")));
  EXPECT_EQ(undecided_, 1);
  EXPECT_EQ(coordinator_.corrupt().All().size(), 0u);
  EXPECT_EQ(files_.files.size(), 1u);
}

TEST_F(ExtraCopiesTest, WithoutASha256BothCopiesAreRead) {
  const auto remove = [&](const absl::StatusOr<WholeBlock>& at_its_place,
                          const absl::StatusOr<WholeBlock>& own) {
    files_.files = {{"b0", 1000, "v1"}};
    files_.read.insert_or_assign({"n0", "b0"}, at_its_place);
    files_.read.insert_or_assign({"spare", "b0"}, own);
    return Remove()[0];
  };
  const WholeBlock plain{1000, kSha, false};
  const WholeBlock checked{1000, kSha, true};
  const WholeBlock other{1000, kOther, true};
  EXPECT_EQ(remove(plain, plain), "") << "one of two that are equal";
  EXPECT_THAT(remove(checked, other), HasSubstr("no SHA-256 to tell which is bad"));
  EXPECT_THAT(remove(plain, other), HasSubstr("no SHA-256 to tell which is bad"));
  const absl::Status rotten = absl::DataLossError("chunk 7 is damaged");
  EXPECT_EQ(remove(checked, rotten), "");
  EXPECT_THAT(remove(plain, rotten), HasSubstr("is known to be good"));
  EXPECT_EQ(undecided_, 0);
  EXPECT_THAT(remove(checked, absl::UnavailableError("hangs")), HasSubstr("cannot be compared"));
  EXPECT_EQ(undecided_, 1);
}

TEST_F(ExtraCopiesTest, ReadingHasItsTime) {
  catalog_.stripes["s1000"].blocks[1].node = "n0";
  Sha256OfB0() = kSha;
  files_.on_read = [&] { clock_.Advance(ExtraCopies::kCompareFor); };
  files_.files = {{"b0", 1000, "v1"}, {"b1", 1000, "v2"}};
  const std::vector<BlockFile> listed = files_.files;
  const ExtraCopies::Comparison comparison = Compare(listed);
  for (const std::string node : {"n0", "spare"}) {
    ASSERT_TRUE(coordinator_.nodes().Heartbeat(node, 1, {}).ok());
  }
  EXPECT_THAT(Remove(listed, comparison), ElementsAre("", HasSubstr("no time to read it")));
  EXPECT_EQ(undecided_, 1);
  EXPECT_EQ(files_.files.size(), 1u);
}

TEST_F(ExtraCopiesTest, ABlockThatHasMovedSinceItWasReadIsReadAgain) {
  files_.files = {{"b0", 1000, "v1"}};
  const ExtraCopies::Comparison comparison = Compare(files_.files);
  catalog_.stripes["s1000"].blocks[0].node = "n3";
  EXPECT_THAT(Remove(files_.files, comparison), ElementsAre(HasSubstr("no time to read it on n3")));
  EXPECT_EQ(undecided_, 1);
  EXPECT_EQ(files_.files.size(), 1u);
}

// Its host may have stored it, and the catalog may hear of that only now.
TEST_F(ExtraCopiesTest, ABlockThatIsBeingRepairedStays) {
  files_.files = {{"b0", 1000, "v1"}};
  const RepairId id = Begin("spare");
  EXPECT_EQ(WhyKept("b0"), "it is being repaired");
  EXPECT_THAT(Remove(files_.files), ElementsAre("it is being repaired"));
  coordinator_.ReportPart("spare", id, 0, absl::OkStatus());
  EXPECT_EQ(WhyKept("b0"), "it is not extra");
  EXPECT_EQ(files_.files.size(), 1u);
}

TEST_F(ExtraCopiesTest, AFileThatIsNewSinceItWasListedStays) {
  files_.files = {{"b0", 1000, "v1"}};
  const std::vector<BlockFile> listed = files_.files;
  files_.files[0].version = "v2";
  EXPECT_THAT(Remove(listed), ElementsAre("another file by now"));
  EXPECT_EQ(files_.files.size(), 1u);
}

TEST_F(ExtraCopiesTest, WhatTheHelperHasNoTimeForIsSaid) {
  files_.files = {{"b0", 1000, "v1"}, {"b1", 1000, "v2"}};
  const std::vector<BlockFile> listed = files_.files;
  files_.most = 1;
  EXPECT_THAT(Remove(listed), ElementsAre("", HasSubstr("no time")));
}

TEST_F(ExtraCopiesTest, PagesGoOn) {
  files_.files = {{"b0", 1000, "v1"}, {"b1", 1000, "v2"}, {"b2", 1000, "v3"}};
  files_.most = 2;
  const auto first = copies_.List("spare", "");
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first->next, "b1");
  const auto last = copies_.List("spare", first->next);
  ASSERT_TRUE(last.ok());
  EXPECT_EQ(last->copies.size(), 1u);
  EXPECT_EQ(last->next, "");
}

TEST_F(ExtraCopiesTest, NodesThatCannotBeCleaned) {
  EXPECT_TRUE(absl::IsNotFound(copies_.List("nobody", "").status()));
  NodeRecord of_hdfs = FakeNode("hdfs");
  of_hdfs.storage_id = "some-uuid";
  ASSERT_TRUE(coordinator_.Register(of_hdfs).ok());
  EXPECT_THAT(std::string(copies_.List("hdfs", "").status().message()),
              HasSubstr("belongs to a storage system"));
  files_.error = absl::UnimplementedError("");
  EXPECT_TRUE(absl::IsFailedPrecondition(copies_.List("spare", "").status()));
  clock_.Advance(std::chrono::hours(1));
  EXPECT_THAT(std::string(copies_.List("spare", "").status().message()), HasSubstr("dead"));
}

}  // namespace
}  // namespace ecpipe::extra_copies_test
