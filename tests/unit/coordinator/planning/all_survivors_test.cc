// SPDX-License-Identifier: Apache-2.0
#include "coordinator/planning/all_survivors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "coordinator/planning/plan_cost.h"

namespace ecpipe::all_survivors_test {
namespace {

// The time of the helper that is busy longest, in blocks over a link of speed 1.
double TimeOf(const std::vector<SharedLane>& lanes, const std::vector<double>& speeds,
              uint32_t slice_count) {
  std::vector<double> busy(speeds.size(), 0);
  for (const SharedLane& lane : lanes) {
    for (const int helper : lane.helpers) {
      const auto i = static_cast<size_t>(helper);
      busy[i] += lane.slices / (speeds[i] * slice_count);
    }
  }
  return *std::max_element(busy.begin(), busy.end());
}

// The least time, found another way: by halving.
double Bound(const std::vector<double>& speeds, int k) {
  double low = 0;
  double high = 1 / *std::min_element(speeds.begin(), speeds.end());
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    double sum = 0;
    for (const double speed : speeds) sum += std::min(1.0, speed * middle);
    (sum >= k ? high : low) = middle;
  }
  return high;
}

void ExpectCovers(const std::vector<SharedLane>& lanes, size_t helpers, int k,
                  uint32_t slice_count) {
  uint32_t slices = 0;
  for (const SharedLane& lane : lanes) {
    EXPECT_GT(lane.slices, 0u);
    slices += lane.slices;
    EXPECT_EQ(std::set<int>(lane.helpers.begin(), lane.helpers.end()).size(),
              static_cast<size_t>(k));
  }
  EXPECT_EQ(slices, slice_count);
  EXPECT_LE(lanes.size(), helpers);
}

TEST(ShareSlices, SpeedsAreInAnyUnit) {
  const std::vector<double> speeds{1, 2, 3, 4, 5};
  const auto lanes = ShareSlices(speeds, 2, 100);
  for (const double unit : {1e-6, 1e6}) {
    std::vector<double> scaled;
    for (const double speed : speeds) scaled.push_back(speed * unit);
    const auto same = ShareSlices(scaled, 2, 100);
    ASSERT_EQ(same.size(), lanes.size());
    for (size_t i = 0; i < lanes.size(); ++i) EXPECT_EQ(same[i].helpers, lanes[i].helpers);
  }
}

TEST(ShareSlices, EqualHelpersDoTheSame) {
  const std::vector<double> speeds(13, 1.0);
  const auto lanes = ShareSlices(speeds, 10, 1300);
  ExpectCovers(lanes, 13, 10, 1300);
  EXPECT_NEAR(TimeOf(lanes, speeds, 1300), 10 / 13.0, 1e-9);
}

TEST(ShareSlices, ReachesTheBoundForAnySpeeds) {
  std::mt19937_64 random(20260401);
  constexpr uint32_t kSlices = 100'000;
  for (int round = 0; round < 500; ++round) {
    const size_t helpers = 1 + random() % 20;
    const int k = 1 + static_cast<int>(random() % helpers);
    std::vector<double> speeds;
    for (size_t i = 0; i < helpers; ++i) {
      speeds.push_back(0.5 + static_cast<double>(random() % 1000) / 100);
    }
    const auto lanes = ShareSlices(speeds, k, kSlices);
    ASSERT_NO_FATAL_FAILURE(ExpectCovers(lanes, helpers, k, kSlices));
    const double slowest = *std::min_element(speeds.begin(), speeds.end());
    EXPECT_NEAR(TimeOf(lanes, speeds, kSlices), Bound(speeds, k), 1 / (slowest * kSlices))
        << "round " << round;
  }
}

TEST(ShareSlices, AStragglerGetsWhatItCanDo) {
  const std::vector<double> speeds = {1, 1, 1, 1, 0.1};
  const auto lanes = ShareSlices(speeds, 4, 4100);
  ExpectCovers(lanes, 5, 4, 4100);
  EXPECT_NEAR(TimeOf(lanes, speeds, 4100), 4 / 4.1, 1e-3);
}

TEST(ShareSlices, FewSlicesAreStillShared) {
  for (uint32_t slices = 1; slices < 30; ++slices) {
    for (int k = 1; k <= 5; ++k) {
      ExpectCovers(ShareSlices({3, 1, 4, 1, 5}, k, slices), 5, k, slices);
    }
  }
}

// 13 survivors, k = 10, and a requestor whose link is twice as fast: 1.3 times faster than rp.
TEST(ShareSlices, BeatsOnePathWhenTheRequestorIsFast) {
  constexpr uint32_t kSlices = 2048;
  PlanRequest request;
  request.grid = {0, uint64_t{kSlices} * 32768, 32768};
  request.code = CreateErasureCode("rs(14,10)").value();
  for (int i = 1; i < 14; ++i) request.survivors.push_back(i);
  request.equation = request.code->Equation(std::vector<int>{0}, request.survivors).value();
  for (int i = 0; i < 14; ++i) request.block_nodes.push_back("N" + std::to_string(i));
  request.requestors = {"R"};
  request.cluster.nodes = {{.node = "R", .down_bytes_per_second = 250e6}};
  request.scheme = "rp";
  const double one_path = EstimateCost(MakePlan(request).value(), request.cluster).timeslots;
  request.scheme = "rp-all";
  const double all = EstimateCost(MakePlan(request).value(), request.cluster).timeslots;
  EXPECT_NEAR(one_path / all, 1.3, 0.02);
  // The trees of rp-flow can do the same with shorter ways.
  request.scheme = "auto";
  const RepairPlan best = ChoosePlan(request).value();
  EXPECT_EQ(best.scheme, "rp-flow");
  EXPECT_LE(EstimateCost(best, request.cluster).timeslots, all);
}

TEST(ShareSlicesDeathTest, HasBounds) {
  EXPECT_DEATH(ShareSlices({1, 1}, 0, 5), "broken invariant");
  EXPECT_DEATH(ShareSlices({1, 1}, 3, 5), "broken invariant");
  EXPECT_DEATH(ShareSlices({1, 1}, 1, 0), "broken invariant");
}

}  // namespace
}  // namespace ecpipe::all_survivors_test
