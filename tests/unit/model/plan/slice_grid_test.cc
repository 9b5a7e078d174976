// SPDX-License-Identifier: Apache-2.0
#include "model/plan/slice_grid.h"

#include <gtest/gtest.h>

namespace ecpipe::slice_grid_test {
namespace {

TEST(SliceGrid, TheLastSliceMayBeShort) {
  const SliceGrid grid{.offset = 10, .bytes = 25, .slice_bytes = 10};
  EXPECT_TRUE(grid.Validate().ok());
  EXPECT_EQ(grid.slice_count(), 3u);
  EXPECT_EQ(grid.SliceOffset(2), 30u);
  EXPECT_EQ(grid.SliceBytes(1), 10u);
  EXPECT_EQ(grid.SliceBytes(2), 5u);
  EXPECT_EQ((SliceGrid{0, 7, 100}).slice_count(), 1u);
  EXPECT_EQ((SliceGrid{0, 7, 100}).SliceBytes(0), 7u);
}

TEST(SliceGrid, Refusals) {
  EXPECT_FALSE((SliceGrid{0, 0, 1}).Validate().ok());
  EXPECT_FALSE((SliceGrid{0, 1, 0}).Validate().ok());
  EXPECT_FALSE((SliceGrid{0, 1, kMaxSliceBytes + 1}).Validate().ok());
  EXPECT_FALSE((SliceGrid{UINT64_MAX, 1, 1}).Validate().ok());
  EXPECT_FALSE((SliceGrid{0, UINT64_MAX, 1}).Validate().ok());
  EXPECT_FALSE((SliceGrid{0, kMaxSliceCount + 1, 1}).Validate().ok());
  EXPECT_TRUE((SliceGrid{0, kMaxBlockBytes, kMaxSliceBytes}).Validate().ok());
}

TEST(LaneSlices, OrdinalsFollowTheRuns) {
  const auto lane = LaneSlices::Create({{1, 3, 2}, {10, 2, 1}}, 12);
  ASSERT_TRUE(lane.ok()) << lane.status();
  ASSERT_EQ(lane->count(), 5u);
  const uint32_t expected[] = {1, 3, 5, 10, 11};
  for (uint32_t i = 0; i < 5; ++i) EXPECT_EQ(lane->SliceIndex(i), expected[i]);
  EXPECT_EQ(LaneSlices::All(4).SliceIndex(3), 3u);
}

TEST(LaneSlices, Refusals) {
  EXPECT_FALSE(LaneSlices::Create({}, 10).ok());
  EXPECT_FALSE(LaneSlices::Create({{0, 0, 1}}, 10).ok());
  EXPECT_FALSE(LaneSlices::Create({{0, 1, 0}}, 10).ok());
  EXPECT_FALSE(LaneSlices::Create({{0, 11, 1}}, 10).ok());
  EXPECT_FALSE(LaneSlices::Create({{5, 1, 1}, {5, 1, 1}}, 10).ok());
  EXPECT_FALSE(LaneSlices::Create({{0, UINT32_MAX, UINT32_MAX}}, UINT32_MAX).ok());
}

}  // namespace
}  // namespace ecpipe::slice_grid_test
