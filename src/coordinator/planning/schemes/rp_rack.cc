// SPDX-License-Identifier: Apache-2.0
#include "coordinator/planning/helper_paths.h"
#include "coordinator/planning/lanes.h"
#include "coordinator/planning/scheme.h"

namespace ecpipe::schemes {
namespace {

absl::StatusOr<PlanLanes> PlanRackAware(const PlanRequest& request) {
  return PlanLanes{PathLane(request, RackAwarePath(request))};
}

}  // namespace

extern const Scheme rp_rack = {
    .name = "rp-rack",
    .help = "a path that crosses racks seldom; for slow links between racks",
    .timeslots = "1 + (k-1)/s",
    .source = "§4.2",
    .looks_at = {.racks = true},
    .rank = 30,
    .plan = PlanRackAware};

}  // namespace ecpipe::schemes
