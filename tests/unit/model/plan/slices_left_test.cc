// SPDX-License-Identifier: Apache-2.0
#include "model/plan/slices_left.h"

#include <gtest/gtest.h>

#include <set>

namespace ecpipe {
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

// Every way in which a run of neighbours can lie to runs with gaps, against counting.
TEST(SlicesLeft, EachLaneKeepsItsOwn) {
  for (const uint32_t stride : {1u, 2u, 3u, 7u}) {
    for (uint32_t begin = 0; begin < 12; ++begin) {
      for (uint32_t end = begin + 1; end < 100; end += 9) {
        RepairPlan plan = PlanOf({{{1, 5, stride}, {40, 8, stride}}, {{5 * stride + 3, 1, 1}}});
        const std::vector<PlanLane> before = plan.lanes;
        const SlicesLeft left{kGrid, {{begin, end - begin, 1}, {99, 1, 1}}};
        ASSERT_TRUE(left.Validate().ok() || end == 100) << left.Validate();
        ASSERT_TRUE(KeepMissing(left, &plan).ok());
        std::vector<std::set<uint32_t>> expected;
        for (const PlanLane& lane : before) {
          std::set<uint32_t> kept;
          for (const uint32_t slice : SlicesOf(lane)) {
            if ((slice >= begin && slice < end) || slice == 99) kept.insert(slice);
          }
          if (!kept.empty()) expected.push_back(kept);
        }
        ASSERT_EQ(plan.lanes.size(), expected.size());
        for (size_t i = 0; i < expected.size(); ++i) {
          EXPECT_EQ(SlicesOf(plan.lanes[i]), expected[i]) << stride << " " << begin << " " << end;
        }
      }
    }
  }
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
}  // namespace ecpipe
