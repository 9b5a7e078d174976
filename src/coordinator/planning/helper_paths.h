// SPDX-License-Identifier: Apache-2.0
// Which helpers form the path of a repair, and in which order: racks (§4.2) and link speeds (§4.3).
#pragma once

#include <string>
#include <vector>

#include "coordinator/planning/plan_request.h"

namespace ecpipe {

// RackAwarePath and WeightedPath return terms in the order of the path, the first sender first.
// They choose among all survivors. If the code cannot use their choice, because it is not MDS, they
// put the blocks that the code itself chose into the best order. With f failed blocks the links
// between helpers carry f rows.

// The path through the fewest racks that enters and leaves each one once, the requestor's own last
// (Algorithm 1); of all such paths one whose slowest link is fastest. A node of unknown rack counts
// as a rack of its own. Several requestors: the first one's rack counts.
std::vector<EquationTerm> RackAwarePath(const PlanRequest& request);

// Algorithm 2's aim, by path_search.h: the path whose slowest link is fastest.
std::vector<EquationTerm> WeightedPath(const PlanRequest& request);

// For each path, the blocks that its nodes have among the survivors. Empty: a node has none.
std::vector<std::vector<int>> PathsThrough(const std::vector<std::vector<std::string>>& nodes,
                                           const PlanRequest& request);

}  // namespace ecpipe
