// SPDX-License-Identifier: Apache-2.0
// Grids, runs of slices and block layouts: what is accepted stays within its range, and each slice
// comes once.
#include "base/check.h"
#include "fuzz_input.h"
#include "model/plan/block_layout.h"
#include "model/plan/slice_grid.h"

namespace ecpipe {
namespace {

void CheckGrid(const SliceGrid& grid) {
  if (!grid.Validate().ok()) return;
  const uint32_t count = grid.slice_count();
  ECPIPE_CHECK(count >= 1 && count <= kMaxSliceCount);
  ECPIPE_CHECK(grid.offset + grid.bytes <= kMaxBlockBytes);
  ECPIPE_CHECK(grid.SliceBytes(0) >= 1 && grid.SliceBytes(0) <= kMaxSliceBytes);
  ECPIPE_CHECK(grid.SliceOffset(count - 1) + grid.SliceBytes(count - 1) ==
               grid.offset + grid.bytes);
}

void CheckRuns(std::vector<SliceRun> runs, uint32_t slice_count) {
  const absl::StatusOr<LaneSlices> slices = LaneSlices::Create(runs, slice_count);
  ECPIPE_CHECK(slices.ok() || absl::IsInvalidArgument(slices.status()));
  if (!slices.ok()) return;
  ECPIPE_CHECK(slices->count() >= 1 && slices->count() <= slice_count && slices->runs() == runs);
  int64_t before = -1;
  // The ends, and some in between: a lane may carry 2^24.
  const uint32_t step = slices->count() / 256 + 1;
  for (uint32_t i = 0; i < slices->count(); i += step) {
    const uint32_t slice = slices->SliceIndex(i);
    ECPIPE_CHECK(slice > before && slice < slice_count);
    before = slice;
  }
  ECPIPE_CHECK(slices->SliceIndex(slices->count() - 1) < slice_count);
}

void CheckLayout(const BlockLayout& layout, uint64_t groups, uint64_t offset, uint64_t bytes) {
  if (!layout.Validate().ok()) return;
  const uint64_t block_bytes = groups * layout.group_bytes();
  const uint64_t own_bytes = block_bytes / layout.sub_blocks;
  ECPIPE_CHECK(layout.Fits(block_bytes));
  if (bytes == 0 || bytes > own_bytes || offset > own_bytes - bytes) return;
  uint64_t next = 0;
  int pieces = 0;
  layout.ForEachPiece(layout.sub_blocks - 1, offset, bytes,
                      [&](uint64_t file_offset, uint64_t at, uint64_t piece_bytes) {
                        ECPIPE_CHECK(at == next && piece_bytes >= 1);
                        ECPIPE_CHECK(file_offset + piece_bytes <= block_bytes);
                        next += piece_bytes;
                        return ++pieces < 256;
                      });
  ECPIPE_CHECK(next == bytes || pieces == 256);
}

}  // namespace
}  // namespace ecpipe

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ecpipe::FuzzInput input(data, size);
  ecpipe::SliceGrid grid;
  grid.offset = input.Take<uint64_t>();
  grid.bytes = input.Take<uint64_t>();
  grid.slice_bytes = input.Take<uint32_t>();
  ecpipe::CheckGrid(grid);
  ecpipe::BlockLayout layout;
  layout.sub_blocks = input.Take<uint8_t>();
  layout.unit_bytes = input.Take<uint32_t>();
  const auto groups = input.Take<uint16_t>();
  const auto offset = input.Take<uint32_t>();
  ecpipe::CheckLayout(layout, groups, offset, input.Take<uint32_t>());
  const auto slice_count = input.Take<uint32_t>();
  std::vector<ecpipe::SliceRun> runs;
  while (!input.empty()) {
    ecpipe::SliceRun& run = runs.emplace_back();
    run.first = input.Take<uint32_t>();
    run.count = input.Take<uint32_t>();
    run.stride = input.Take<uint32_t>();
  }
  ecpipe::CheckRuns(std::move(runs), slice_count);
  return 0;
}
