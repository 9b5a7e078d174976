// SPDX-License-Identifier: Apache-2.0
#include "model/plan/slice_grid.h"

#include <algorithm>
#include <string>

#include "base/check.h"

namespace ecpipe {

absl::Status SliceGrid::Validate() const {
  if (slice_bytes == 0) return absl::InvalidArgumentError("the slice size must not be 0 bytes");
  if (slice_bytes > kMaxSliceBytes) {
    return absl::InvalidArgumentError("the slice size of " + std::to_string(slice_bytes) +
                                      " bytes is over the limit of " +
                                      std::to_string(kMaxSliceBytes) + " bytes");
  }
  if (bytes == 0) return absl::InvalidArgumentError("the byte range is empty");
  if (bytes > kMaxBlockBytes || offset > kMaxBlockBytes - bytes) {
    return absl::InvalidArgumentError("the byte range ends beyond the largest block size of " +
                                      std::to_string(kMaxBlockBytes) + " bytes");
  }
  if ((bytes + slice_bytes - 1) / slice_bytes > kMaxSliceCount) {
    return absl::InvalidArgumentError(
        "a slice size of " + std::to_string(slice_bytes) + " bytes cuts " + std::to_string(bytes) +
        " bytes into more than " + std::to_string(kMaxSliceCount) + " slices; use larger slices");
  }
  return absl::OkStatus();
}

LaneSlices LaneSlices::All(uint32_t slice_count) {
  ECPIPE_CHECK(slice_count > 0);
  LaneSlices slices;
  slices.runs_ = {SliceRun{0, slice_count, 1}};
  slices.run_start_ = {0};
  slices.count_ = slice_count;
  return slices;
}

absl::StatusOr<LaneSlices> LaneSlices::Create(std::vector<SliceRun> runs, uint32_t slice_count) {
  if (runs.empty()) return absl::InvalidArgumentError("a lane carries no slices");
  if (runs.size() > kMaxRuns) {
    return absl::InvalidArgumentError("a lane has too many runs of slices");
  }
  LaneSlices slices;
  uint64_t next_free = 0;
  for (const SliceRun& run : runs) {
    if (run.count == 0 || run.stride == 0) {
      return absl::InvalidArgumentError("a run of slices has a count or stride of 0");
    }
    const uint64_t last = run.first + uint64_t{run.count - 1} * run.stride;
    if (run.first < next_free || last >= slice_count) {
      return absl::InvalidArgumentError("the runs of slices of a lane overlap, or leave the range");
    }
    next_free = last + 1;
    slices.run_start_.push_back(slices.count_);
    slices.count_ += run.count;
  }
  slices.runs_ = std::move(runs);
  return slices;
}

uint32_t LaneSlices::SliceIndex(uint32_t ordinal) const {
  ECPIPE_CHECK(ordinal < count_);
  const auto after = std::upper_bound(run_start_.begin(), run_start_.end(), ordinal);
  const size_t index = static_cast<size_t>(after - run_start_.begin()) - 1;
  const SliceRun& run = runs_[index];
  return run.first + (ordinal - run_start_[index]) * run.stride;
}

std::vector<LaneSlices> Interleaved(const std::vector<uint32_t>& counts, uint32_t slice_count) {
  // A lane may only lead the others by so many slices as a stream has credit for, hence short runs.
  constexpr uint32_t kMostRounds = 512;
  const auto lane_count = static_cast<uint32_t>(counts.size());
  const uint64_t rounds = std::clamp(slice_count / lane_count, 1u, kMostRounds);
  std::vector<std::vector<SliceRun>> runs(counts.size());
  uint32_t next = 0;
  for (uint64_t round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < counts.size(); ++i) {
      const uint64_t done = counts[i] * round / rounds;
      const auto count = static_cast<uint32_t>(counts[i] * (round + 1) / rounds - done);
      if (count > 0) runs[i].push_back({next, count, 1});
      next += count;
    }
  }
  std::vector<LaneSlices> slices;
  for (std::vector<SliceRun>& of_lane : runs) {
    slices.push_back(LaneSlices::Create(std::move(of_lane), slice_count).value());
  }
  return slices;
}

}  // namespace ecpipe
