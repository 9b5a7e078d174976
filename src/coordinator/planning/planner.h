// SPDX-License-Identifier: Apache-2.0
// Planners write RepairPlans. They are pure: the same arguments give the same plan, and nothing
// outside is read or changed. A scheme is a function in schemes.h and a line in the table of
// planner.cc; the configuration and `auto` (plan_cost.h) know it from there. Helps and documents
// list the names by hand: CONTRIBUTING.md says where.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "codec/erasure_code.h"
#include "coordinator/cluster/cluster_view.h"
#include "model/plan/repair_plan.h"

namespace ecpipe {

struct PlanRequest {
  std::string scheme = "rp";  // "auto" is for ChoosePlan (plan_cost.h), not for MakePlan
  SliceGrid grid;
  // What the code made of the survivors in the order of the coordinator's preference. Schemes that
  // do not choose helpers use its terms, in this order.
  RepairEquation equation;
  // For schemes that choose helpers (rp-weighted, rp-rack, rp-all): all blocks that could be read,
  // and the code, which says what works. Without a code, or where it cannot use their choice,
  // rp-weighted and rp-rack put the equation's own terms in order, and rp-all is rp.
  std::vector<int> survivors;
  std::shared_ptr<const ErasureCode> code;
  std::vector<std::string> block_nodes;  // node id of each block of the stripe, by block index
  std::vector<std::string> requestors;   // where each failed block is wanted, one for each
  ClusterView cluster;
};

// The names that requests may use; schemes.h says what each is. "direct" is one hop that sends a
// block that is there: what a plain read of a healthy block runs.
std::vector<std::string> SchemeNames();

// Without "direct" and the baselines of §6.4: "pipe-b", which is rp with the whole range as one
// slice (of at most kMaxSliceBytes), and "pipe-s", rp whose helpers handle one slice at a time.
std::vector<std::string> SchemesThatRepair();

// Of these the ones that can be best, as far as this is known of the cluster.
std::vector<std::string> SchemesWorthATry(const ClusterView& cluster, size_t failed_blocks);

// INVALID_ARGUMENT for an unknown scheme (the message lists the known ones) or a request that the
// scheme cannot serve.
absl::StatusOr<RepairPlan> MakePlan(const PlanRequest& request);

}  // namespace ecpipe
