// SPDX-License-Identifier: Apache-2.0
#include "coordinator/planning/helper_paths.h"
#include "coordinator/planning/lanes.h"
#include "coordinator/planning/scheme.h"

namespace ecpipe::schemes {
namespace {

absl::StatusOr<PlanLanes> PlanWeighted(const PlanRequest& request) {
  return PlanLanes{PathLane(request, WeightedPath(request))};
}

}  // namespace

extern const Scheme rp_weighted = {
    .name = "rp-weighted",
    .help = "the path whose slowest link is fastest; for unequal links",
    .timeslots = "1 + (k-1)/s",
    .source = "§4.3",
    .looks_at = {.links = true},
    .rank = 20,
    .plan = PlanWeighted};

}  // namespace ecpipe::schemes
