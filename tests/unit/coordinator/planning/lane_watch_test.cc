// SPDX-License-Identifier: Apache-2.0
#include "coordinator/planning/lane_watch.h"

#include <gtest/gtest.h>

#include "coordinator/planning/plan_cost.h"

namespace ecpipe::lane_watch_test {
namespace {

// Three blocks of which one is enough, each with 10 bytes per second to the requestor.
PlanRequest ThreeCopies() {
  PlanRequest request;
  request.scheme = "rp-flow";
  request.code = CreateErasureCode("rs(4,1)").value();
  request.survivors = {1, 2, 3};
  request.equation = request.code->Equation(std::vector{0}, std::vector{1}).value();
  request.block_nodes = {"lost", "a", "b", "c"};
  request.requestors = {"r"};
  request.grid = {0, 220'000'000, 1'000'000};
  for (const std::string node : {"a", "b", "c", "r"}) {
    request.cluster.nodes.push_back(
        {.node = node, .up_bytes_per_second = 10e6, .down_bytes_per_second = 100e6});
  }
  return request;
}

std::map<std::string, uint32_t> SlicesBySender(const RepairPlan& plan) {
  std::map<std::string, uint32_t> slices;
  for (const PlanLane& lane : plan.lanes) slices[lane.hops[0].node] += lane.slices.count();
  return slices;
}

// 220 slices over 10 + 10 + 2.
TEST(SeenLinks, GiveASlowLinkASmallerShare) {
  using Slices = std::map<std::string, uint32_t>;
  PlanRequest request = ThreeCopies();
  EXPECT_EQ(SlicesBySender(MakePlan(request).value()), (Slices{{"a", 73}, {"b", 73}, {"c", 74}}));
  for (const SeenLinks& seen : {SeenLinks{.pairs = {{{"a", "r"}, 2e6}}, .up = {}, .down = {}},
                                SeenLinks{.pairs = {}, .up = {{"a", 2e6}}, .down = {}}}) {
    PlanRequest anew = request;
    Limit(seen, &anew.cluster);
    const RepairPlan plan = MakePlan(anew).value();
    EXPECT_EQ(SlicesBySender(plan), (Slices{{"a", 20}, {"b", 100}, {"c", 100}}));
    EXPECT_NEAR(EstimateCost(plan, anew.cluster).seconds, 10, 0.01);
  }
}

TEST(SeenLinks, ADeadOneHasNoShare) {
  PlanRequest request = ThreeCopies();
  Limit({.pairs = {{{"a", "r"}, 1}}, .up = {}, .down = {}}, &request.cluster);
  const RepairPlan plan = MakePlan(request).value();
  EXPECT_FALSE(SlicesBySender(plan).contains("a"));
  EXPECT_NEAR(EstimateCost(plan, request.cluster).seconds, 11, 0.01);
}

TEST(SeenLinks, OfTwoRatesTheSmallerOneCounts) {
  SeenLinks seen{.pairs = {{{"a", "b"}, 5}}, .up = {{"a", 3}}, .down = {}};
  seen.Add({.pairs = {{{"a", "b"}, 7}, {{"b", "a"}, 1}}, .up = {{"a", 2}}, .down = {{"c", 4}}});
  EXPECT_EQ(seen.pairs, (LinkTable{{{"a", "b"}, 5}, {{"b", "a"}, 1}}));
  EXPECT_EQ(seen.up, (std::map<std::string, double>{{"a", 2}}));
  EXPECT_EQ(seen.down, (std::map<std::string, double>{{"c", 4}}));
  ClusterView view{.nodes = {{.node = "a"}, {.node = "c", .down_bytes_per_second = 3}}};
  Limit(seen, &view);
  const Links links(view);
  EXPECT_EQ(links.At("a").up(), 2) << "not the default";
  EXPECT_EQ(links.At("c").down(), 3) << "it was known to be slower";
  EXPECT_EQ(links.Between(links.At("b"), links.At("a")), 1);
}

TEST(LanesToWatch, AreThoseOfAPacking) {
  const RepairPlan plan = MakePlan(ThreeCopies()).value();
  const WatchedLanes lanes = LanesToWatch(plan, 7);
  ASSERT_EQ(lanes.lanes.size(), 3u);
  EXPECT_EQ(lanes.seconds, 7);
  ASSERT_EQ(lanes.lanes[0].streams.size(), 1u);
  EXPECT_EQ(lanes.lanes[0].streams[0].to, "r");
  EXPECT_EQ(lanes.lanes[0].streams[0].bytes, plan.lanes[0].slices.count() * 1'000'000u);
  RepairPlan other = plan;
  other.scheme = "rp-cyclic";
  EXPECT_TRUE(LanesToWatch(other, 7).lanes.empty()) << "its lanes have equal shares";
  other = plan;
  other.lanes.resize(1);
  EXPECT_TRUE(LanesToWatch(other, 7).lanes.empty());
}

// Two lanes of 10 slices and 100 MB each, planned for 10 s: 10 MB/s each.
class LaneLooks : public ::testing::Test {
 protected:
  // Of 1 s, after 2 s: what has come on each lane, and how long the network held up each stream.
  LaneLook Look(uint64_t first, uint64_t second, double first_held = 1, double second_held = 1) {
    return LookAtLanes(plan_,
                       {{0, "a", "b", 20'000'000, 10'000'000, 0.1},
                        {0, "b", "r", 10'000'000 + first, first, first_held},
                        {1, "c", "r", 10'000'000 + second, second, second_held}},
                       1);
  }

