// SPDX-License-Identifier: Apache-2.0
#include "coordinator/sources/group_survey.h"

#include <gtest/gtest.h>

namespace ecpipe::group_survey_test {
namespace {

const std::string kPool = "BP-1-127.0.0.1-17";
constexpr uint64_t kStamp = 1001;
constexpr uint64_t kCell = 1024 * 1024;

int64_t Group(int number) { return INT64_MIN + 16 * number; }

using Shared = std::shared_ptr<const NodeBlocks>;

// Each block is of 100 bytes, for all that the survey cares.
Shared Node(const std::vector<InternalBlock>& blocks) {
  NodeBlocks node;
  node.pools[kPool] = BlockList(blocks);
  return std::make_shared<const NodeBlocks>(std::move(node));
}

InternalBlock BlockOf(int group, int index, uint64_t stamp = kStamp) {
  return {Group(group) + index, stamp, 100};
}

// RS-3-2 groups of two rows, with these numbers.
GroupTable TableOf(const std::vector<int>& groups) {
  GroupTable table;
  for (const int number : groups) {
    EXPECT_TRUE(table.Add(kPool, Group(number), kStamp, 6 * kCell, "RS-3-2-1024k").ok());
  }
  table.Seal();
  return table;
}

TEST(GroupSurvey, FindsBlocksOfTheGenerationOnly) {
  const std::vector<Shared> nodes = {Node({BlockOf(1, 0), BlockOf(2, 1), BlockOf(5, 4)}),
                                     Node({BlockOf(1, 4), BlockOf(2, 0, kStamp - 1)}), Node({})};
  const std::vector<GroupKey> groups = {
      {Group(0), kStamp}, {Group(1), kStamp}, {Group(2), kStamp}, {Group(7), kStamp}};
  EXPECT_EQ(BlocksAt(nodes, kPool, groups), (std::vector<uint16_t>{0, 0b10001, 0b10, 0}));
  EXPECT_EQ(BlocksAt(nodes, "BP-2", groups), std::vector<uint16_t>(4, 0));
}

TEST(GroupSurvey, CountsGroupsThatLackBlocks) {
  const GroupTable table = TableOf({1, 2, 3});
  std::vector<Shared> nodes;
  for (int index = 0; index < 5; ++index) {
    std::vector<InternalBlock> blocks = {BlockOf(1, index)};
    if (index > 0) blocks.push_back(BlockOf(2, index));
    if (index > 2) blocks.push_back(BlockOf(3, index));
    nodes.push_back(Node(blocks));
  }
  const GroupHealth health = HealthOf(table, nodes);
  EXPECT_EQ(health.degraded, 2u);
  EXPECT_EQ(health.lost, 1u);
}

TEST(GroupSurvey, BlocksThatAShortGroupDoesNotHaveAreNotMissing) {
  GroupTable table;
  ASSERT_TRUE(table.Add(kPool, Group(1), kStamp, 5, "RS-6-3-1024k").ok());
  table.Seal();
  const std::vector<Shared> nodes = {
      Node({BlockOf(1, 0), BlockOf(1, 6), BlockOf(1, 7), BlockOf(1, 8)})};
  EXPECT_EQ(HealthOf(table, nodes).degraded, 0u);
}

TEST(GroupSurvey, EachLostBlockIsRebuiltGoneOrOutstanding) {
  const GroupTable table = TableOf({1, 2, 3, 4});
  const Shared lost =
      Node({BlockOf(1, 0), BlockOf(2, 1), BlockOf(3, 2), BlockOf(4, 0, kStamp - 1), BlockOf(9, 0)});
  const std::vector<Shared> live = {
      Node({BlockOf(1, 0), BlockOf(2, 0), BlockOf(3, 0), BlockOf(4, 0, kStamp - 1)}),
      Node({BlockOf(2, 2), BlockOf(3, 1)}), Node({BlockOf(2, 3)}), Node({BlockOf(2, 4)})};
  const std::string running = kPool + ".blk_" + std::to_string(Group(2) + 1) + "_1001";
  const BlockLoss loss = LossOf(*lost, live, {&table, true}, {running, "another"});
  EXPECT_EQ(loss.lost, (BlockCount{5, 500}));
  EXPECT_EQ(loss.rebuilt, (BlockCount{1, 100}));
  EXPECT_EQ(loss.gone, (BlockCount{2, 200})) << "a stale one, and one of a group that is deleted";
  EXPECT_EQ(loss.outstanding, (BlockCount{2, 200}));
  EXPECT_EQ(loss.by_missing, (std::array<uint64_t, 3>{1, 0, 1}));
  EXPECT_EQ(loss.beyond_repair, 1u);
  EXPECT_EQ(loss.repairs_running, 1u);
  EXPECT_EQ(loss.of_unknown_groups, 0u);
}

TEST(GroupSurvey, WithoutAnAnswerNothingIsGone) {
  const Shared lost = Node({BlockOf(1, 0), BlockOf(2, 0)});
  const std::vector<Shared> live = {Node({BlockOf(1, 0)}), Node({BlockOf(2, 0, kStamp - 1)})};
  for (const bool have_table : {false, true}) {
    const GroupTable other = TableOf({7});
    const BlockLoss loss = LossOf(*lost, live, {have_table ? &other : nullptr, false}, {});
    EXPECT_EQ(loss.rebuilt.blocks, 1u);
    EXPECT_EQ(loss.gone.blocks, 0u);
    EXPECT_EQ(loss.outstanding.blocks, 1u) << "a stale copy on a node that is back is none";
    EXPECT_EQ(loss.of_unknown_groups, 1u);
  }
}

}  // namespace
}  // namespace ecpipe::group_survey_test
