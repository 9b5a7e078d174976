// SPDX-License-Identifier: Apache-2.0
// min(k - 1, s) lanes, each the same ring of helpers begun at another one; slice i travels on lane
// i mod (k - 1). The requestor reads from k - 1 helpers in parallel, so that no single link into it
// limits the repair.
#include <algorithm>

#include "base/status.h"
#include "coordinator/planning/lanes.h"
#include "coordinator/planning/scheme.h"

namespace ecpipe::schemes {
namespace {

absl::StatusOr<PlanLanes> PlanCyclic(const PlanRequest& request) {
  const uint32_t slices = request.grid.slice_count();
  const auto k = static_cast<uint32_t>(request.equation.terms.size());
  const uint32_t lane_count = std::clamp(k - 1, 1u, slices);
  std::vector<EquationTerm> ring = request.equation.terms;
  PlanLanes lanes;
  for (uint32_t first = 0; first < lane_count; ++first) {
    PlanLane lane = PathLane(request, ring);
    const SliceRun run{first, (slices - first + lane_count - 1) / lane_count, lane_count};
    ECPIPE_ASSIGN_OR_RETURN(lane.slices, LaneSlices::Create({run}, slices));
    lanes.push_back(std::move(lane));
    std::rotate(ring.begin(), ring.begin() + 1, ring.end());
  }
  return lanes;
}

}  // namespace

extern const Scheme rp_cyclic = {
    .name = "rp-cyclic",
    .help = "the requestor reads from k-1 helpers; for slow links into it",
    .timeslots = "1 + (k-1)/s",
    .source = "§4.1",
    .looks_at = {.links = true},
    .rank = 40,
    .plan = PlanCyclic};

}  // namespace ecpipe::schemes
