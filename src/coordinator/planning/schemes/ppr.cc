// SPDX-License-Identifier: Apache-2.0
// Partial-parallel repair (Mitra et al., EuroSys'16): a binomial tree over the helpers and the
// requestor. Several failed blocks travel the tree side by side, and the first requestor forwards
// those that others want.
#include <numeric>

#include "coordinator/planning/lanes.h"
#include "coordinator/planning/scheme.h"

namespace ecpipe::schemes {
namespace {

absl::StatusOr<PlanLanes> PlanPpr(const PlanRequest& request) {
  PlanLane lane = LaneOfAllSlices(request);
  for (const EquationTerm& term : request.equation.terms) {
    lane.hops.push_back(HelperHop(request, term));
  }
  lane.hops.push_back(CentreHop(request, Takers(request)[0]));
  // Each round pairs neighbours from the back, the left one sends to the right one and is done; so
  // the requestor, the last, is in every round, and an odd one out waits at the front.
  std::vector<int> standing(lane.hops.size());
  std::iota(standing.begin(), standing.end(), 0);
  while (standing.size() > 1) {
    std::vector<int> next;
    for (size_t i = standing.size() % 2; i < standing.size(); i += 2) {
      lane.hops[static_cast<size_t>(standing[i + 1])].inputs.push_back(
          PartialSums(standing[i], AllRows(request)));
      next.push_back(standing[i + 1]);
    }
    if (standing.size() % 2 == 1) next.insert(next.begin(), standing[0]);
    standing = std::move(next);
  }
  AddTakers(request, &lane);
  return PlanLanes{std::move(lane)};
}

}  // namespace

extern const Scheme ppr = {.name = "ppr",
                           .help = "a binomial tree over the helpers; to compare with",
                           .timeslots = "ceil(log2(k+1))",
                           .source = "§2.2, Mitra et al.",
                           .rank = 70,
                           .plan = PlanPpr};

}  // namespace ecpipe::schemes
