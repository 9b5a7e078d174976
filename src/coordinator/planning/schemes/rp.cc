// SPDX-License-Identifier: Apache-2.0
// Repair pipelining. A recovery may want it over several paths, each for an equal part of the
// slices (coordinator/recovery/placement/several_paths.h).
#include "coordinator/planning/lanes.h"
#include "coordinator/planning/scheme.h"

namespace ecpipe::schemes {
namespace {

absl::StatusOr<PlanLanes> PlanPaths(const PlanRequest& request) {
  const uint32_t slices = request.grid.slice_count();
  const auto count = static_cast<uint32_t>(request.paths.size());
  if (count < 2 || slices < count) return PlanPath(request);
  std::vector<LaneOverBlocks> lanes;
  for (uint32_t i = 0; i < count; ++i) {
    lanes.push_back({request.paths[i], slices / count + (i < slices % count ? 1 : 0)});
  }
  PlanLanes planned = LanesOverBlocks(request, lanes);
  if (planned.empty()) return PlanPath(request);
  return planned;
}

}  // namespace

extern const Scheme rp = {.name = "rp",
                          .help = "a path through k helpers; for equal links",
                          .timeslots = "1 + (k-1)/s",
                          .source = "§3.2, §4.4",
                          .rank = 10,
                          .plan = PlanPaths};

}  // namespace ecpipe::schemes
