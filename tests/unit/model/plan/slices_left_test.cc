// SPDX-License-Identifier: Apache-2.0
#include "model/plan/slices_left.h"

#include <gtest/gtest.h>

#include <set>

namespace ecpipe::slices_left_test {
namespace {

constexpr SliceGrid kGrid{.offset = 100, .bytes = 995, .slice_bytes = 10};

RepairPlan PlanOf(const std::vector<std::vector<SliceRun>>& lanes) {
  RepairPlan plan;
  plan.grid = kGrid;
  for (const auto& runs : lanes) {
    plan.lanes.push_back({LaneSlices::Create(runs, kGrid.slice_count()).value(), {}});
  }
  return plan;
}

std::set<uint32_t> SlicesOf(const PlanLane& lane) {
  std::set<uint32_t> slices;
  for (uint32_t i = 0; i < lane.slices.count(); ++i) slices.insert(lane.slices.SliceIndex(i));
  EXPECT_EQ(slices.size(), lane.slices.count());
  return slices;
}

// Every way in which two holes can lie, against counting.
TEST(SlicesLeft, LanesBringAllThatIsMissingInTheirRatio) {
  for (uint32_t begin = 0; begin < 12; ++begin) {
    for (uint32_t end = begin + 1; end < 99; end += 9) {
      RepairPlan plan = PlanOf({{{0, 30, 1}, {40, 30, 2}}, {{31, 1, 1}, {41, 30, 2}}});
      const SlicesLeft left{kGrid, {{begin, end - begin, 1}, {99, 1, 1}}};
      ASSERT_TRUE(left.Validate().ok() || end == 99) << left.Validate();
      std::set<uint32_t> missing{99};
      for (uint32_t slice = begin; slice < end; ++slice) missing.insert(slice);
      ASSERT_TRUE(KeepMissing(left, &plan).ok());
      std::multiset<uint32_t> brought;
      for (const PlanLane& lane : plan.lanes) {
        const std::set<uint32_t> slices = SlicesOf(lane);
        brought.insert(slices.begin(), slices.end());
      }
      EXPECT_EQ(brought, (std::multiset<uint32_t>(missing.begin(), missing.end())));
      // The first lane had 60 of 91 slices.
      EXPECT_NEAR(plan.lanes[0].slices.count(), missing.size() * 60.0 / 91, 1);
    }
  }
}

// What lane 1 alone left behind, every second slice, is for both.
TEST(SlicesLeft, WhatOneLaneLeftBehindIsForAll) {
  RepairPlan plan = PlanOf({{{0, 50, 2}}, {{1, 50, 2}}});
  SlicesLeft left{kGrid, {}};
  for (uint32_t slice = 1; slice < 100; slice += 2) left.missing.push_back({slice, 1, 1});
  ASSERT_TRUE(KeepMissing(left, &plan).ok());
  ASSERT_EQ(plan.lanes.size(), 2u);
  EXPECT_EQ(plan.lanes[0].slices.count(), 25u);
  EXPECT_EQ(plan.lanes[0].slices.SliceIndex(0), 1u);
  EXPECT_EQ(plan.lanes[1].slices.SliceIndex(0), 3u) << "in turn";
}

TEST(SlicesLeft, ALaneOfFewMayHaveNone) {
  RepairPlan plan = PlanOf({{{0, 1, 1}}, {{1, 99, 1}}});
  ASSERT_TRUE(KeepMissing({kGrid, {{10, 3, 1}, {20, 2, 1}}}, &plan).ok());
  ASSERT_EQ(plan.lanes.size(), 1u);
  EXPECT_EQ(SlicesOf(plan.lanes[0]), (std::set<uint32_t>{10, 11, 12, 20, 21}));
  EXPECT_EQ(plan.lanes[0].slices.runs().size(), 2u);
}

TEST(SlicesLeft, CountsBytesWithTheShortLastSlice) {
  EXPECT_EQ((SlicesLeft{kGrid, {{0, 2, 1}, {98, 2, 1}}}.bytes()), 20u + 15u);
  EXPECT_EQ((SlicesLeft{kGrid, {{0, 100, 1}}}.bytes()), 995u);
}

TEST(SlicesLeft, RefusesWhatCannotBe) {
  const auto refused = [](std::vector<SliceRun> missing) {
    return absl::IsInvalidArgument(SlicesLeft{kGrid, std::move(missing)}.Validate());
  };
  EXPECT_FALSE(refused({{0, 100, 1}}));
  EXPECT_TRUE(refused({}));
  EXPECT_TRUE(refused({{0, 101, 1}}));
  EXPECT_TRUE(refused({{0, 0, 1}}));
  EXPECT_TRUE(refused({{0, 5, 2}}));
  EXPECT_TRUE(refused({{5, 5, 1}, {9, 1, 1}}));
  EXPECT_TRUE(refused({{UINT32_MAX, UINT32_MAX, 1}}));
  EXPECT_TRUE(absl::IsInvalidArgument((SlicesLeft{{0, 0, 10}, {{0, 1, 1}}}.Validate())));
  RepairPlan plan = PlanOf({{{0, 100, 1}}});
  plan.grid.offset = 0;
  EXPECT_TRUE(absl::IsInternal(KeepMissing({kGrid, {{0, 1, 1}}}, &plan)));
}

}  // namespace
}  // namespace ecpipe::slices_left_test
