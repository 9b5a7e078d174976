// SPDX-License-Identifier: Apache-2.0
// Planners write RepairPlans. They are pure: the same arguments give the same plan, and nothing
// outside is read or changed. A new scheme is one more function in schemes.h and one more line in
// the table of planner.cc.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "codec/erasure_code.h"
#include "common/repair_plan.h"

namespace ecpipe {

// What is known of a node that may take part.
struct PlanNode {
  std::string node;
  std::string rack;
  double up_bytes_per_second = 0;  // of its link; 0: unknown, taken as equal to the others'
  double down_bytes_per_second = 0;
};

struct PlanRequest {
  std::string scheme = "rp";
  SliceGrid grid;
  RepairEquation equation;               // which blocks, and their coefficients
  std::vector<std::string> block_nodes;  // node id of each block of the stripe, by block index
  std::vector<std::string> requestors;   // where each failed block is wanted, one for each
  std::vector<PlanNode> nodes;           // for schemes that look at links and racks
};

// The names that requests may use: "rp", "ppr", "conventional" and "direct". The last is one hop
// that sends a block that is there: what a plain read of a healthy block runs.
std::vector<std::string> SchemeNames();

// INVALID_ARGUMENT for an unknown scheme (the message lists the known ones) or a request that the
// scheme cannot serve.
absl::StatusOr<RepairPlan> MakePlan(const PlanRequest& request);

}  // namespace ecpipe
