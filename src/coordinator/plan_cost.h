// SPDX-License-Identifier: Apache-2.0
// What a plan costs, computed from the plan alone: nothing here knows a scheme.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/repair_plan.h"
#include "coordinator/planner.h"

namespace ecpipe {

struct NodeLoad {
  std::string node;
  uint64_t up_bytes = 0;    // block bytes that it sends, without frame headers
  uint64_t down_bytes = 0;  // block bytes that it receives
};

struct PlanCost {
  std::vector<NodeLoad> loads;      // in order of first appearance in the plan
  uint64_t busiest_link_bytes = 0;  // largest single up or down load
  uint64_t total_bytes = 0;         // over all streams
  int depth = 0;                    // streams between the first hop and the requestor, longest path
  double seconds = 0;               // expected: the busiest link's time plus the pipeline's fill
  double timeslots = 0;             // `seconds` in units of one range's time over one equal link
};

// Node speeds that `nodes` leaves at 0 count as `default_bytes_per_second`.
PlanCost EstimateCost(const RepairPlan& plan, std::span<const PlanNode> nodes,
                      double default_bytes_per_second);

}  // namespace ecpipe
