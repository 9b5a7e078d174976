// SPDX-License-Identifier: Apache-2.0
// What a plan costs, computed from the plan alone: nothing here knows a scheme.
//
// The model: every node has an uplink and a downlink, a rack can have both as well, shared by its
// nodes, and a pair of nodes can have a speed of its own. A plan's time is that of its busiest
// link, plus the time that the first slice needs to reach the requestor before the busiest link is
// in steady use: one slice on each earlier stream of a lane's longest path, at the speed of the
// lane's slowest stream, for the lane where that takes longest. For RP over equal links that is the
// paper's 1 + (k - 1) / s timeslots (§3.2). Disks and computation are taken to be hidden behind the
// network.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/planning/planner.h"
#include "model/plan/cost.h"
#include "model/plan/repair_plan.h"

namespace ecpipe {

// What one row of a lane has on each of its streams, in bytes.
uint64_t LaneBytes(const RepairPlan& plan, const PlanLane& lane);

// Streams between hops of one node cost nothing.
PlanCost EstimateCost(const RepairPlan& plan, const ClusterView& cluster);

// Makes the plan of request.scheme. If that is "auto" or empty, makes the plans of
// SchemesWorthATry() and returns the one with the least expected time; among equals the one with
// the fewest bytes between racks, then with the fewest bytes on all links, then the one that
// SchemeNames() names first.
absl::StatusOr<RepairPlan> ChoosePlan(const PlanRequest& request);

// The cost of each of SchemesThatRepair() for this request, in their order.
absl::StatusOr<std::vector<SchemePrediction>> PredictAll(const PlanRequest& request);

}  // namespace ecpipe
