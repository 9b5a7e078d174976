// SPDX-License-Identifier: Apache-2.0
// What a scheme is asked, and what it answers.
#pragma once

#include <memory>
#include <string>
#include <vector>

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
  // For schemes that choose helpers: all blocks that could be read, and the code, which says what
  // works. Without a code, or where it cannot use their choice, they use the equation's own terms.
  std::vector<int> survivors;
  std::shared_ptr<const ErasureCode> code;
  // For rp: block indices of paths, each for an equal part of the slices. Empty: one path.
  std::vector<std::vector<int>> paths;
  std::vector<std::string> block_nodes;  // node id of each block of the stripe, by block index
  std::vector<std::string> requestors;   // where each failed block is wanted, one for each
  ClusterView cluster;
};

using PlanLanes = std::vector<PlanLane>;

}  // namespace ecpipe
