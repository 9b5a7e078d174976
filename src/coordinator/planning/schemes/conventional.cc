// SPDX-License-Identifier: Apache-2.0
// For several failed blocks, or several rows of one, the first requestor computes them all and
// forwards those of the other requestors: k + f - 1 timeslots.
#include "coordinator/planning/lanes.h"
#include "coordinator/planning/scheme.h"

namespace ecpipe::schemes {
namespace {

absl::StatusOr<PlanLanes> PlanConventional(const PlanRequest& request) {
  return PlanLanes{StarLane(request, Takers(request)[0])};
}

}  // namespace

extern const Scheme conventional = {.name = "conventional",
                                    .help = "all helpers send to the requestor; to compare with",
                                    .timeslots = "k",
                                    .source = "§2.2",
                                    .rank = 80,
                                    .plan = PlanConventional};

}  // namespace ecpipe::schemes
