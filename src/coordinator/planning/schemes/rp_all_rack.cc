// SPDX-License-Identifier: Apache-2.0
// rp-all with a path in rack order on each lane: what a rack's helpers have is added up before it
// leaves the rack. All survivors share the work as in rp-all, and the time is the same where the
// links of nodes hold the repair up. A lane enters and leaves each rack once, so that no rack's
// link carries more than one block each way, as in rp-rack; on the lanes of rp-all, which do not
// look at racks, that is up to k / 2 blocks. Each lane begins its round of racks at another one.
#include <algorithm>
#include <map>

#include "coordinator/planning/all_survivors.h"
#include "coordinator/planning/helper_paths.h"
#include "coordinator/planning/lanes.h"
#include "coordinator/planning/scheme.h"

namespace ecpipe::schemes {
namespace {

absl::StatusOr<PlanLanes> PlanAllInRackOrder(const PlanRequest& request) {
  const Links links(request.cluster);
  const std::string& home = links.At(request.requestors[0]).rack();
  // A node of unknown rack is a rack of its own.
  const auto rack_of = [&](int block) {
    const std::string& node = request.block_nodes[static_cast<size_t>(block)];
    const std::string& rack = links.At(node).rack();
    return rack.empty() ? "\n" + node : rack;
  };
  PlanLanes lanes = LanesOverAllSurvivors(request, [&](size_t lane, std::vector<int>* helpers) {
    const auto first = static_cast<ptrdiff_t>(lane % helpers->size());
    std::rotate(helpers->begin(), helpers->begin() + first, helpers->end());
    std::map<std::string, size_t> place;  // of each rack on the path; the requestor's own is last
    for (const int helper : *helpers) place.try_emplace(rack_of(helper), place.size());
    if (place.contains(home)) place[home] = place.size();
    std::stable_sort(helpers->begin(), helpers->end(),
                     [&](int a, int b) { return place[rack_of(a)] < place[rack_of(b)]; });
  });
  if (lanes.empty()) return PlanLanes{PathLane(request, RackAwarePath(request))};
  return lanes;
}

}  // namespace

extern const Scheme rp_all_rack = {
    .name = "rp-all-rack",
    .help = "rp-all that crosses racks seldom; for slow links between racks",
    .timeslots = "down to k/(n-1)",
    .source = "beyond the paper",
    .looks_at = {.links = true, .racks = true},
    .rank = 55,
    .plan = PlanAllInRackOrder};

}  // namespace ecpipe::schemes
