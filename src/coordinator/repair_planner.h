// SPDX-License-Identifier: Apache-2.0
// From "block B is wanted" to a plan, over the nodes as they are now.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/repair_plan.h"
#include "coordinator/catalog.h"
#include "coordinator/code_cache.h"
#include "coordinator/known_links.h"
#include "coordinator/node_registry.h"
#include "coordinator/plan_cost.h"

namespace ecpipe {

// Blocks of one stripe, or the same range of each, that somebody wants.
struct RepairRequest {
  std::vector<std::string> block_ids;
  uint64_t offset = 0;
  uint64_t bytes = 0;        // 0: to the end of the blocks
  std::string scheme;        // empty or "auto": the best by expected time
  uint32_t slice_bytes = 0;  // 0: the default
  TransportKind transport = TransportKind::kTcp;
  std::string requestor;
  std::string requestor_rack;  // empty: unknown
  // Instead of a requestor: the nodes whose helpers store the blocks, one for each, whole.
  std::vector<std::string> hosts;
  // Nodes in the order in which they should help; those that are not named come after them. Empty:
  // those that do least first.
  std::vector<std::string> helper_order;
};

// Where the blocks of a request are.
struct LostBlocks {
  Stripe stripe;
  std::vector<int> indices;  // in the stripe, in the request's order
};

// INVALID_ARGUMENT: none, too many, one twice, or not all of one stripe. NOT_FOUND: no stripe has
// the first one.
absl::StatusOr<LostBlocks> FindLost(Catalog* catalog, const std::vector<std::string>& block_ids);

// What a request leads to, before anything runs.
struct PlannedRepair {
  Stripe stripe;
  uint64_t offset = 0;  // what is wanted of each block; the plan may bring some more around it
  uint64_t bytes = 0;
  RepairPlan plan;
  PlanCost cost;
  std::map<std::string, std::string> racks;   // of nodes with a block of the stripe
  std::vector<SchemePrediction> predictions;  // from Explain, unless the plan is a direct read
};

// Thread-safe.
class RepairPlanner {
 public:
  struct Options {
    std::string default_scheme = "auto";
    uint32_t default_slice_bytes = kDefaultSliceBytes;
    double link_bytes_per_second = 125e6;  // what an unknown link is taken for
    double rack_bytes_per_second = 0;      // as in ClusterView
  };
  // Nodes that may not take part, with the reason.
  using Refused = std::map<std::string, std::string>;

  // `nodes` and `links` outlive the planner.
  RepairPlanner(NodeRegistry* nodes, KnownLinks* links, const Options& options)
      : nodes_(nodes), links_(links), options_(options) {}

  // The errors are those of CoordinatorService.BeginRepair.
  absl::StatusOr<PlannedRepair> Plan(const RepairRequest& request, const LostBlocks& lost,
                                     const Refused& refused);
  // The same with what each scheme would take.
  absl::StatusOr<PlannedRepair> Explain(const RepairRequest& request, const LostBlocks& lost);

 private:
  // Fills in `planned` what is wanted, and returns how to ask a planner for it.
  absl::StatusOr<PlanRequest> MakeRequest(const RepairRequest& request, const LostBlocks& lost,
                                          const Refused& refused, PlannedRepair* planned);
  absl::Status Run(const PlanRequest& request, PlannedRepair* planned);
  // The range that is wanted of each block.
  absl::StatusOr<SliceGrid> GridFor(const RepairRequest& request, uint64_t block_bytes) const;
  // Fills in the survivors that can be used and what the code makes of them.
  absl::Status FindSurvivors(const RepairRequest& request, const LostBlocks& lost,
                             const Refused& refused, PlanRequest* plan_request);
  // Fills in where each block goes.
  absl::Status FindRequestors(const RepairRequest& request, const LostBlocks& lost,
                              const Refused& refused, uint64_t bytes, PlanRequest* plan_request);
  // Why the node may not take the block; empty if it may.
  std::string UnfitHost(const std::string& host, TransportKind transport, const LostBlocks& lost,
                        const Refused& refused, const PlanRequest& plan_request);

  NodeRegistry* const nodes_;
  KnownLinks* const links_;
  const Options options_;
  CodeCache codes_;
};

}  // namespace ecpipe
