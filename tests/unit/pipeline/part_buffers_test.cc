// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "pipeline/part_runner.h"

namespace ecpipe::part_buffers_test {
namespace {

// A part as a helper has it in a packing of so many trees.
RepairPart PartOfLanes(uint32_t lanes) {
  RepairPart part;
  part.grid = {.offset = 0, .bytes = 64u << 20, .slice_bytes = 32u << 10};
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    HopSpec& hop = part.hops.emplace_back();
    hop.lane = lane;
    hop.slices = LaneSlices::Create({{lane, part.grid.slice_count() / lanes, lanes}},
                                    part.grid.slice_count())
                     .value();
    hop.rows = {0};
    hop.block = LocalBlock{.coefficients = {1}};
    hop.inputs.emplace_back().rows = {0};
  }
  return part;
}

TEST(PartBuffers, ManyLanesTakeASliceEachAndNotARingEach) {
  const uint64_t slice = 32u << 10;
  EXPECT_EQ(PartBufferBytes(PartOfLanes(1), {}), 2u * 16 * slice) << "two rings of 512 KiB";
  EXPECT_EQ(PartBufferBytes(PartOfLanes(8), {}), 8u * 2 * 2 * slice) << "still a MiB";
  EXPECT_EQ(PartBufferBytes(PartOfLanes(64), {}), 64u * 2 * slice);
}

}  // namespace
}  // namespace ecpipe::part_buffers_test
