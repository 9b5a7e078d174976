// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "base/status.h"
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

TEST(PartBuffers, StreamsCountWithWhatTlsHolds) {
  RepairPart part = PartOfLanes(8);
  part.hops[0].outputs.emplace_back();
  EXPECT_EQ(PartBufferBytes(part, {.stream_bytes = 1000}), PartBufferBytes(part, {}) + 9 * 1000);
}

TEST(PartBuffers, PartsThatShareARoomStayWithinIt) {
  PartOptions options;
  options.buffers = std::make_shared<SharedRoom>(3u << 20);
  SharedRoom::Share another(options.buffers.get());
  ASSERT_TRUE(another.Take((2u << 20) + 1));
  const absl::Status full =
      PartRunner::Create(PartOfLanes(1), {}, nullptr, nullptr, options).status();
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
  EXPECT_TRUE(IsOwnShortage(full)) << "no helper is to blame";
  SharedRoom::Share fits(options.buffers.get());
  EXPECT_TRUE(fits.Take(PartBufferBytes(PartOfLanes(1), {}) - 1)) << "a refused one holds nothing";
}

TEST(SharedRoomTest, WhoIsAloneHasAsMuchAsItNeeds) {
  SharedRoom room(10);
  SharedRoom::Share first(&room);
  EXPECT_TRUE(first.Take(8));
  {
    SharedRoom::Share second(&room);
    EXPECT_FALSE(second.Take(3));
    EXPECT_TRUE(second.Take(2));
    EXPECT_FALSE(first.Take(1));
  }
  EXPECT_TRUE(first.Take(100));
}

}  // namespace
}  // namespace ecpipe::part_buffers_test
