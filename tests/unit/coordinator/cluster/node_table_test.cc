// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cluster/node_table.h"

#include <gtest/gtest.h>

namespace ecpipe::node_table_test {
namespace {

using std::chrono::seconds;

constexpr Duration kDeadAfter = seconds(10);

TimePoint At(int64_t second) { return TimePoint(seconds(second)); }

NodeRecord Node(const std::string& id, uint64_t incarnation = 1) {
  NodeRecord node;
  node.node_id = id;
  node.rack = "rack-1";
  // A host of its own, whatever the id.
  const std::string host = "host-" + std::to_string(std::hash<std::string>()(id));
  node.control_address = host + ":7001";
  node.data_address = host + ":7002";
  node.incarnation = incarnation;
  return node;
}

TEST(NodeTableTest, RegisterThenFind) {
  NodeTable table(kDeadAfter);
  EXPECT_EQ(table.Find("a"), nullptr);
  EXPECT_EQ(table.Register(Node("a"), At(5)).value(), RegisterOutcome::kAdded);
  NodeRecord expected = Node("a");
  expected.last_heartbeat = At(5);
  ASSERT_NE(table.Find("a"), nullptr);
  EXPECT_EQ(*table.Find("a"), expected);
}

TEST(NodeTableTest, AllIsInOrderOfIds) {
  NodeTable table(kDeadAfter);
  for (const char* id : {"b", "c", "a"}) ASSERT_TRUE(table.Register(Node(id), At(0)).ok());
  std::string ids;
  for (const NodeRecord& node : table.All()) ids += node.node_id;
  EXPECT_EQ(ids, "abc");
}

TEST(NodeTableTest, RegisteringAgain) {
  NodeTable table(kDeadAfter);
  ASSERT_TRUE(table.Register(Node("a", 1), At(0)).ok());
  EXPECT_EQ(table.Register(Node("a", 1), At(1)).value(), RegisterOutcome::kRefreshed);
  EXPECT_EQ(table.Register(Node("a", 9), At(2)).value(), RegisterOutcome::kReplacedLive);
  // Incarnations are not ordered: a smaller one is just another one.
  EXPECT_EQ(table.Register(Node("a", 3), At(13)).value(), RegisterOutcome::kReplaced);
  EXPECT_EQ(table.Find("a")->incarnation, 3u);
  EXPECT_EQ(table.size(), 1u);
}

TEST(NodeTableTest, ALiveHelperElsewhereKeepsItsId) {
  NodeTable table(kDeadAfter);
  const NodeRecord here = Node("a", 1);
  NodeRecord elsewhere = Node("a", 2);
  elsewhere.control_address = "other:7001";
  elsewhere.data_address = "other:7002";
  ASSERT_TRUE(table.Register(here, At(0)).ok());
  const absl::Status refused = table.Register(elsewhere, At(9)).status();
  EXPECT_TRUE(absl::IsAlreadyExists(refused));
  EXPECT_NE(refused.message().find("has this node_id"), std::string::npos) << refused;
  ASSERT_TRUE(table.Heartbeat("a", 1, {}, At(9)).ok());
  // It has moved.
  EXPECT_EQ(table.Register(elsewhere, At(20)).value(), RegisterOutcome::kReplaced);
  ASSERT_TRUE(table.Heartbeat("a", 2, {.draining = true}, At(21)).ok());
  EXPECT_EQ(table.Register(here, At(21)).value(), RegisterOutcome::kReplacedLive)
      << "one that is about to end gives the id up";
}

TEST(NodeTableTest, TwoOnOneHostDoNotTakeTurnsWithAnId) {
  NodeTable table(kDeadAfter);
  const NodeRecord first = Node("a", 1);
  NodeRecord second = Node("a", 2);
  const std::string host = first.data_address.substr(0, first.data_address.find(':'));
  second.control_address = host + ":8001";
  second.data_address = host + ":8002";
  ASSERT_TRUE(table.Register(first, At(0)).ok());
  // As after a crash, at ports that the system has chosen.
  EXPECT_EQ(table.Register(second, At(1)).value(), RegisterOutcome::kReplacedLive);
  EXPECT_EQ(table.Register(second, At(2)).value(), RegisterOutcome::kRefreshed);
  EXPECT_TRUE(absl::IsAlreadyExists(table.Register(first, At(2)).status()));
  NodeRecord third = first;
  third.incarnation = 3;
  EXPECT_TRUE(table.Register(third, At(3)).ok());
}

TEST(NodeTableTest, HeartbeatUpdatesTheReport) {
  NodeTable table(kDeadAfter);
  ASSERT_TRUE(table.Register(Node("a"), At(0)).ok());
  const NodeReport report{.block_count = 7,
                          .block_bytes = 700,
                          .active_sessions = 2,
                          .draining = true,
                          .free_bytes = 10,
                          .disk_bytes = 20};
  ASSERT_TRUE(table.Heartbeat("a", 1, report, At(8)).ok());
  const NodeRecord& node = *table.Find("a");
  EXPECT_EQ(node.block_count, 7u);
  EXPECT_EQ(node.block_bytes, 700u);
  EXPECT_EQ(node.active_sessions, 2u);
  EXPECT_EQ(node.free_bytes, 10u);
  EXPECT_EQ(node.disk_bytes, 20u);
  EXPECT_TRUE(node.draining);
  EXPECT_EQ(node.last_heartbeat, At(8));
}

TEST(NodeTableTest, HeartbeatOfAnUnknownNodeOrIncarnation) {
  NodeTable table(kDeadAfter);
  EXPECT_TRUE(absl::IsNotFound(table.Heartbeat("a", 1, {}, At(0))));
  ASSERT_TRUE(table.Register(Node("a", 2), At(0)).ok());
  EXPECT_TRUE(absl::IsNotFound(table.Heartbeat("a", 1, {.draining = true}, At(5))));
  EXPECT_FALSE(table.Find("a")->draining);
  EXPECT_EQ(table.Find("a")->last_heartbeat, At(0));
}

TEST(NodeTableTest, StateFollowsTime) {
  NodeTable table(kDeadAfter);
  EXPECT_EQ(table.State("a", At(0)), NodeState::kDead);
  ASSERT_TRUE(table.Register(Node("a"), At(0)).ok());
  EXPECT_EQ(table.State("a", At(10)), NodeState::kLive);
  EXPECT_EQ(table.State("a", At(10) + Duration(1)), NodeState::kDead);
  ASSERT_TRUE(table.Heartbeat("a", 1, {.draining = true}, At(20)).ok());
  EXPECT_EQ(table.State("a", At(21)), NodeState::kDraining);
  EXPECT_EQ(table.State("a", At(31)), NodeState::kDead);
  EXPECT_STREQ(NodeStateName(NodeState::kLive), "live");
  EXPECT_STREQ(NodeStateName(NodeState::kDraining), "draining");
  EXPECT_STREQ(NodeStateName(NodeState::kDead), "dead");
}

TEST(NodeTableTest, AnyCallOfALiveNodeIsASignOfLife) {
  NodeTable table(kDeadAfter);
  table.Heard("a", At(0));
  EXPECT_EQ(table.Find("a"), nullptr);
  ASSERT_TRUE(table.Register(Node("a"), At(0)).ok());
  table.Heard("a", At(9));
  EXPECT_EQ(table.State("a", At(19)), NodeState::kLive);
  EXPECT_EQ(table.State("a", At(20)), NodeState::kDead);
  table.Heard("a", At(20));
  EXPECT_EQ(table.State("a", At(20)), NodeState::kDead);
}

TEST(NodeTableTest, WhatTheCoordinatorSleptThroughIsNoSilence) {
  NodeTable table(kDeadAfter);
  ASSERT_TRUE(table.Register(Node("dead"), At(0)).ok());
  table.Tick(At(0));
  for (int second = 1; second <= 20; ++second) table.Tick(At(second));
  ASSERT_TRUE(table.Register(Node("a"), At(20)).ok());
  // It did not run from here to second 60: nobody can tell who was silent.
  EXPECT_EQ(table.State("a", At(59)), NodeState::kLive);
  EXPECT_EQ(table.State("dead", At(59)), NodeState::kDead);
  table.Tick(At(60));
  EXPECT_EQ(table.State("a", At(60)), NodeState::kLive);
  EXPECT_EQ(table.State("dead", At(60)), NodeState::kDead);
  // One that is really gone is noticed in the usual time from then on.
  for (int second = 61; second <= 67; ++second) table.Tick(At(second));
  EXPECT_EQ(table.State("a", At(67)), NodeState::kLive);
  table.Tick(At(68));
  EXPECT_EQ(table.State("a", At(68)), NodeState::kDead);
}

TEST(NodeTableTest, FailedRootsAreKeptWithinBounds) {
  NodeTable table(kDeadAfter);
  NodeRecord node = Node("a");
  node.failed_roots.assign(NodeTable::kMaxFailedRoots + 1, std::string(1000, 'x'));
  ASSERT_TRUE(table.Register(node, At(0)).ok());
  EXPECT_EQ(table.Find("a")->failed_roots.size(), NodeTable::kMaxFailedRoots);
  EXPECT_EQ(table.Find("a")->failed_roots[0].size(), NodeTable::kMaxFailedRootBytes);
  ASSERT_TRUE(table.Heartbeat("a", 1, {.failed_roots = {"/d: gone"}}, At(1)).ok());
  EXPECT_EQ(table.Find("a")->failed_roots, std::vector<std::string>{"/d: gone"});
}

TEST(NodeTableTest, BadRecordsAreRefusedAndNamed) {
  const std::string long_id(NodeTable::kMaxNodeIdBytes + 1, 'x');
  const std::string long_address(NodeTable::kMaxAddressBytes + 1, 'x');
  struct Case {
    const char* field;
    NodeRecord record;
  };
  std::vector<Case> cases = {
      {"node_id", Node("")},          {"node_id", Node(long_id)},     {"rack", Node("a")},
      {"control_address", Node("a")}, {"control_address", Node("a")}, {"data_address", Node("a")},
      {"data_address", Node("a")},    {"redis_address", Node("a")},   {"node_id", Node("/r1")},
      {"node_id", Node("a b")},       {"control_address", Node("a")}, {"data_address", Node("a")},
      {"redis_address", Node("a")}};
  cases[2].record.rack = long_id;
  cases[3].record.control_address = "";
  cases[4].record.control_address = long_address;
  cases[5].record.data_address = "";
  cases[6].record.data_address = long_address;
  cases[7].record.redis_address = long_address;
  cases[10].record.control_address = "unix:/run/other.sock";  // gRPC would dial it
  cases[11].record.data_address = "host";
  cases[12].record.redis_address = "host:x";
  NodeTable table(kDeadAfter);
  for (const Case& c : cases) {
    const auto outcome = table.Register(c.record, At(0));
    EXPECT_TRUE(absl::IsInvalidArgument(outcome.status())) << c.field;
    EXPECT_NE(outcome.status().ToString().find(c.field), std::string::npos) << outcome.status();
  }
  EXPECT_EQ(table.size(), 0u);
}

TEST(NodeTableTest, AnAddressIsOfOneLiveNode) {
  NodeTable table(kDeadAfter);
  ASSERT_TRUE(table.Register(Node("a"), At(0)).ok());
  for (const bool control : {true, false}) {
    for (const bool crossed : {true, false}) {
      NodeRecord other = Node("b");
      const NodeRecord first = Node("a");
      (control ? other.control_address : other.data_address) =
          control == crossed ? first.data_address : first.control_address;
      const absl::Status refused = table.Register(other, At(1)).status();
      EXPECT_TRUE(absl::IsAlreadyExists(refused)) << refused;
      for (const char* part : {"node a", "node b", "[listen] control", "advertise_data"}) {
        EXPECT_NE(refused.ToString().find(part), std::string::npos) << refused;
      }
    }
  }
  EXPECT_EQ(table.Find("b"), nullptr);
  // Itself again, a node that took over from a dead one, and what nobody has any more.
  EXPECT_TRUE(table.Register(Node("a", 2), At(2)).ok());
  NodeRecord heir = Node("b");
  heir.control_address = Node("a").control_address;
  EXPECT_TRUE(absl::IsAlreadyExists(table.Register(heir, At(12)).status()));
  EXPECT_TRUE(table.Register(heir, At(13)).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(table.Register(Node("a", 3), At(14)).status()));
  ASSERT_TRUE(table.Register(Node("b"), At(15)).ok());
  EXPECT_TRUE(table.Register(Node("a", 3), At(15)).ok());
  NodeRecord both = Node("c");
  both.data_address = both.control_address;
  EXPECT_TRUE(absl::IsInvalidArgument(table.Register(both, At(15)).status()));
  // One that is remembered from before a restart is dead, so its addresses are not taken.
  EXPECT_TRUE(table
                  .AddDead(
                      [] {
                        NodeRecord dead = Node("d");
                        dead.data_address = Node("a").data_address;
                        return dead;
                      }(),
                      Duration(0), At(15))
                  .ok());
}

TEST(NodeTableTest, NodesAreFoundByTheirStoragesName) {
  NodeTable table(kDeadAfter);
  const auto with = [](const std::string& id, const std::string& storage_id) {
    NodeRecord node = Node(id);
    node.storage_id = storage_id;
    return node;
  };
  using Names = std::vector<std::string>;
  ASSERT_TRUE(table.Register(with("b", "uuid-1"), At(0)).ok());
  const absl::Status second = table.Register(with("a", "uuid-1"), At(1)).status();
  EXPECT_TRUE(absl::IsAlreadyExists(second)) << "only one that is live: " << second;
  ASSERT_TRUE(table.Register(with("a", "uuid-1"), At(15)).ok()) << "its disks have moved";
  ASSERT_TRUE(table.Register(with("c", ""), At(15)).ok());
  EXPECT_EQ(table.WithStorage("uuid-1"), (Names{"a", "b"}));
  EXPECT_EQ(table.WithStorage("uuid-2"), Names{});
  EXPECT_TRUE(absl::IsAlreadyExists(table.Register(with("b", "uuid-1"), At(16)).status()));
  ASSERT_TRUE(table.Register(with("b", "uuid-2"), At(16)).ok());
  EXPECT_EQ(table.WithStorage("uuid-1"), Names{"a"});
  EXPECT_EQ(table.WithStorage("uuid-2"), Names{"b"});
  EXPECT_TRUE(absl::IsInvalidArgument(table.Register(with("d", "a/b"), At(16)).status()));
}

TEST(NodeTableTest, TellsOfEachDeathOnce) {
  NodeTable table(kDeadAfter);
  ASSERT_TRUE(table.Register(Node("a"), At(0)).ok());
  ASSERT_TRUE(table.AddDead(Node("long-dead"), seconds(99), At(0)).ok());
  EXPECT_TRUE(table.TakeTurns(At(10)).empty());
  std::vector<NodeTable::Turn> turns = table.TakeTurns(At(12));
  ASSERT_EQ(turns.size(), 1u);
  EXPECT_EQ(turns[0].node, "a");
  EXPECT_TRUE(turns[0].dead);
  EXPECT_EQ(turns[0].silent, seconds(12));
  EXPECT_TRUE(table.TakeTurns(At(13)).empty());
  ASSERT_TRUE(table.Heartbeat("a", 1, {}, At(14)).ok());
  turns = table.TakeTurns(At(14));
  ASSERT_EQ(turns.size(), 1u);
  EXPECT_FALSE(turns[0].dead);
  ASSERT_EQ(table.TakeTurns(At(25)).size(), 1u);
  ASSERT_TRUE(table.Register(Node("a", 2), At(26)).ok());
  EXPECT_TRUE(table.TakeTurns(At(26)).empty()) << "that it registers is told already";
}

TEST(NodeTableTest, FullTableForgetsTheDeadOnly) {
  NodeTable table(kDeadAfter);
  for (size_t i = 0; i < NodeTable::kMaxNodes; ++i) {
    ASSERT_TRUE(table.Register(Node("n" + std::to_string(i)), At(0)).ok());
  }
  EXPECT_TRUE(absl::IsResourceExhausted(table.Register(Node("new"), At(1)).status()));
  EXPECT_TRUE(table.Register(Node("n5", 2), At(1)).ok());  // known, so there is room
  ASSERT_TRUE(table.Heartbeat("n7", 1, {}, At(15)).ok());
  EXPECT_EQ(table.Register(Node("new"), At(16)).value(), RegisterOutcome::kAdded);
  EXPECT_EQ(table.size(), 2u);
  EXPECT_NE(table.Find("n7"), nullptr);
}

}  // namespace
}  // namespace ecpipe::node_table_test
