// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cluster/node_registry.h"

#include <gtest/gtest.h>

#include "unit/coordinator/fakes.h"

namespace ecpipe::node_registry_test {
namespace {

constexpr Duration kDeadAfter = std::chrono::seconds(5);

class NodeRegistryTest : public testing::Test {
 protected:
  FakeClock clock_;
  NodeRegistry nodes_{&clock_, kDeadAfter, {}, ""};
};

TEST_F(NodeRegistryTest, LiveNodesAreCountedAsTheyComeAndDrain) {
  EXPECT_EQ(nodes_.CountLive(), 0u);
  NodeRecord node = FakeNode("a");
  ASSERT_TRUE(nodes_.Register(node).ok());
  ASSERT_TRUE(nodes_.Register(FakeNode("b")).ok());
  EXPECT_EQ(nodes_.CountLive(), 2u);
  const uint64_t changes = nodes_.changes();
  NodeReport report;
  ASSERT_TRUE(nodes_.Heartbeat("a", node.incarnation, report).ok());
  EXPECT_EQ(nodes_.changes(), changes) << "nothing is new";
  report.draining = true;
  ASSERT_TRUE(nodes_.Heartbeat("a", node.incarnation, report).ok());
  EXPECT_EQ(nodes_.CountLive(), 1u);
  EXPECT_GT(nodes_.changes(), changes);
}

TEST_F(NodeRegistryTest, DeathsShowInTheCountSoonAndReturnsAtOnce) {
  NodeRecord node = FakeNode("a");
  ASSERT_TRUE(nodes_.Register(node).ok());
  EXPECT_EQ(nodes_.CountLive(), 1u);
  clock_.Advance(kDeadAfter + std::chrono::milliseconds(1));
  EXPECT_EQ(nodes_.CountLive(), 0u);
  ASSERT_TRUE(nodes_.Heartbeat("a", node.incarnation, {}).ok());
  EXPECT_EQ(nodes_.CountLive(), 1u);
}

TEST_F(NodeRegistryTest, AForgottenNodeMustRegisterAgain) {
  NodeRecord node = FakeNode("a");
  node.storage_id = "uuid";
  ASSERT_TRUE(nodes_.Register(node).ok());
  const uint64_t changes = nodes_.changes();
  nodes_.Forget("a");
  nodes_.Forget("nobody");
  EXPECT_FALSE(nodes_.Find("a"));
  EXPECT_EQ(nodes_.CountLive(), 0u);
  EXPECT_GT(nodes_.changes(), changes);
  EXPECT_TRUE(nodes_.WithStorage("uuid").empty());
  EXPECT_TRUE(absl::IsNotFound(nodes_.Heartbeat("a", node.incarnation, {})));
  EXPECT_TRUE(nodes_.Register(node).ok()) << "its addresses are free";
}

TEST_F(NodeRegistryTest, OfANodeThatIsOnlyAnnouncedNoHeartbeatIsKnown) {
  nodes_.SetKeptOut({{"a", KeptOut::kMaintenance}});
  clock_.Advance(std::chrono::seconds(12));
  for (const NodeView& view : {*nodes_.Find("a"), nodes_.All().at(0)}) {
    EXPECT_TRUE(view.heartbeat_unknown);
    EXPECT_EQ(view.seconds_since_heartbeat, 12) << "since the start";
  }
  ASSERT_TRUE(nodes_.Register(FakeNode("a")).ok());
  EXPECT_FALSE(nodes_.Find("a")->heartbeat_unknown);
  ASSERT_TRUE(nodes_.AddDead(FakeNode("b"), std::chrono::hours(1)).ok());
  EXPECT_FALSE(nodes_.Find("b")->heartbeat_unknown) << "it is remembered";
}

TEST_F(NodeRegistryTest, ANewTableOfRacksHoldsAtOnce) {
  NodeRecord node = FakeNode("a");
  node.rack = "/own";
  ASSERT_TRUE(nodes_.Register(node).ok());
  ASSERT_TRUE(nodes_.Register(FakeNode("b")).ok());
  const uint64_t changes = nodes_.changes();
  nodes_.SetRacks({{"a", "/1"}, {"c", "/3"}});
  EXPECT_EQ(nodes_.Find("a")->record.rack, "/1");
  EXPECT_NE(nodes_.Find("b")->record.rack, "/3");
  EXPECT_GT(nodes_.changes(), changes);
  ASSERT_TRUE(nodes_.Register(FakeNode("c")).ok());
  EXPECT_EQ(nodes_.Find("c")->record.rack, "/3");
  nodes_.SetRacks({});
  EXPECT_EQ(nodes_.Find("a")->record.rack, "/1") << "until it registers again";
  ASSERT_TRUE(nodes_.Register(node).ok());
  EXPECT_EQ(nodes_.Find("a")->record.rack, "/own");
}

TEST_F(NodeRegistryTest, SilenceAndAnswersAreChanges) {
  ASSERT_TRUE(nodes_.Register(FakeNode("a")).ok());
  const uint64_t changes = nodes_.changes();
  nodes_.NoAnswer("a", "deadline");
  EXPECT_EQ(nodes_.changes(), changes + 1);
  nodes_.NoAnswer("a", "deadline");
  EXPECT_EQ(nodes_.changes(), changes + 1) << "it was silent already";
}

}  // namespace
}  // namespace ecpipe::node_registry_test
