// SPDX-License-Identifier: Apache-2.0
#include "coordinator/sources/reported_blocks.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace ecpipe::reported_blocks_test {
namespace {

using Outcome = ReportedBlocks::Outcome;

BlockReport ReportOf(uint64_t sequence, uint64_t after,
                     const std::map<std::string, BlockChanges>& pools) {
  return {"n1", 77, sequence, after, pools};
}

class ReportedBlocksTest : public testing::Test {
 protected:
  Outcome Take(const BlockReport& report) {
    const auto outcome = reported_.Record(report, now_);
    EXPECT_TRUE(outcome.ok()) << outcome.status();
    return outcome.value_or(Outcome::kSendAll);
  }
  std::vector<int64_t> Ids(const std::string& pool) {
    std::vector<int64_t> ids;
    const auto node = reported_.Of("n1");
    if (node == nullptr || !node->pools.contains(pool)) return ids;
    for (const InternalBlock& block : node->pools.at(pool)) ids.push_back(block.id);
    return ids;
  }

  TimePoint now_ = TimePoint() + std::chrono::seconds(5);
  ReportedBlocks reported_;
};

TEST_F(ReportedBlocksTest, KeepsAWholeReportAndWhatChanges) {
  EXPECT_EQ(reported_.Of("n1"), nullptr);
  EXPECT_EQ(
      Take(ReportOf(1, 0, {{"p", {{{{-3, 1, 10}, 0}, {{-9, 1, 20}, 0}, {{-5, 1, 30}, 0}}, {}}}})),
      Outcome::kTaken);
  EXPECT_EQ(Ids("p"), (std::vector<int64_t>{-9, -5, -3}));
  EXPECT_EQ(reported_.Of("n1")->block_bytes, 60u);
  EXPECT_EQ(Take(ReportOf(2, 1,
                          {{"p", {{{{-5, 2, 31}, 0}, {{-4, 1, 1}, 0}}, {-9, -7}}},
                           {"q", {{{{-1, 1, 1}, 0}}, {}}}})),
            Outcome::kTaken);
  EXPECT_EQ(Ids("p"), (std::vector<int64_t>{-5, -4, -3}));
  const auto node = reported_.Of("n1");
  EXPECT_EQ(node->block_count, 4u);
  EXPECT_EQ(node->block_bytes, 43u);
  EXPECT_EQ(FindBlockIn(*node, "p", -5)->stamp, 2u) << "of another generation now";
  EXPECT_EQ(FindBlockIn(*node, "p", -9), nullptr);
  EXPECT_EQ(FindBlockIn(*node, "r", -5), nullptr);
  EXPECT_EQ(Take(ReportOf(3, 2, {{"q", {{}, {-1}}}})), Outcome::kTaken);
  EXPECT_TRUE(Ids("q").empty());
}

TEST_F(ReportedBlocksTest, WantsAllAgainWhenItMissesSomething) {
  EXPECT_EQ(Take(ReportOf(5, 4, {})), Outcome::kSendAll) << "of a node that is not known";
  EXPECT_EQ(Take(ReportOf(6, 0, {{"p", {{{{-3, 1, 10}, 0}}, {}}}})), Outcome::kTaken);
  EXPECT_EQ(Take(ReportOf(8, 7, {})), Outcome::kSendAll);
  BlockReport restarted = ReportOf(7, 6, {});
  restarted.incarnation = 78;
  EXPECT_EQ(Take(restarted), Outcome::kSendAll);
  EXPECT_EQ(Ids("p").size(), 1u) << "what was known stays";
  restarted.after = 0;
  EXPECT_EQ(Take(restarted), Outcome::kTaken);
  EXPECT_TRUE(Ids("p").empty()) << "a whole report replaces all";
}

TEST_F(ReportedBlocksTest, AnUnchangedReportIsNewsOfItsTime) {
  Take(ReportOf(1, 0, {{"p", {{{{-3, 1, 10}, 0}}, {}}}}));
  now_ += std::chrono::seconds(30);
  Take(ReportOf(2, 1, {}));
  EXPECT_EQ(reported_.Of("n1")->reported, now_);
  EXPECT_EQ(Ids("p").size(), 1u);
}

// 1,000 nodes report every few seconds.
TEST_F(ReportedBlocksTest, AReportCopiesOnlyWhatIsNearItsChanges) {
  constexpr int64_t kBlocks = 100'000;
  BlockChanges all;
  for (int64_t i = 1; i <= kBlocks; ++i) all.added.push_back({{-2 * i, 1, 10}, 0});
  Take(ReportOf(1, 0, {{"p", all}}));
  const auto before = reported_.Of("n1");
  ASSERT_EQ(before->block_count, uint64_t{kBlocks});
  Take(ReportOf(2, 1, {{"p", {{{{-101, 1, 7}, 0}, {{-100'000, 2, 11}, 0}}, {-150'000, -1}}}}));
  const auto after = reported_.Of("n1");
  size_t copied = 0;
  for (const InternalBlock& block : after->pools.at("p")) {
    if (&block != FindBlockIn(*before, "p", block.id)) ++copied;
  }
  EXPECT_GE(copied, 2u);
  EXPECT_LE(copied, 4 * BlockList::kMostOfAPiece);
  EXPECT_EQ(after->block_count, uint64_t{kBlocks});
  EXPECT_EQ(after->block_bytes, before->block_bytes - 10 + 1 + 7);
  EXPECT_EQ(FindBlockIn(*after, "p", -150'000), nullptr);
  EXPECT_EQ(FindBlockIn(*before, "p", -100'000)->stamp, 1u) << "who reads the old one goes on";
}

// Against a set, through growth and decline: pieces are split, and what is left of them joined.
TEST(BlockList, HoldsWhatASetHolds) {
  std::mt19937_64 random(20261129);
  std::map<int64_t, InternalBlock> expected;
  BlockList list;
  for (int round = 0; round < 200; ++round) {
    BlockChanges changes;
    const bool grows = round < 100;
    for (uint64_t i = 0; i < (grows ? 200u : 20u); ++i) {
      const auto id = static_cast<int64_t>(random() % 20'000) - 10'000;
      changes.added.push_back({{id, random() % 4, random() % 100}, 0});
    }
    const int64_t from = static_cast<int64_t>(random() % 20'000) - 10'000;
    for (int64_t id = from; id < from + (grows ? 10 : 1000); ++id) changes.removed.push_back(id);
    for (const int64_t id : changes.removed) expected.erase(id);
    for (const auto& added : changes.added) expected[added.block.id] = added.block;
    list.Change(changes);
    std::vector<InternalBlock> in_order;
    for (const auto& [id, block] : expected) in_order.push_back(block);
    ASSERT_EQ(std::vector<InternalBlock>(list.begin(), list.end()), in_order) << round;
    ASSERT_EQ(list, BlockList(in_order));
    ASSERT_EQ(list.size(), in_order.size());
    ASSERT_EQ(list.bytes(), BlockList(in_order).bytes());
    const auto id = static_cast<int64_t>(random() % 20'000) - 10'000;
    const auto at = expected.lower_bound(id);
    const auto found = list.LowerBound(id);
    ASSERT_EQ(found == list.end(), at == expected.end());
    if (at != expected.end()) ASSERT_EQ(*found, at->second);
  }
}

TEST_F(ReportedBlocksTest, ABlockThatIsNamedTwiceIsKeptOnce) {
  Take(ReportOf(1, 0, {{"p", {{{{-3, 1, 10}, 0}, {{-3, 2, 20}, 0}}, {-3}}}}));
  EXPECT_EQ(Ids("p"), std::vector<int64_t>{-3});
  EXPECT_EQ(FindBlockIn(*reported_.Of("n1"), "p", -3)->stamp, 2u);
  EXPECT_EQ(reported_.Of("n1")->block_count, 1u);
}

TEST_F(ReportedBlocksTest, ANodeHasLimitedPools) {
  std::map<std::string, BlockChanges> pools;
  for (size_t i = 0; i <= BlockReport::kMaxPools; ++i) {
    pools["p" + std::to_string(i)] = {{{{-1, 1, 1}, 0}}, {}};
  }
  const auto outcome = reported_.Record(ReportOf(1, 0, pools), now_);
  EXPECT_TRUE(absl::IsResourceExhausted(outcome.status())) << outcome.status();
  EXPECT_EQ(reported_.Of("n1"), nullptr) << "nothing of it was taken";
}

BlockChanges Blocks(int count) {
  BlockChanges changes;
  for (int i = 1; i <= count; ++i) changes.added.push_back({{-i, 1, 10}, 0});
  return changes;
}

TEST(ReportedBlocks, ANodeHasLimitedBlocks) {
  ReportedBlocks reported({.blocks_of_a_node = 3});
  const TimePoint now;
  ASSERT_TRUE(reported.Record({"n1", 77, 1, 0, {{"p", Blocks(3)}}}, now).ok());
  const auto more = reported.Record({"n1", 77, 2, 1, {{"q", Blocks(1)}}}, now);
  EXPECT_TRUE(absl::IsResourceExhausted(more.status())) << more.status();
  EXPECT_EQ(reported.Of("n1")->block_count, 3u) << "what was known stays";
  EXPECT_EQ(reported.Of("n1")->sequence, 1u) << "and the report counts as not made";
  const auto other = reported.Record({"n2", 5, 1, 0, {{"p", Blocks(4)}}}, now);
  EXPECT_TRUE(absl::IsResourceExhausted(other.status())) << other.status();
  EXPECT_EQ(reported.Of("n2"), nullptr);
}

TEST(ReportedBlocks, TheLimitsFitTheUnit) {
  constexpr uint64_t kMemoryMax = uint64_t{4} << 30;  // deploy/systemd/ecpipe-coordinator.service
  constexpr uint64_t kUnderWay = 112 * BlockReport::kMaxBlocks;
  EXPECT_LE(sizeof(InternalBlock) * ReportedBlocks::Limits().blocks + kUnderWay, kMemoryMax);
}

TEST(ReportedBlocks, AllNodesTogetherHaveLimitedBlocks) {
  ReportedBlocks reported({.blocks = 5});
  const TimePoint now;
  ASSERT_TRUE(reported.Record({"n1", 77, 1, 0, {{"p", Blocks(3)}}}, now).ok());
  const auto more = reported.Record({"n2", 5, 1, 0, {{"p", Blocks(3)}}}, now);
  EXPECT_TRUE(absl::IsResourceExhausted(more.status())) << more.status();
  EXPECT_EQ(reported.All().size(), 1u);
  ASSERT_TRUE(reported.Record({"n2", 5, 2, 0, {{"p", Blocks(2)}}}, now).ok());
  // What a node no longer has makes room for others.
  ASSERT_TRUE(reported.Record({"n1", 77, 2, 0, {{"p", Blocks(1)}}}, now).ok());
  EXPECT_TRUE(reported.Record({"n2", 5, 3, 0, {{"p", Blocks(4)}}}, now).ok());
}

}  // namespace
}  // namespace ecpipe::reported_blocks_test
