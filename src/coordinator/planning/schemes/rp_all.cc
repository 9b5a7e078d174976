// SPDX-License-Identifier: Apache-2.0
// Repair pipelining over all survivors (all_survivors.h). With the requestor's link not in the way
// the time is k / (n - 1) of rp's for equal links.
#include <algorithm>

#include "coordinator/planning/all_survivors.h"
#include "coordinator/planning/lanes.h"
#include "coordinator/planning/scheme.h"

namespace ecpipe::schemes {
namespace {

absl::StatusOr<PlanLanes> PlanAllSurvivors(const PlanRequest& request) {
  // Each lane ends at another helper, since the last one has only the requestor to send to.
  PlanLanes lanes = LanesOverAllSurvivors(request, [](size_t lane, std::vector<int>* helpers) {
    const auto first = static_cast<ptrdiff_t>(lane % helpers->size());
    std::rotate(helpers->begin(), helpers->begin() + first, helpers->end());
  });
  if (lanes.empty()) return PlanPath(request);
  return lanes;
}

}  // namespace

extern const Scheme rp_all = {
    .name = "rp-all",
    .help = "all survivors share the work; for a requestor with a fast link",
    .timeslots = "down to k/(n-1)",
    .source = "beyond the paper",
    .looks_at = {.links = true},
    .rank = 50,
    .plan = PlanAllSurvivors};

}  // namespace ecpipe::schemes
