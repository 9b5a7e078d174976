// SPDX-License-Identifier: Apache-2.0
#include "coordinator/planning/plan_cost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <optional>
#include <random>
#include <tuple>

#include "coordinator/planning/scheme.h"

namespace ecpipe::plan_cost_test {
namespace {

using ::testing::AnyOf;

constexpr uint64_t kSeed = 20260108;
constexpr double kDefaultSpeed = 1000;

struct Shape {
  int k = 4;
  int failed = 1;
  uint32_t slices = 6;
};

// Blocks 0 .. failed-1 are lost; the next k help; slices of 100 bytes.
PlanRequest RequestFor(const Shape& shape, const std::string& scheme) {
  const std::string code =
      "rs(" + std::to_string(shape.k + shape.failed) + "," + std::to_string(shape.k) + ")";
  std::vector<int> failed(static_cast<size_t>(shape.failed));
  std::iota(failed.begin(), failed.end(), 0);
  std::vector<int> survivors(static_cast<size_t>(shape.k));
  std::iota(survivors.begin(), survivors.end(), shape.failed);
  PlanRequest request;
  request.scheme = scheme;
  request.grid = {.offset = 0, .bytes = uint64_t{shape.slices} * 100, .slice_bytes = 100};
  request.equation = (*CreateErasureCode(code))->Equation(failed, survivors).value();
  for (int i = 0; i < shape.k + shape.failed; ++i) {
    request.block_nodes.push_back("N" + std::to_string(i));
  }
  request.cluster.default_bytes_per_second = kDefaultSpeed;
  for (int i = 0; i < shape.failed; ++i) request.requestors.push_back("R" + std::to_string(i));
  return request;
}

ClusterView Equal() { return {.default_bytes_per_second = kDefaultSpeed}; }

PlanCost CostOf(const PlanRequest& request) {
  return EstimateCost(MakePlan(request).value(), request.cluster);
}

NodeLoad LoadOf(const PlanCost& cost, const std::string& node) {
  for (const NodeLoad& load : cost.loads) {
    if (load.node == node) return load;
  }
  ADD_FAILURE() << node << " has no load";
  return {};
}

TEST(PlanCost, PipeliningTakesThePapersTimeslots) {
  for (const int k : {1, 2, 4, 10, 20}) {
    for (const int failed : {1, 2, 4}) {
      for (const uint32_t slices : {1u, 6u, 1000u}) {
        const PlanCost cost = CostOf(RequestFor({k, failed, slices}, "rp"));
        EXPECT_NEAR(cost.timeslots, failed * (1 + (k - 1.0) / slices), 1e-9)
            << k << " " << failed << " " << slices;
        EXPECT_EQ(cost.depth, k);
        EXPECT_EQ(cost.busiest_link_bytes, uint64_t{slices} * 100 * failed);
      }
    }
  }
}

// docs/design/002-schemes.md: with the best share of the path, helpers' uplinks and requestors'
// downlinks are busy for the same time.
TEST(PlanCost, MixedLanesTakeLessThanAPathOrAStar) {
  for (const int k : {2, 6, 10, 20}) {
    for (const int f : {1, 2, 3, 4}) {
      const uint32_t slices = 2000;
      const PlanCost cost = CostOf(RequestFor({k, f, slices}, "mixed"));
      const double expected = 1 + (f - 1) * (k - 1.0) / (k - 1 + f * (f - 1));
      EXPECT_NEAR(cost.timeslots, expected, 0.002 * f + f * static_cast<double>(k) / slices)
          << k << " " << f;
      EXPECT_LE(cost.timeslots, CostOf(RequestFor({k, f, slices}, "rp")).timeslots + 1e-9);
    }
  }
  EXPECT_NEAR(CostOf(RequestFor({10, 4, 20'000}, "mixed")).timeslots, 16 / 7.0, 0.003);
}

TEST(PlanCost, ConventionalTakesKTimeslots) {
  for (const int k : {1, 2, 4, 10, 20}) {
    for (const uint32_t slices : {1u, 1000u}) {
      const PlanCost cost = CostOf(RequestFor({k, 1, slices}, "conventional"));
      EXPECT_NEAR(cost.timeslots, k, 1e-9);
      EXPECT_EQ(cost.depth, 1);
    }
  }
}

// The paper counts k + f - 1 timeslots: the first requestor takes k blocks, then sends f - 1. Here
// it forwards slice by slice, so that its downlink and its uplink work at the same time.
TEST(PlanCost, ConventionalForwardsWhileItReceives) {
  for (const int failed : {2, 3, 4}) {
    const PlanCost cost = CostOf(RequestFor({10, failed, 100}, "conventional"));
    const NodeLoad centre = LoadOf(cost, "R0");
    EXPECT_EQ(centre.down_bytes, 10u * 10'000);
    EXPECT_EQ(centre.up_bytes, static_cast<uint64_t>(failed - 1) * 10'000);
    EXPECT_EQ(cost.total_bytes, static_cast<uint64_t>(10 + failed - 1) * 10'000);
    EXPECT_NEAR(cost.timeslots, 10 + 0.01, 1e-9);
  }
}

TEST(PlanCost, PprTakesLogarithmicTimeslots) {
  constexpr uint32_t kSlices = 100'000;
  for (int k = 1; k <= 40; ++k) {
    const PlanCost cost = CostOf(RequestFor({k, 1, kSlices}, "ppr"));
    const int rounds = static_cast<int>(std::ceil(std::log2(k + 1)));
    EXPECT_NEAR(cost.timeslots, rounds, 1e-3) << k;  // besides filling the tree
    EXPECT_LE(cost.depth, rounds) << k;
    EXPECT_EQ(cost.total_bytes, static_cast<uint64_t>(k) * kSlices * 100) << k;
  }
}

TEST(PlanCost, OneSlowLinkSetsThePace) {
  PlanRequest request = RequestFor({4, 1, 6}, "rp");
  request.cluster.nodes = {{.node = "N2", .up_bytes_per_second = 10}};
  EXPECT_NEAR(CostOf(request).seconds, 600 / 10.0 + 3 * 100 / 10.0, 1e-9);
  request.cluster.nodes = {{.node = "R0", .down_bytes_per_second = 100}};
  EXPECT_NEAR(CostOf(request).seconds, 600 / 100.0 + 3 * 100 / 100.0, 1e-9);
  // The last helper's downlink is slow, but only what it sends out counts for its uplink.
  request.cluster.nodes = {{.node = "N1", .down_bytes_per_second = 1}};
  EXPECT_NEAR(CostOf(request).seconds, 0.6 + 0.3, 1e-9);
}

TEST(PlanCost, APairMayBeSlowerThanItsEnds) {
  PlanRequest request = RequestFor({4, 1, 6}, "rp");
  request.cluster.links = std::make_shared<LinkTable>(LinkTable{
      {{"N1", "N2"}, 10},
      {{"N2", "N1"}, 1},    // not used
      {{"N2", "N3"}, 1e9},  // no faster than its ends
  });
  EXPECT_NEAR(CostOf(request).seconds, 600 / 10.0 + 3 * 100 / 10.0, 1e-9);
}

TEST(PlanCost, RacksMayHaveASpeedBetweenThem) {
  PlanRequest request = RequestFor({4, 1, 6}, "rp");
  request.cluster.nodes = {{.node = "N1", .rack = "/a"}, {.node = "N2", .rack = "/b"}};
  request.cluster.links = std::make_shared<LinkTable>(LinkTable{{{"/a", "/b"}, 10}});
  EXPECT_NEAR(CostOf(request).seconds, 600 / 10.0 + 3 * 100 / 10.0, 1e-9);
  request.cluster.links =
      std::make_shared<LinkTable>(LinkTable{{{"/a", "/b"}, 10}, {{"N1", "N2"}, 20}});
  EXPECT_NEAR(CostOf(request).seconds, 600 / 20.0 + 3 * 100 / 20.0, 1e-9);
}

TEST(PlanCost, CountsWhatLeavesItsRack) {
  PlanRequest request = RequestFor({4, 1, 6}, "rp");
  request.cluster.nodes = {{.node = "N1", .rack = "a"},
                           {.node = "N2", .rack = "b"},
                           {.node = "N3", .rack = "b"},
                           {.node = "N4"},
                           {.node = "R0", .rack = "a"}};
  EXPECT_EQ(CostOf(request).cross_rack_bytes, 600u) << "N1 to N2; what is unknown is not counted";
}

TEST(PlanCost, ReadingFromSeveralHelpersSharesTheEdge) {
  for (const bool cyclic : {false, true}) {
    PlanRequest request = RequestFor({5, 1, 4000}, cyclic ? "rp-cyclic" : "rp");
    LinkTable edge;
    for (int i = 1; i <= 5; ++i) edge[{"N" + std::to_string(i), "R0"}] = 100;
    request.cluster.links = std::make_shared<LinkTable>(edge);
    EXPECT_NEAR(CostOf(request).timeslots, cyclic ? 10 / 4.0 : 10, 0.02);
  }
}

TEST(PlanCost, UnknownSpeedsAreTheDefault) {
  PlanRequest request = RequestFor({4, 1, 6}, "rp");
  const double plain = CostOf(request).seconds;
  request.cluster.nodes = {{.node = "N1"}, {.node = "elsewhere", .up_bytes_per_second = 1}};
  EXPECT_DOUBLE_EQ(CostOf(request).seconds, plain);
}

TEST(PlanCost, StreamsInsideANodeAreFree) {
  PlanRequest request = RequestFor({4, 1, 6}, "conventional");
  request.requestors = {"N1"};
  const PlanCost cost = CostOf(request);
  EXPECT_EQ(cost.total_bytes, 3u * 600);
  EXPECT_EQ(LoadOf(cost, "N1").down_bytes, 3u * 600);
  EXPECT_EQ(LoadOf(cost, "N1").up_bytes, 0u);
}

TEST(PlanCost, CountsAShortLastSliceOnce) {
  PlanRequest request = RequestFor({4, 1, 6}, "rp");
  request.grid = {.offset = 7, .bytes = 250, .slice_bytes = 100};
  EXPECT_EQ(CostOf(request).total_bytes, 4u * 250);
  // The odd slices alone, as when a repair goes on: without the short one at the end.
  RepairPlan plan = MakePlan(request).value();
  plan.lanes[0].slices = LaneSlices::Create({{1, 1, 2}}, 3).value();
  EXPECT_EQ(EstimateCost(plan, Equal()).total_bytes, 4u * 100);
  plan.lanes.push_back(plan.lanes[0]);
  plan.lanes[1].slices = LaneSlices::Create({{0, 2, 2}}, 3).value();
  EXPECT_EQ(EstimateCost(plan, Equal()).total_bytes, 4u * 250);
}

TEST(PlanCost, ASliceMayBeLargerThanTheRange) {
  PlanRequest request = RequestFor({4, 1, 1}, "rp");
  request.grid = {.offset = 0, .bytes = 50, .slice_bytes = 1000};
  EXPECT_NEAR(CostOf(request).timeslots, 4, 1e-9);
}

TEST(PredictAll, SaysWhatEachSchemeTakes) {
  const auto predictions = PredictAll(RequestFor({4, 1, 6}, "auto"));
  ASSERT_TRUE(predictions.ok()) << predictions.status();
  EXPECT_EQ(predictions->size(), SchemesThatRepair().size());
  for (const auto& [scheme, cost] : *predictions) {
    EXPECT_DOUBLE_EQ(cost.seconds, CostOf(RequestFor({4, 1, 6}, scheme)).seconds) << scheme;
  }
}

TEST(ChoosePlan, PipelinesWhenThereAreManySlices) {
  for (const char* name : {"auto", ""}) {
    EXPECT_EQ(ChoosePlan(RequestFor({10, 1, 1000}, name))->scheme, "rp");
    EXPECT_EQ(ChoosePlan(RequestFor({10, 1, 1}, name))->scheme, "ppr");
  }
}

TEST(ChoosePlan, AmongEqualsTakesTheFirst) {
  EXPECT_EQ(ChoosePlan(RequestFor({1, 1, 10}, "auto"))->scheme, "rp");
}

TEST(ChoosePlan, TakesTheSchemeThatWasNamed) {
  for (const char* scheme : {"rp", "ppr", "conventional", "direct"}) {
    EXPECT_EQ(ChoosePlan(RequestFor({1, 1, 10}, scheme))->scheme, scheme);
  }
  EXPECT_FALSE(ChoosePlan(RequestFor({1, 1, 10}, "magic")).ok());
}

TEST(ChoosePlan, RefusesWhatNoSchemeCanServe) {
  PlanRequest request = RequestFor({4, 1, 6}, "auto");
  request.grid.bytes = 0;
  EXPECT_EQ(ChoosePlan(request).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(ChoosePlan, TakesTheCheapestOfRandomClusters) {
  std::mt19937_64 random(kSeed);
  for (int round = 0; round < 200; ++round) {
    const Shape shape{1 + static_cast<int>(random() % 12), 1 + static_cast<int>(random() % 3),
                      1 + static_cast<uint32_t>(random() % 40)};
    PlanRequest request = RequestFor(shape, "auto");
    for (const std::string& node : request.block_nodes) {
      request.cluster.nodes.push_back(
          {.node = node,
           .up_bytes_per_second = static_cast<double>(random() % 4) * 500,
           .down_bytes_per_second = static_cast<double>(random() % 4) * 500});
    }
    std::optional<std::tuple<double, uint64_t, uint64_t>> least;
    std::string expected;
    for (const std::string& scheme : SchemesThatRepair()) {
      request.scheme = scheme;
      const PlanCost cost = CostOf(request);
      const std::tuple key(cost.seconds, cost.cross_rack_bytes, cost.total_bytes);
      if (least && key >= *least) continue;
      least = key;
      expected = scheme;
    }
    request.scheme = "auto";
    EXPECT_EQ(ChoosePlan(request)->scheme, expected) << "round " << round;
  }
}

}  // namespace
}  // namespace ecpipe::plan_cost_test
