// SPDX-License-Identifier: Apache-2.0
// What a plain read of a healthy block runs: one helper sends its block unchanged.
#include "coordinator/planning/lanes.h"
#include "coordinator/planning/scheme.h"

namespace ecpipe::schemes {
namespace {

absl::StatusOr<PlanLanes> PlanDirect(const PlanRequest& request) {
  PlanLane lane = LaneOfAllSlices(request);
  lane.hops.push_back(HelperHop(request, request.equation.terms[0]));
  AddTakers(request, &lane);
  return PlanLanes{std::move(lane)};
}

}  // namespace

extern const Scheme direct = {.name = kDirectScheme,
                              .help = "reads the block itself, which is not lost; to compare with",
                              .timeslots = "1",
                              .source = "§6.1",
                              .kind = SchemeKind::kDirect,
                              .most_failed = 1,
                              .rank = 110,
                              .plan = PlanDirect};

}  // namespace ecpipe::schemes
