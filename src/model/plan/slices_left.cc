// SPDX-License-Identifier: Apache-2.0
#include "model/plan/slices_left.h"

#include <algorithm>

#include "base/status.h"

namespace ecpipe {
namespace {

// The slices of `run` in [begin, end); a count of 0 if there are none.
SliceRun Within(const SliceRun& run, uint32_t begin, uint32_t end) {
  const uint32_t skipped = run.first >= begin ? 0 : (begin - run.first - 1) / run.stride + 1;
  const uint32_t below_end = run.first >= end ? 0 : (end - run.first - 1) / run.stride + 1;
  const uint32_t stop = std::min(run.count, below_end);
  if (skipped >= stop) return {0, 0, run.stride};
  return {run.first + skipped * run.stride, stop - skipped, run.stride};
}

}  // namespace

absl::Status SlicesLeft::Validate() const {
  ECPIPE_RETURN_IF_ERROR(grid.Validate());
  if (std::any_of(missing.begin(), missing.end(),
                  [](const SliceRun& run) { return run.stride != 1; })) {
    return absl::InvalidArgumentError("a run of missing slices must have stride 1");
  }
  return LaneSlices::Create(missing, grid.slice_count()).status();
}

uint64_t SlicesLeft::bytes() const {
  uint64_t bytes = 0;
  for (const SliceRun& run : missing) {
    const uint32_t last = run.first + run.count - 1;
    bytes += grid.SliceOffset(last) + grid.SliceBytes(last) - grid.SliceOffset(run.first);
  }
  return bytes;
}

absl::Status KeepMissing(const SlicesLeft& left, RepairPlan* plan) {
  if (plan->grid != left.grid) {
    return absl::InternalError(
        "the plan cuts the block into other slices than the attempt before it");
  }
  std::vector<PlanLane> lanes;
  for (PlanLane& lane : plan->lanes) {
    std::vector<SliceRun> kept;
    for (const SliceRun& run : lane.slices.runs()) {
      for (const SliceRun& missing : left.missing) {
        const SliceRun part = Within(run, missing.first, missing.first + missing.count);
        if (part.count > 0) kept.push_back(part);
      }
    }
    if (kept.empty()) continue;
    ECPIPE_ASSIGN_OR_RETURN(lane.slices,
                            LaneSlices::Create(std::move(kept), plan->grid.slice_count()));
    lanes.push_back(std::move(lane));
  }
  plan->lanes = std::move(lanes);
  return absl::OkStatus();
}

}  // namespace ecpipe
