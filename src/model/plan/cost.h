// SPDX-License-Identifier: Apache-2.0
// What a plan costs. coordinator/planning/plan_cost.h has the model by which it is computed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

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
  uint64_t cross_rack_bytes = 0;    // those between nodes that are known to be in different racks
  int depth = 0;                    // streams between the first hop and the requestor, longest path
  double seconds = 0;               // expected
  double timeslots = 0;             // `seconds` in units of the range's time over one default link
};

struct SchemePrediction {
  std::string scheme;
  PlanCost cost;
};

}  // namespace ecpipe
