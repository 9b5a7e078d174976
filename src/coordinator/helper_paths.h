// SPDX-License-Identifier: Apache-2.0
// Which helpers form the path of a repair, and in which order: racks (§4.2) and link speeds (§4.3).
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/planner.h"

namespace ecpipe {

// Algorithm 1: first the helpers of the requestor's rack, then those of the other racks, the rack
// with most helpers first, until the code has enough. The path runs the other way round, and so
// enters and leaves each rack once at most, over as few racks as can be (for MDS codes; for others
// the code may have to pass survivors over). A node of unknown rack counts as a rack of its own.
// Several requestors: the first one's rack counts.
//
// Terms in the order of the path, the first sender first.
absl::StatusOr<std::vector<EquationTerm>> RackAwarePath(const PlanRequest& request);

// Algorithm 2's aim, by path_search.h: of all survivors those, and in the order, that make the
// slowest link of the path fastest. With f failed blocks the links between helpers carry f rows.
// When the code cannot use a free choice (it is not MDS), the blocks that it chose are put in the
// best order.
absl::StatusOr<std::vector<EquationTerm>> WeightedPath(const PlanRequest& request);

}  // namespace ecpipe
