// SPDX-License-Identifier: Apache-2.0
// How a byte range of a block is cut into slices, and which slices a lane carries.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ecpipe {

// The largest payload of one frame, and so the largest slice. Pipe-B (§6.4) uses one slice a block,
// so it has to hold a block of the usual size; a peer cannot make us allocate more than this.
inline constexpr uint32_t kMaxSliceBytes = 64u << 20;
// A stripe's blocks may be at most this long; keeps every slice count within 32 bits.
inline constexpr uint64_t kMaxBlockBytes = uint64_t{1} << 40;
inline constexpr uint32_t kDefaultSliceBytes = 32u << 10;
// A repair has at most this many slices: it bounds the bitmaps that requestor and coordinator keep.
inline constexpr uint64_t kMaxSliceCount = uint64_t{1} << 24;

// Bytes [offset, offset + bytes) of the block, cut from `offset` on into slices of `slice_bytes`;
// the last slice may be short. The grid starts at the range, not at the block: only the bytes that
// were asked for are read and sent.
struct SliceGrid {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint32_t slice_bytes = kDefaultSliceBytes;

  uint32_t slice_count() const {
    return static_cast<uint32_t>((bytes + slice_bytes - 1) / slice_bytes);
  }
  // Position of a slice in the block. Requires slice_index < slice_count().
  uint64_t SliceOffset(uint32_t slice_index) const {
    return offset + uint64_t{slice_index} * slice_bytes;
  }
  uint32_t SliceBytes(uint32_t slice_index) const {
    const uint64_t begin = uint64_t{slice_index} * slice_bytes;
    const uint64_t rest = bytes - begin;
    return rest < slice_bytes ? static_cast<uint32_t>(rest) : slice_bytes;
  }

  // INVALID_ARGUMENT when the range is empty or outside the limits above, or slice_bytes is 0 or
  // over kMaxSliceBytes. Every grid that comes from outside goes through this once.
  [[nodiscard]] absl::Status Validate() const;

  friend bool operator==(const SliceGrid&, const SliceGrid&) = default;
};

// `count` slices: first, first + stride, first + 2 * stride, ...
struct SliceRun {
  uint32_t first = 0;
  uint32_t count = 0;
  uint32_t stride = 1;

  friend bool operator==(const SliceRun&, const SliceRun&) = default;
};

// The slices of one lane in the order in which every stream of the lane carries them. A position in
// that order is called an ordinal.
class LaneSlices {
 public:
  // More runs than this are refused: it bounds a plan message, and resuming a repair never needs
  // more once its missing slices have been merged into runs.
  static constexpr size_t kMaxRuns = 4096;

  LaneSlices() = default;
  // All slices 0 .. slice_count-1.
  static LaneSlices All(uint32_t slice_count);
  // INVALID_ARGUMENT unless the runs are non-empty, strictly ascending without overlap between
  // runs' intervals or with stride interleaving inside one run, and all below `slice_count`.
  static absl::StatusOr<LaneSlices> Create(std::vector<SliceRun> runs, uint32_t slice_count);

  uint32_t count() const { return count_; }
  // The slice at an ordinal. O(log runs). Requires ordinal < count().
  uint32_t SliceIndex(uint32_t ordinal) const;
  const std::vector<SliceRun>& runs() const { return runs_; }

 private:
  std::vector<SliceRun> runs_;
  std::vector<uint32_t> run_start_;  // ordinal of the first slice of each run
  uint32_t count_ = 0;
};

// Which slices each lane carries, of lanes with `counts` slices that add up to slice_count: some of
// each lane in turn, so that they arrive about in order.
std::vector<LaneSlices> Interleaved(const std::vector<uint32_t>& counts, uint32_t slice_count);

}  // namespace ecpipe
