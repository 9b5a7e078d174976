// SPDX-License-Identifier: Apache-2.0
#include "requestor/upkeep/cluster_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ecpipe::cluster_tables_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

NodeStatus Node(const std::string& id, uint64_t blocks) {
  NodeStatus node;
  node.node = id;
  node.state = "live";
  node.answers = true;
  node.block_count = blocks;
  return node;
}

RepairRecord Repair(RepairId id, RepairState state, int64_t started, int64_t ended) {
  RepairRecord repair;
  repair.repair_id = id;
  repair.state = state;
  repair.started_unix_ms = started;
  repair.ended_unix_ms = ended;
  repair.block_ids = {"b" + std::to_string(id)};
  repair.scheme = "rp";
  repair.requestor = "somebody";
  return repair;
}

std::vector<std::string> Ids(const std::vector<NodeStatus>& nodes) {
  std::vector<std::string> ids;
  for (const NodeStatus& node : nodes) ids.push_back(node.node);
  return ids;
}

std::vector<RepairId> Ids(const std::vector<RepairRecord>& repairs) {
  std::vector<RepairId> ids;
  for (const RepairRecord& repair : repairs) ids.push_back(repair.repair_id);
  return ids;
}

TEST(ClusterTables, NumbersComeFromTheLargestOnAndTextsFromA) {
  std::vector<NodeStatus> nodes = {Node("c", 7), Node("a", 7), Node("b", 900)};
  nodes[0].state = "dead";
  SortNodes({}, {}, &nodes);
  EXPECT_THAT(Ids(nodes), ElementsAre("a", "b", "c"));
  SortNodes({"blocks"}, {}, &nodes);
  EXPECT_THAT(Ids(nodes), ElementsAre("b", "a", "c"));
  SortNodes({"blocks", /*reverse=*/true}, {}, &nodes);
  EXPECT_THAT(Ids(nodes), ElementsAre("c", "a", "b"));
  SortNodes({"state"}, {}, &nodes);
  EXPECT_THAT(Ids(nodes), ElementsAre("c", "a", "b"));
  SortNodes({"sends"}, {{"b", {5, 0}}, {"c", {7, 0}}}, &nodes);
  EXPECT_THAT(Ids(nodes), ElementsAre("c", "b", "a"));
}

TEST(ClusterTables, EveryKeyIsAColumn) {
  const std::string nodes = NodesTable({}, {{"a", {}}}).Text({});
  for (const std::string& key : NodeSortKeys()) EXPECT_THAT(nodes, HasSubstr(key));
  const std::string repairs = RepairsTable({}, 0).Text({});
  for (const std::string& key : RepairSortKeys()) EXPECT_THAT(repairs, HasSubstr(key));
}

TEST(ClusterTables, AHeartbeatThatNobodyKnowsIsNoHeartbeat) {
  NodeStatus node = Node("a", 0);
  node.seconds_since_heartbeat = 12;
  EXPECT_THAT(NodesTable({node}, {}).Text({}), HasSubstr(" 12.0 s ago"));
  EXPECT_THAT(NodesTable({node}, {}).Text({}), Not(HasSubstr("start")));
  node.heartbeat_unknown = true;
  EXPECT_THAT(NodesTable({node}, {}).Text({}), HasSubstr("none for 12.0 s, since the start"));
}

TEST(ClusterTables, RunningRepairsComeFirst) {
  std::vector<RepairRecord> repairs = {
      Repair(1, RepairState::kDone, 1000, 2000), Repair(2, RepairState::kRunning, 3000, 0),
      Repair(3, RepairState::kFailed, 9000, 9500), Repair(4, RepairState::kRunning, 5000, 0)};
  SortRepairs({}, 10'000, &repairs);
  EXPECT_THAT(Ids(repairs), ElementsAre(4, 2, 3, 1));
  SortRepairs({"seconds"}, 10'000, &repairs);
  EXPECT_THAT(Ids(repairs), ElementsAre(2, 4, 1, 3));
}

TEST(ClusterTables, ARunningRepairShowsHowLongItHasRun) {
  const RepairRecord running = Repair(2, RepairState::kRunning, 3000, 0);
  EXPECT_THAT(RepairsTable({running}, 10'000).Text({}), HasSubstr("7.000"));
  EXPECT_THAT(RepairsTable({running}, 1'000).Text({}), HasSubstr("0.000"))
      << "the coordinator's clock is ahead";
}

TEST(ClusterTables, LinkUseIsWhatCountersGrewBy) {
  std::vector<NodeStatus> before = {Node("a", 0), Node("b", 0), Node("c", 0)};
  before[0].counters.data_bytes_sent = 1000;
  before[1].counters.data_bytes_sent = 1000;
  std::vector<NodeStatus> after = before;
  after[0].counters.data_bytes_sent = 3000;
  after[0].counters.data_bytes_received = 500;
  after[1].counters.data_bytes_sent = 10;  // it has started again
  after[2].answers = false;
  const LinkUses uses = LinkUsesBetween(before, after, 2);
  ASSERT_THAT(uses, SizeIs(2));
  EXPECT_EQ(uses.at("a").sends, 1000);
  EXPECT_EQ(uses.at("a").receives, 250);
  EXPECT_EQ(uses.at("b").sends, 0);
  EXPECT_THAT(LinkUsesBetween(before, after, 0), IsEmpty());
}

TEST(ClusterTables, WhatIsNotKnownIsADash) {
  NodeStatus silent = Node("a", 1);
  silent.answers = false;
  const std::string text = NodesTable({silent}, {{"b", {}}}).Text({});
  EXPECT_THAT(text, HasSubstr("silent"));
  EXPECT_THAT(text, HasSubstr("-"));
  EXPECT_THAT(text, Not(HasSubstr("/s")));
}

}  // namespace
}  // namespace ecpipe::cluster_tables_test