  const WatchedLanes plan_{
      {{10, {{"a", "b", 100'000'000}, {"b", "r", 100'000'000}}}, {10, {{"c", "r", 100'000'000}}}},
      10};
};

TEST_F(LaneLooks, AsPlanned) {
  const LaneLook look = Look(10'000'000, 10'000'000);
  EXPECT_TRUE(look.slower.empty());
  EXPECT_NEAR(look.seconds_left, 8, 1e-6);
  EXPECT_TRUE(Look(10'000'000, 7'000'000).slower.empty()) << "less than a third is no matter";
}

// 86 of 100 MB are left at 4 MB/s.
TEST_F(LaneLooks, OneLaneIsSlower) {
  const LaneLook look = Look(10'000'000, 4'000'000);
  EXPECT_EQ(look.slower.pairs, (LinkTable{{{"c", "r"}, 4e6}}));
  EXPECT_TRUE(look.slower.up.empty());
  EXPECT_TRUE(look.slower.down.empty());
  EXPECT_NEAR(look.seconds_left, 86 / 4.0, 1e-6);
}

TEST_F(LaneLooks, ItIsNotTheNetwork) {
  EXPECT_TRUE(Look(10'000'000, 4'000'000, 1, 0.2).slower.empty());
  EXPECT_TRUE(Look(10'000'000, 4'000'000, 1, 0.4).slower.empty()) << "10 MB/s while it could";
}

// Nothing came. A slice of ten may be about to: 9 of the 10 slices are left, one a second.
TEST_F(LaneLooks, OneLinkIsDead) {
  const LaneLook look = Look(10'000'000, 0);
  EXPECT_EQ(look.slower.pairs, (LinkTable{{{"c", "r"}, 1}}));
  EXPECT_NEAR(look.seconds_left, 9, 1e-6);
  EXPECT_EQ(Look(10'000'000, 0, 1, 0.5).slower.pairs.at({"c", "r"}), 1) << "or as good as";
}

TEST_F(LaneLooks, AllThatANodeReceives) {
  const LaneLook look = Look(4'000'000, 5'000'000);
  EXPECT_EQ(look.slower.down, (std::map<std::string, double>{{"r", 9e6}}));
  EXPECT_TRUE(look.slower.pairs.empty());
}

TEST_F(LaneLooks, AllThatANodeSends) {
  const WatchedLanes plan{{{10, {{"a", "b", 100'000'000}}}, {10, {{"a", "c", 100'000'000}}}}, 10};
  const LaneLook look = LookAtLanes(
      plan, {{0, "a", "b", 4'000'000, 4'000'000, 1}, {1, "a", "c", 2'000'000, 2'000'000, 1}}, 1);
  EXPECT_EQ(look.slower.up, (std::map<std::string, double>{{"a", 6e6}}));
  EXPECT_TRUE(look.slower.pairs.empty());
}

// What a hop before it held up says nothing of the node's own link.
TEST_F(LaneLooks, AllThatANodeSendsButWhatIsHeldUpElsewhere) {
  const WatchedLanes plan{{{10, {{"a", "b", 100'000'000}}},
                           {10, {{"a", "c", 100'000'000}}},
                           {10, {{"a", "d", 100'000'000}}}},
                          10};
  const LaneLook look = LookAtLanes(plan,
                                    {{0, "a", "b", 4'000'000, 4'000'000, 1},
                                     {1, "a", "c", 2'000'000, 2'000'000, 1},
                                     {2, "a", "d", 3'000'000, 3'000'000, 0.1}},
                                    1);
  EXPECT_EQ(look.slower.up, (std::map<std::string, double>{{"a", 9e6}}));
  EXPECT_TRUE(look.slower.pairs.empty());
}

TEST_F(LaneLooks, OneOfTwoThatANodeSends) {
  const WatchedLanes plan{{{10, {{"a", "b", 100'000'000}}}, {10, {{"a", "c", 100'000'000}}}}, 10};
  const LaneLook look = LookAtLanes(
      plan, {{0, "a", "b", 4'000'000, 4'000'000, 1}, {1, "a", "c", 10'000'000, 10'000'000, 1}}, 1);
  EXPECT_EQ(look.slower.pairs, (LinkTable{{{"a", "b"}, 4e6}}));
  EXPECT_TRUE(look.slower.up.empty());
}

TEST_F(LaneLooks, EachStreamOfATreeForItself) {
  const WatchedLanes tree{{{10, {{"a", "r", 100'000'000}, {"b", "r", 100'000'000}}}}, 10};
  const LaneLook look = LookAtLanes(
      tree, {{0, "a", "r", 4'000'000, 4'000'000, 1}, {0, "b", "r", 10'000'000, 10'000'000, 0.1}},
      1);
  EXPECT_EQ(look.slower.pairs, (LinkTable{{{"a", "r"}, 4e6}}));
  WatchedLanes empty = tree;
  for (WatchedLanes::Stream& stream : empty.lanes[0].streams) stream.bytes = 0;
  EXPECT_TRUE(LookAtLanes(empty, {{0, "a", "r", 4, 4, 1}}, 1).slower.empty());
}

TEST_F(LaneLooks, WhatTellsEnough) {
  const LinkTable held{{{"b", "r"}, 1e6 / 0.3}};
  EXPECT_EQ(Look(1'000'000, 10'000'000, 0.3).slower.pairs, held);
  EXPECT_TRUE(Look(1'000'000, 10'000'000, 0.29).slower.pairs.empty());
  WatchedLanes plan = plan_;
  const StreamPassed little{0, "b", "r", 10, 10, 1};
  plan.seconds = 100'000'000.0 / (256 << 10);
  EXPECT_EQ(LookAtLanes(plan, {little}, 1).slower.pairs.size(), 1u);
  plan.seconds += 1;
  EXPECT_TRUE(LookAtLanes(plan, {little}, 1).slower.pairs.empty());
  plan.seconds = 1;
  EXPECT_EQ(LookAtLanes(plan, {little}, 1).slower.pairs.size(), 1u) << "a short plan";
}

TEST_F(LaneLooks, NothingToJudge) {
  EXPECT_EQ(LookAtLanes(plan_, {}, 1).seconds_left, 0) << "all lanes have ended";
  EXPECT_TRUE(LookAtLanes(plan_, {{7, "a", "b", 1, 1, 1}}, 1).slower.empty()) << "no such lane";
  EXPECT_TRUE(LookAtLanes(plan_, {{0, "b", "r", 1, 1, 1}}, 0).slower.empty());
  EXPECT_EQ(LookAtLanes(plan_, {{0, "b", "r", 1, 1, 1}}, 0).seconds_left, 0) << "no time passed";
  WatchedLanes small = plan_;
  small.seconds = 10'000;  // 10 kB a second
  EXPECT_TRUE(LookAtLanes(small, {{0, "b", "r", 10, 10, 1}}, 1).slower.empty());
}

}  // namespace
}  // namespace ecpipe::lane_watch_test
