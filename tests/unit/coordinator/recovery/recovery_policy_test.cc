// SPDX-License-Identifier: Apache-2.0
#include "coordinator/recovery/placement/recovery_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <tuple>

namespace ecpipe::recovery_policy_test {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

std::vector<NodeLoad> PathLoads(const Placement& placement, int k, uint64_t bytes) {
  std::vector<NodeLoad> loads;
  for (int i = 0; i < k; ++i) {
    loads.push_back({placement.helpers[static_cast<size_t>(i)], bytes, i == 0 ? 0 : bytes});
  }
  loads.push_back({placement.host, 0, bytes});
  return loads;
}

class RecoveryPolicyTest : public testing::Test {
 protected:
  std::optional<Placement> PlaceAll(RecoveryPolicy policy) {
    std::vector<const LostBlock*> window;
    for (const LostBlock& block : blocks_) window.push_back(&block);
    return Place(policy, Input(window), loads_);
  }

  PolicyInput Input(std::span<const LostBlock* const> window) const {
    return {window, usable_, targets_, suspects_, racks_, streams_, speeds_, left_};
  }

  std::vector<LostBlock> blocks_{{"x", 100, 2, {"a", "b", "c", "d"}}};
  std::set<std::string> usable_{"a", "b", "c", "d", "e", "f"};
  std::vector<std::string> targets_{"d", "e", "f"};
  std::set<std::string> suspects_;
  LiveRacks racks_;
  uint32_t streams_ = 2;
  NodeSpeeds speeds_;
  uint64_t left_ = 0;  // blocks
  RecoveryLoads loads_;
};

TEST_F(RecoveryPolicyTest, InOrderTakesTargetsInTurn) {
  std::vector<std::string> hosts;
  for (int i = 0; i < 4; ++i) {
    const auto placement = PlaceAll(RecoveryPolicy::kInOrder);
    ASSERT_TRUE(placement);
    EXPECT_THAT(placement->helpers, ElementsAre("a", "b", "c", "d"));
    hosts.push_back(placement->host);
    loads_.Selected(*placement, 2);
  }
  EXPECT_THAT(hosts, ElementsAre("e", "f", "e", "f")) << "d has a block of the stripe";
}

// a, b and c are in the first rack, d and e in the second, f and g in the third: of a stripe of six
// each has two.
TEST_F(RecoveryPolicyTest, ARackGetsNoMoreThanItsShareOfAStripe) {
  racks_ = {
      {{"a", 0}, {"b", 0}, {"c", 0}, {"d", 1}, {"e", 1}, {"f", 2}, {"g", 2}}, {1, 1, 1}, 3, 3};
  usable_.insert("g");
  targets_ = {"c", "e", "g"};
  blocks_ = {{"x", 100, 2, {"a", "b", "d", "f", "gone"}}};
  for (const RecoveryPolicy policy :
       {RecoveryPolicy::kInOrder, RecoveryPolicy::kLeastRecent, RecoveryPolicy::kBalanced}) {
    std::set<std::string> hosts;
    for (int i = 0; i < 4; ++i) {
      const auto placement = PlaceAll(policy);
      ASSERT_TRUE(placement);
      hosts.insert(placement->host);
      loads_.Selected(*placement, 2);
      loads_.Begin({{placement->host, 0, 100}});
      loads_.End({{placement->host, 0, 100}});
    }
    EXPECT_THAT(hosts, UnorderedElementsAre("e", "g"));
  }
}

TEST_F(RecoveryPolicyTest, AFullRackTakesABlockOnlyIfNoOtherCan) {
  racks_ = {{{"a", 0}, {"b", 0}, {"c", 0}, {"d", 1}, {"e", 1}, {"f", 2}}, {1, 1, 1}, 3, 3};
  blocks_ = {{"x", 100, 2, {"a", "b", "d", "f", "gone"}}};
  targets_ = {"c", "e"};
  loads_.Begin({{"e", 0, 100}});
  loads_.Begin({{"e", 0, 100}});
  EXPECT_FALSE(PlaceAll(RecoveryPolicy::kBalanced)) << "e will have room";
  EXPECT_EQ(WaitReasons(Input({}), loads_, "limit").Of(blocks_[0]).reason,
            "the nodes that may take it are in 2 repairs already, the limit of a node (limit): e");
  targets_ = {"c"};
  const auto placement = PlaceAll(RecoveryPolicy::kBalanced);
  ASSERT_TRUE(placement);
  EXPECT_EQ(placement->host, "c");
  // What cannot be taken by anybody else is not worth a try with a node that fails.
  targets_ = {"c", "e"};
  suspects_ = {"e"};
  EXPECT_EQ(PlaceAll(RecoveryPolicy::kBalanced)->host, "c");
}

TEST_F(RecoveryPolicyTest, ASmallRackDoesNotTakeAllOfALargeOne) {
  racks_ = {{{"a", 0}, {"b", 0}, {"c", 0}, {"d", 0}, {"e", 0}, {"f", 1}}, {40, 2}, 2, 42};
  blocks_ = {{"x", 100, 2, {"a", "b", "c", "d"}}};
  targets_ = {"e", "f"};
  std::set<std::string> hosts;
  for (int i = 0; i < 2; ++i) {
    const auto placement = PlaceAll(RecoveryPolicy::kInOrder);
    ASSERT_TRUE(placement);
    hosts.insert(placement->host);
    loads_.Selected(*placement, 2);
  }
  EXPECT_THAT(hosts, UnorderedElementsAre("e", "f"));
}

TEST_F(RecoveryPolicyTest, TheLeastBusyNodesAreNoReasonToTakeALessUrgentBlockFirst) {
  blocks_ = {{"urgent", 100, 2, {"a", "b"}}, {"other", 100, 2, {"c", "d", "e"}}};
  loads_.Begin({{"a", 1000, 1000}, {"b", 1000, 1000}});
  EXPECT_EQ(PlaceAll(RecoveryPolicy::kBalanced)->block_id, "urgent");
  blocks_[0].holders.push_back("f");
  EXPECT_EQ(PlaceAll(RecoveryPolicy::kBalanced)->block_id, "other");
}

TEST_F(RecoveryPolicyTest, LeastRecentTakesThoseThatRestedLongest) {
  std::vector<std::string> first_two;
  for (int i = 0; i < 3; ++i) {
    const auto placement = PlaceAll(RecoveryPolicy::kLeastRecent);
    ASSERT_TRUE(placement);
    EXPECT_EQ(placement->helpers.size(), 4u);
    first_two.insert(first_two.end(), placement->helpers.begin(), placement->helpers.begin() + 2);
    loads_.Selected(*placement, 2);
  }
  EXPECT_THAT(first_two, ElementsAre("a", "b", "c", "d", "a", "b"));
}

TEST_F(RecoveryPolicyTest, BusyNodesComeLastAndTooManyOfThemMeanWaiting) {
  for (int i = 0; i < 2; ++i) loads_.Begin({{"a", 0, 0}, {"e", 0, 0}});
  for (const RecoveryPolicy policy :
       {RecoveryPolicy::kInOrder, RecoveryPolicy::kLeastRecent, RecoveryPolicy::kBalanced}) {
    const auto placement = PlaceAll(policy);
    ASSERT_TRUE(placement);
    EXPECT_EQ(placement->helpers.back(), "a");
    EXPECT_EQ(placement->host, "f");
  }
  for (int i = 0; i < 2; ++i) loads_.Begin({{"b", 0, 0}, {"c", 0, 0}});
  EXPECT_FALSE(PlaceAll(RecoveryPolicy::kBalanced)) << "one of two is there";
  for (int i = 0; i < 2; ++i) loads_.End({{"b", 0, 0}, {"c", 0, 0}});
  EXPECT_TRUE(PlaceAll(RecoveryPolicy::kBalanced));
}

TEST_F(RecoveryPolicyTest, WhatCannotBeRepairedIsPlacedToLearnWhy) {
  usable_ = {"a", "f"};
  const auto placement = PlaceAll(RecoveryPolicy::kBalanced);
  ASSERT_TRUE(placement);
  EXPECT_THAT(placement->helpers, ElementsAre("a"));
  targets_ = {"d"};
  const auto nowhere = PlaceAll(RecoveryPolicy::kBalanced);
  ASSERT_TRUE(nowhere);
  EXPECT_EQ(nowhere->host, "");
  EXPECT_THAT(nowhere->impossible, HasSubstr("every live node"));
}

TEST(RecoveryLoads, LeaveAShareOfEachLink) {
  RecoveryLoads loads;
  const std::string nodes[] = {"a", "b", "c"};
  const std::vector<NodeLoad> first = {{"a", 100, 0}, {"b", 100, 100}};
  loads.Begin(first);
  loads.Begin({{"b", 0, 50}});
  const auto left = loads.LeftOfLinks(nodes);
  EXPECT_EQ(left.size(), 2u);
  EXPECT_EQ(left.at("a").up, 0.5);
  EXPECT_EQ(left.at("a").down, 1);
  EXPECT_EQ(left.at("b").up, 0.5);
  EXPECT_DOUBLE_EQ(left.at("b").down, 1.0 / 3);
  loads.End(first);
  EXPECT_FALSE(loads.LeftOfLinks(nodes).contains("a"));
  EXPECT_EQ(loads.LeftOfLinks(nodes).at("b").down, 0.5);
}

TEST_F(RecoveryPolicyTest, SuspectsTakeABlockOnlyIfNobodyElseCan) {
  suspects_ = {"e"};
  for (int i = 0; i < 2; ++i) loads_.Begin({{"f", 0, 0}});
  EXPECT_FALSE(PlaceAll(RecoveryPolicy::kBalanced)) << "f is busy, and worth the wait";
  suspects_ = {"e", "f"};
  EXPECT_EQ(PlaceAll(RecoveryPolicy::kBalanced)->host, "e");
}

TEST_F(RecoveryPolicyTest, ACopyNeedsAHostAndNobodyElse) {
  const LostBlock* const window[] = {&blocks_[0]};
  const auto copy = [&](RecoveryPolicy policy) { return PlaceCopy(policy, Input(window), loads_); };
  for (int i = 0; i < 2; ++i) {
    for (const char* node : {"a", "b", "c", "d"}) loads_.Begin({{node, 1, 0}});
  }
  EXPECT_FALSE(PlaceAll(RecoveryPolicy::kBalanced)) << "those that could help are busy";
  loads_.Begin({{"e", 0, 300}});
  const auto placement = copy(RecoveryPolicy::kBalanced);
  ASSERT_TRUE(placement);
  EXPECT_TRUE(placement->copy);
  EXPECT_EQ(placement->host, "f");
  EXPECT_THAT(placement->helpers, ElementsAre());
  EXPECT_EQ(copy(RecoveryPolicy::kInOrder)->host, "e") << "d has a block of the stripe";
  loads_.Begin({{"e", 0, 1}});
  for (int i = 0; i < 2; ++i) loads_.Begin({{"f", 0, 1}});
  EXPECT_FALSE(copy(RecoveryPolicy::kBalanced)) << "both hosts are busy";
  targets_ = {"d"};
  EXPECT_THAT(copy(RecoveryPolicy::kBalanced)->impossible, HasSubstr("already has a block"));
}

TEST_F(RecoveryPolicyTest, BalancedAvoidsFullLinks) {
  loads_.Begin({{"a", 500, 0}, {"b", 0, 500}, {"e", 0, 300}});
  const auto placement = PlaceAll(RecoveryPolicy::kBalanced);
  ASSERT_TRUE(placement);
  EXPECT_EQ(placement->host, "f");
  EXPECT_THAT(placement->helpers[0], AnyOf("c", "d"));
  EXPECT_THAT(placement->helpers[1], AnyOf("c", "d"));
}

TEST_F(RecoveryPolicyTest, OfASlowLinkLessIsAsked) {
  speeds_ = {{"a", {.up = 0.25, .down = 1}}, {"b", {.up = 1, .down = 0.25}}, {"e", {1, 0.5}}};
  for (const char* node : {"c", "d", "f"}) loads_.Begin({{node, 90, 90}});
  Placement placement = *PlaceAll(RecoveryPolicy::kBalanced);
  EXPECT_EQ(placement.host, "f") << "190 bytes take as long as e takes for 95";
  EXPECT_EQ(placement.helpers[0], "c");
  EXPECT_EQ(placement.helpers[1], "d");
  for (const char* node : {"c", "d", "f"}) loads_.Begin({{node, 300, 300}});
  streams_ = 3;
  placement = *PlaceAll(RecoveryPolicy::kBalanced);
  EXPECT_EQ(placement.host, "e");
  EXPECT_EQ(placement.helpers[0], "b") << "the slow downlink goes first";
  EXPECT_EQ(placement.helpers[1], "a");
}

TEST_F(RecoveryPolicyTest, TheFullestDownlinkGoesFirst) {
  blocks_ = {{"x", 100, 3, {"a", "b", "c"}}};
  loads_.Begin({{"b", 0, 200}});
  const auto placement = PlaceAll(RecoveryPolicy::kBalanced);
  ASSERT_TRUE(placement);
  EXPECT_EQ(placement->helpers[0], "b");
}

TEST_F(RecoveryPolicyTest, BalancedTakesTheStripeThatDisturbsLeast) {
  blocks_ = {{"x", 100, 2, {"a", "b"}}, {"y", 100, 2, {"c", "d"}}};
  loads_.Begin({{"a", 100, 100}});
  EXPECT_EQ(PlaceAll(RecoveryPolicy::kBalanced)->block_id, "y");
  EXPECT_EQ(PlaceAll(RecoveryPolicy::kInOrder)->block_id, "x");
}

// Whatever the loads are, and whoever is suspected or has no room.
TEST_F(RecoveryPolicyTest, TheHostIsTheOneThatALookAtEachOfThemFinds) {
  std::mt19937 random(11);
  const auto one_of = [&](uint32_t count) { return static_cast<uint64_t>(random() % count); };
  usable_ = {"a", "b", "c", "d", "e", "f", "g", "h", "i"};
  for (int round = 0; round < 500; ++round) {
    loads_ = {};
    suspects_.clear();
    targets_.assign(usable_.begin(), usable_.end());
    std::shuffle(targets_.begin(), targets_.end(), random);
    for (const std::string& node : usable_) {
      for (uint64_t i = one_of(3); i > 0; --i) loads_.Begin({{node, one_of(3), one_of(3)}});
      if (one_of(3) == 0) suspects_.insert(node);
    }
    blocks_ = {{"x", 100, 0, {targets_[0], targets_[4], targets_[4], "elsewhere"}}};
    for (uint64_t i = one_of(9); i > 0; --i) loads_.Selected({}, 0);
    std::vector<std::string> fit;
    bool anybody = false;
    for (const bool suspected : {false, true}) {
      for (size_t i = 0; i < targets_.size() && !(suspected && anybody); ++i) {
        const std::string& node = targets_[i];
        if (i == 0 || i == 4 || suspects_.contains(node) != suspected) continue;
        anybody |= !suspected;
        if (loads_.Streams(node) < streams_) fit.push_back(node);
      }
    }
    const auto balanced = PlaceAll(RecoveryPolicy::kBalanced);
    const auto in_turn = PlaceAll(RecoveryPolicy::kInOrder);
    ASSERT_EQ(balanced.has_value(), !fit.empty());
    ASSERT_EQ(in_turn.has_value(), !fit.empty());
    if (fit.empty()) continue;
    EXPECT_EQ(in_turn->host, fit[loads_.turn() % fit.size()]);
    EXPECT_EQ(balanced->host,
              *std::min_element(fit.begin(), fit.end(), [&](const auto& a, const auto& b) {
                const auto key = [&](const std::string& node) {
                  const RecoveryLoads::Node& load = loads_.Of(node);
                  return std::tuple(load.down, load.carried, load.up);
                };
                return key(a) < key(b);
              }));
  }
}

// Forty hosts, the least busy of which have blocks of the stripe.
TEST_F(RecoveryPolicyTest, AFreeHostIsFoundBehindManyThatHaveBlocks) {
  targets_.clear();
  blocks_ = {{"x", 100, 0, {}}};
  for (int i = 0; i < 40; ++i) {
    targets_.push_back("host" + std::to_string(i));
    loads_.Begin({{targets_.back(), 0, static_cast<uint64_t>(100 + i * 7 % 40)}});
    if (i * 7 % 40 != 39 && i * 7 % 40 != 37) blocks_[0].holders.push_back(targets_.back());
  }
  const auto placement = PlaceAll(RecoveryPolicy::kBalanced);
  ASSERT_TRUE(placement);
  EXPECT_EQ(loads_.Of(placement->host).down, 137u);
}

// Until its plan is known, what a repair may need is taken; then it is as if that had never been.
TEST_F(RecoveryPolicyTest, WhatIsExpectedOfARepairTakesRoom) {
  streams_ = 1;
  targets_ = {"e", "f"};
  const Placement first = *PlaceAll(RecoveryPolicy::kBalanced);
  const std::vector<NodeLoad> expected = ExpectedLoads(first, "", 2, 100);
  loads_.Begin(expected);
  EXPECT_EQ(loads_.Of(first.host).down, 100u);
  EXPECT_EQ(loads_.Of(first.helpers[0]).up, 100u);
  EXPECT_EQ(loads_.Of(first.helpers[1]).down, 100u);
  EXPECT_EQ(loads_.Of(first.helpers[3]).up, 0u);
  EXPECT_FALSE(PlaceAll(RecoveryPolicy::kBalanced)) << "each of a, b, c and d may be needed";
  loads_.Withdraw(expected);
  const Placement again = *PlaceAll(RecoveryPolicy::kBalanced);
  EXPECT_EQ(again.host, first.host);
  EXPECT_EQ(again.helpers, first.helpers);

  Placement copy = *PlaceCopy(RecoveryPolicy::kBalanced,
                              Input(std::vector<const LostBlock*>{&blocks_[0]}), loads_);
  loads_.Begin(ExpectedLoads(copy, "source", 2, 100));
  EXPECT_EQ(loads_.Of("source").streams, 1u);
  EXPECT_EQ(loads_.Of("source").up, 100u);
  EXPECT_EQ(loads_.Of(copy.host).down, 100u);
}

class FewBlocksLeft : public RecoveryPolicyTest {
 protected:
  FewBlocksLeft() {
    blocks_.push_back({"y", 100, 2, {"b", "c", "d"}});
    left_ = 2;
  }
};

TEST_F(FewBlocksLeft, HaveSeveralPathsEach) {
  const Placement placement = *PlaceAll(RecoveryPolicy::kBalanced);
  EXPECT_EQ(placement.block_id, "x");
  ASSERT_EQ(placement.paths.size(), 4u);
  for (const std::vector<std::string>& path : placement.paths) {
    EXPECT_EQ(path.size(), 2u);
    EXPECT_NE(path[0], path[1]);
    for (const std::string& node : path) EXPECT_THAT(placement.helpers, Contains(node));
  }
  EXPECT_EQ(placement.helpers[0], placement.paths[0][0]);
  EXPECT_EQ(placement.helpers[1], placement.paths[0][1]);
  EXPECT_EQ(placement.helpers.size(), 4u);
  EXPECT_TRUE(PlaceAll(RecoveryPolicy::kInOrder)->paths.empty());
}

TEST_F(FewBlocksLeft, AreFewOnlyIfAllMayBeginAtOnce) {
  left_ = 3;
  EXPECT_TRUE(PlaceAll(RecoveryPolicy::kBalanced)->paths.empty()) << "two streams a node";
  streams_ = 3;
  EXPECT_EQ(PlaceAll(RecoveryPolicy::kBalanced)->paths.size(), 4u);
  left_ = 1;
  EXPECT_TRUE(PlaceAll(RecoveryPolicy::kBalanced)->paths.empty()) << "its host's link is busiest";
  left_ = streams_ = 24;
  EXPECT_EQ(PlaceAll(RecoveryPolicy::kBalanced)->paths.size(), 2u) << "24 streams a helper";
  left_ = streams_ = 25;
  EXPECT_TRUE(PlaceAll(RecoveryPolicy::kBalanced)->paths.empty());
}

TEST_F(FewBlocksLeft, ThatHaveTooFewSurvivorsArePlacedToLearnWhy) {
  usable_ = {"a", "f"};
  const Placement placement = *PlaceAll(RecoveryPolicy::kBalanced);
  EXPECT_EQ(placement.block_id, "x");
  EXPECT_THAT(placement.helpers, ElementsAre("a"));
  EXPECT_TRUE(placement.paths.empty());
  targets_ = {"d"};
  EXPECT_THAT(PlaceAll(RecoveryPolicy::kBalanced)->impossible, HasSubstr("every live node"));
}

TEST_F(FewBlocksLeft, OfWhichTwoAreOnOneNodeHaveOnePath) {
  blocks_[0] = {"x", 100, 4, {"b", "b", "c", "c"}};
  const Placement placement = *PlaceAll(RecoveryPolicy::kBalanced);
  EXPECT_TRUE(placement.paths.empty());
  blocks_[0].needed = 2;
  const Placement two = *PlaceAll(RecoveryPolicy::kBalanced);
  EXPECT_EQ(two.block_id, "x");
  for (const std::vector<std::string>& path : two.paths) {
    EXPECT_THAT(path, UnorderedElementsAre("b", "c"));
  }
}

TEST_F(FewBlocksLeft, NeedAsManyHelpersAsTheirOwnCodes) {
  blocks_[1].needed = 3;
  EXPECT_EQ(PlaceAll(RecoveryPolicy::kBalanced)->paths[3].size(), 2u);
  std::swap(blocks_[0], blocks_[1]);
  EXPECT_EQ(PlaceAll(RecoveryPolicy::kBalanced)->paths[3].size(), 3u);
  blocks_[0].needed = 0;
  EXPECT_TRUE(PlaceAll(RecoveryPolicy::kBalanced)->paths.empty()) << "of an unknown code";
}

TEST_F(FewBlocksLeft, WaitForBusyNodes) {
  for (int i = 0; i < 2; ++i) loads_.Begin({{"a", 0, 0}, {"b", 0, 0}, {"c", 0, 0}});
  EXPECT_FALSE(PlaceAll(RecoveryPolicy::kBalanced));
  loads_.End({{"c", 0, 0}});
  const Placement placement = *PlaceAll(RecoveryPolicy::kBalanced);
  EXPECT_THAT(placement.paths[3], UnorderedElementsAre("c", "d"));
  EXPECT_THAT(placement.helpers, ElementsAre(AnyOf("c", "d"), AnyOf("c", "d"), "a", "b"));
}

TEST_F(FewBlocksLeft, AreExpectedToUseTheirPaths) {
  const Placement placement{"x", "e", {"a", "b", "c"}, "", false, {{"a", "b"}, {"a", "c"}}};
  const std::vector<NodeLoad> expected = ExpectedLoads(placement, "", 2, 100);
  loads_.Begin(expected);
  EXPECT_EQ(loads_.Of("a").up, 100u);
  EXPECT_EQ(loads_.Of("a").down, 0u);
  EXPECT_EQ(loads_.Of("b").up, 50u);
  EXPECT_EQ(loads_.Of("c").down, 50u);
  EXPECT_EQ(loads_.Of("e").down, 100u);
  EXPECT_EQ(loads_.Of("b").streams, 1u);
}

// 200 stripes of (14, 10) on 15 nodes: how long the busiest link is busy, over the least possible
// if all were as fast. `slow` of them have half of the others' speed, of which the policy knows or
// not.
double Imbalance(RecoveryPolicy policy, uint32_t in_flight, int slow = 0, bool known = false) {
  std::mt19937 random(3);
  std::vector<std::string> nodes;
  for (int i = 0; i < 15; ++i) nodes.push_back("n" + std::to_string(i));
  NodeSpeeds speeds;
  for (int i = 0; i < slow; ++i) speeds[nodes[static_cast<size_t>(i)]] = {0.5, 0.5};
  const NodeSpeeds told = known ? speeds : NodeSpeeds();
  std::vector<LostBlock> lost;
  for (int i = 0; i < 200; ++i) {
    std::vector<std::string> holders = nodes;
    std::shuffle(holders.begin(), holders.end(), random);
    holders.resize(13);
    lost.push_back({"b" + std::to_string(1000 + i), 1, 10, holders});
  }
  RecoveryLoads loads;
  std::map<std::string, uint64_t> up;
  std::map<std::string, uint64_t> down;
  std::vector<std::vector<NodeLoad>> running;
  const std::set<std::string> usable(nodes.begin(), nodes.end());
  while (!lost.empty()) {
    std::vector<const LostBlock*> window;
    for (const LostBlock& block : lost) {
      if (window.size() < 32) window.push_back(&block);
    }
    const auto placement = Place(policy, {window, usable, nodes, {}, {}, 1000, told, 0}, loads);
    loads.Selected(*placement, 10);
    running.push_back(PathLoads(*placement, 10, 1));
    loads.Begin(running.back());
    for (const NodeLoad& load : running.back()) {
      up[load.node] += load.up_bytes;
      down[load.node] += load.down_bytes;
    }
    std::erase_if(lost, [&](const auto& block) { return block.block_id == placement->block_id; });
    if (running.size() == in_flight) {
      loads.End(running.front());
      running.erase(running.begin());
    }
  }
  double busiest = 0;
  for (const std::string& node : nodes) {
    const double speed = speeds.contains(node) ? 0.5 : 1;
    busiest = std::max(busiest, static_cast<double>(std::max(up[node], down[node])) / speed);
  }
  return busiest / (200.0 * 10 / 15);
}

TEST(RecoveryPolicyBalance, BalancedNearlyReachesTheBound) {
  const double in_order = Imbalance(RecoveryPolicy::kInOrder, 12);
  const double least_recent = Imbalance(RecoveryPolicy::kLeastRecent, 12);
  const double balanced = Imbalance(RecoveryPolicy::kBalanced, 12);
  RecordProperty("in_order", std::to_string(in_order));
  RecordProperty("least_recent", std::to_string(least_recent));
  RecordProperty("balanced", std::to_string(balanced));
  EXPECT_LT(balanced, 1.03);
  EXPECT_LT(balanced, least_recent);
  EXPECT_LT(least_recent, in_order);
}

// Half of the nodes are half as fast. The least possible is 1.47, since each other node can send no
// more than it has: 13 of 15 blocks.
TEST(RecoveryPolicyBalance, SlowNodesThatAreKnownAreAskedForLess) {
  EXPECT_GT(Imbalance(RecoveryPolicy::kBalanced, 12, 8, /*known=*/false), 1.95);
  EXPECT_LT(Imbalance(RecoveryPolicy::kBalanced, 12, 8, /*known=*/true), 1.6);
}

}  // namespace
}  // namespace ecpipe::recovery_policy_test
