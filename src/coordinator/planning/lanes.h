// SPDX-License-Identifier: Apache-2.0
// The pieces from which schemes make lanes. All are pure, and take requests that have passed
// MakePlan's checks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/planning/plan_request.h"

namespace ecpipe {

// ---- Hops -----------------------------------------------------------------------------------

std::vector<Row> AllRows(const PlanRequest& request);

// A helper that adds its term to all rows. It has no inputs yet.
PlanHop HelperHop(const PlanRequest& request, const EquationTerm& term);

PlanInput PartialSums(int from_hop, std::vector<Row> rows);

// A requestor, and the rows that end there.
struct Taker {
  std::string node;
  std::vector<Row> rows;
};

// In the order of their first rows.
std::vector<Taker> Takers(const PlanRequest& request);

// The hop of a requestor where everything is added up. It stores its own rows, and has no inputs
// yet.
PlanHop CentreHop(const PlanRequest& request, const Taker& centre);

// ---- Lanes ----------------------------------------------------------------------------------

// Without hops.
PlanLane LaneOfAllSlices(const PlanRequest& request);

// Appends the requestors: the lane's last hop sends each of them its rows. When it is a requestor
// itself it has its own already.
void AddTakers(const PlanRequest& request, PlanLane* lane);

// A path through the helpers of these terms, in this order; the last one sends each failed block
// directly to its requestor. All slices.
PlanLane PathLane(const PlanRequest& request, const std::vector<EquationTerm>& path);

// All helpers send to one requestor, which forwards what others want. With one row they send their
// weighted block, and the requestor adds up; with several they send their bytes as they are, and
// the requestor computes all rows. All slices.
PlanLane StarLane(const PlanRequest& request, const Taker& taker);

// A path over the helpers with these blocks, in this order, for so many of the slices.
struct LaneOverBlocks {
  std::vector<int> blocks;
  uint32_t slices = 0;
};

// These lanes, whose slices take turns. Empty: the code cannot use the blocks of one of them, or
// wants other numbers of helpers.
PlanLanes LanesOverBlocks(const PlanRequest& request, const std::vector<LaneOverBlocks>& lanes);

// Repair pipelining (§3.2, §4.4): the path through all helpers in the order of the equation. f (1 +
// (k - 1) / s) timeslots for f failed blocks in s slices.
absl::StatusOr<PlanLanes> PlanPath(const PlanRequest& request);

}  // namespace ecpipe
