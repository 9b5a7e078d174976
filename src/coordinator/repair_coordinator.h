// SPDX-License-Identifier: Apache-2.0
// The coordinator's heart: from "block B is wanted" to a plan that runs.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "common/repair_plan.h"
#include "coordinator/catalog.h"
#include "coordinator/code_cache.h"
#include "coordinator/helper_gateway.h"
#include "coordinator/journal.h"
#include "coordinator/node_table.h"
#include "coordinator/plan_cost.h"
#include "coordinator/topology.h"

namespace ecpipe {

// A block, or a range of it, that somebody wants.
struct RepairRequest {
  std::string block_id;
  uint64_t offset = 0;
  uint64_t bytes = 0;        // 0: to the end of the block
  std::string scheme;        // empty or "auto": the best by expected time
  uint32_t slice_bytes = 0;  // 0: the default
  TransportKind transport = TransportKind::kTcp;
  std::string requestor;
  std::string requestor_rack;  // empty: unknown
};

// What a request leads to, before anything runs.
struct PlannedRepair {
  Stripe stripe;
  RepairPlan plan;
  PlanCost cost;
  std::map<std::string, std::string> racks;   // of nodes with a block of the stripe
  std::vector<SchemePrediction> predictions;  // from Explain, unless the plan is a direct read
};

// What the requestor is told.
struct RepairGrant {
  RepairPart part;
  PlannedRepair planned;
};

// Since the start of the process.
struct RepairCounts {
  uint64_t started = 0;
  uint64_t done = 0;
  uint64_t failed = 0;
};

// Thread-safe.
class RepairCoordinator {
 public:
  struct Options {
    std::string default_scheme = "auto";
    uint32_t default_slice_bytes = kDefaultSliceBytes;
    double link_bytes_per_second = 125e6;  // what an unknown link is taken for, in predictions
    Duration handout_timeout = std::chrono::seconds(2);
    Duration dead_after = std::chrono::seconds(5);  // without a heartbeat
    // A repair whose parts have all ended, and of which its requestor says nothing for this long,
    // is over.
    Duration abandon_after = std::chrono::seconds(30);
    uint32_t max_running = 10'000;  // repairs at once; bounds what requestors make us keep
    int journal_keep = 10'000;      // ended repairs
    RackTable racks;                // by node id, or the host of a helper's control address
    std::shared_ptr<const LinkTable> links;  // null: nothing known of pairs
  };

  // All pointers outlive the coordinator.
  RepairCoordinator(Catalog* catalog, Journal* journal, HelperGateway* helpers, const Clock* clock,
                    const Options& options);

  // Plans, hands out, and answers once every helper runs its part. A helper that cannot be reached,
  // or does not have its block, is left out and the rest planned again. The errors are those of
  // CoordinatorService.BeginRepair.
  absl::StatusOr<RepairGrant> BeginRepair(const RepairRequest& request);
  // The plan that BeginRepair would run now.
  absl::StatusOr<PlannedRepair> Explain(const RepairRequest& request);
  // The requestor's verdict. Ends what still runs. An unknown repair is ignored.
  void FinishRepair(RepairId repair_id, const absl::Status& status, uint64_t verified_bytes);

  // From helpers.
  absl::Status Register(NodeRecord node);
  absl::Status Heartbeat(const std::string& node, uint64_t incarnation, const NodeReport& report);
  void ReportPart(const std::string& node, RepairId repair_id, uint32_t attempt,
                  const absl::Status& status);

  // Ends repairs that nobody will end any more. Call it every few seconds.
  void Expire();

  struct NodeView {
    NodeRecord record;
    NodeState state = NodeState::kDead;
    double seconds_since_heartbeat = 0;
  };
  std::vector<NodeView> Nodes();
  RepairCounts counts();

 private:
  struct Running {
    RepairRecord record;
    std::vector<HelperAddress> helpers;
    std::set<std::string> unreported;  // nodes whose part has not ended
    TimePoint last_news;
  };
  // Nodes that may not take part, with the reason.
  using Refused = std::map<std::string, std::string>;

  // What a planner is to know, and the plan that comes of it.
  absl::StatusOr<PlanRequest> MakeRequest(const RepairRequest& request,
                                          const BlockLocation& location, const Refused& refused);
  absl::StatusOr<PlannedRepair> Plan(const PlanRequest& request, const Stripe& stripe);
  // Fills in the survivors that can be used and what the code makes of them.
  absl::Status FindSurvivors(const RepairRequest& request, const BlockLocation& location,
                             const Refused& refused, PlanRequest* plan_request);
  // Why the node cannot take part now; empty if it can.
  std::string Unfit(const std::string& node, TransportKind transport, const Refused& refused);
  absl::StatusOr<SliceGrid> GridFor(const RepairRequest& request, uint64_t block_bytes) const;
  absl::StatusOr<RepairGrant> HandOut(RepairRecord* record, const RepairRequest& request,
                                      PlannedRepair planned, Refused* refused);
  absl::StatusOr<std::vector<HelperGateway::Handout>> MakeHandouts(const RepairRecord& record,
                                                                   TransportKind transport,
                                                                   const PlannedRepair& planned,
                                                                   RepairPart* requestor_part);
  absl::Status AddRunning(const RepairRecord& record);
  // The rack that the operator has written down for a node; empty if none.
  std::string ConfiguredRack(const NodeRecord& node) const;
  void End(RepairRecord record, RepairState state, const std::string& detail);

  Catalog* const catalog_;
  Journal* const journal_;
  HelperGateway* const helpers_;
  const Clock* const clock_;
  const Options options_;
  CodeCache codes_;

  Mutex mutex_;
  NodeTable nodes_ ABSL_GUARDED_BY(mutex_);
  std::map<RepairId, Running> running_ ABSL_GUARDED_BY(mutex_);
  RepairCounts counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ecpipe
