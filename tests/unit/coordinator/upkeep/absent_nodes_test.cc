// SPDX-License-Identifier: Apache-2.0
#include "coordinator/upkeep/absent_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "unit/coordinator/repairs/repairs_fixture.h"

namespace ecpipe::absent_nodes_test {
namespace {

using ::testing::ElementsAre;

class AbsentNodes : public testing::Test {
 protected:
  std::vector<std::string> Known() {
    std::vector<std::string> names;
    for (const NodeView& view : nodes_.All()) names.push_back(view.record.node_id);
    return names;
  }
  void Look() { ASSERT_TRUE(TellAbsentNodes(&catalog_, &nodes_).ok()); }

  FakeClock clock_;
  MemoryCatalog catalog_{3, 6};  // three blocks on each of n0 to n5
  NodeRegistry nodes_{&clock_, std::chrono::seconds(5), {}, ""};
};

TEST_F(AbsentNodes, WhoHasBlocksAndDoesNotRegisterIsDead) {
  for (int i = 1; i < 6; ++i) ASSERT_TRUE(nodes_.Register(FakeNode("n" + std::to_string(i))).ok());
  Look();
  clock_.Advance(std::chrono::seconds(4));
  EXPECT_FALSE(nodes_.Find("n0")) << "it may be about to register";
  clock_.Advance(std::chrono::seconds(2));
  const std::optional<NodeView> view = nodes_.Find("n0");
  ASSERT_TRUE(view);
  EXPECT_EQ(view->state, NodeState::kDead);
  EXPECT_TRUE(view->heartbeat_unknown);
  EXPECT_EQ(view->seconds_since_heartbeat, 6);
  EXPECT_EQ(view->record.block_count, 3u);
  EXPECT_FALSE(nodes_.HasRegistered("n0"));
  EXPECT_THAT(Known(), ElementsAre("n1", "n2", "n3", "n4", "n5", "n0"));
  ASSERT_TRUE(nodes_.Register(FakeNode("n0")).ok());
  EXPECT_EQ(nodes_.Find("n0")->state, NodeState::kLive);
  EXPECT_THAT(Known(), ElementsAre("n0", "n1", "n2", "n3", "n4", "n5"));
}

TEST_F(AbsentNodes, WhoHasNoBlockAnyMoreIsNotMissed) {
  clock_.Advance(std::chrono::seconds(6));
  Look();
  EXPECT_EQ(Known().size(), 6u);
  for (auto& [stripe_id, stripe] : catalog_.stripes) {
    for (BlockPlace& place : stripe.blocks) {
      if (place.node == "n0") place.node = "n-new";
    }
  }
  Look();
  EXPECT_THAT(Known(), ElementsAre("n-new", "n1", "n2", "n3", "n4", "n5"));
  nodes_.Forget("n-new");
  EXPECT_FALSE(nodes_.Find("n-new"));
  Look();
  EXPECT_TRUE(nodes_.Find("n-new")) << "its blocks are still there";
}

// One in maintenance that is not there is known once.
TEST_F(AbsentNodes, AMaintenanceIsSaidOfIt) {
  clock_.Advance(std::chrono::seconds(6));
  nodes_.SetKeptOut({{"n0", KeptOut::kMaintenance}});
  Look();
  EXPECT_EQ(Known().size(), 6u);
  EXPECT_TRUE(nodes_.Find("n0")->Away());
  EXPECT_EQ(nodes_.Find("n0")->record.block_count, 3u);
}

}  // namespace
}  // namespace ecpipe::absent_nodes_test
