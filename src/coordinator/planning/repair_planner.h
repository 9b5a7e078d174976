// SPDX-License-Identifier: Apache-2.0
// Makes a plan from the request for a block, with the nodes as they are now.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/cluster/corrupt_blocks.h"
#include "coordinator/cluster/known_links.h"
#include "coordinator/cluster/node_registry.h"
#include "coordinator/planning/code_cache.h"
#include "coordinator/planning/plan_cost.h"
#include "coordinator/planning/wanted_blocks.h"
#include "coordinator/store/catalog.h"
#include "model/plan/features.h"
#include "model/plan/repair_plan.h"
#include "model/plan/slices_left.h"
#include "model/repair.h"

namespace ecpipe {

// How a repair verifies the blocks that it reads: by this many check rows (codec/check_rows.h).
enum class Verification : uint32_t { kNone = 0, kParity = 1, kLocate = 2 };
// "none", "parity", "locate". INVALID_ARGUMENT for another name.
absl::StatusOr<Verification> VerificationNamed(const std::string& name);

// Whether a plan was refused because a node may not take a block, not for want of survivors.
bool IsUnfitTarget(const absl::Status& status);

// A request for blocks of one stripe, or for the same range of each of them.
struct RepairRequest {
  std::vector<std::string> block_ids;
  std::optional<StripeFacts> facts;  // describes their stripe; none: the stripe is in the catalog
  uint64_t offset = 0;
  uint64_t bytes = 0;        // 0: to the end of the longest block
  std::string scheme;        // empty or "auto": the best by expected time
  uint32_t slice_bytes = 0;  // 0: the default
  TransportKind transport = TransportKind::kTcp;
  std::string requestor;
  std::string requestor_rack;  // empty: unknown
  // Speed of the requestor's own link, as it says; 0: unknown. Hosts have links that are probed.
  double requestor_bytes_per_second = 0;
  // The nodes whose helpers store the whole blocks, one for each block. Empty: the requestor takes
  // the bytes.
  std::vector<std::string> hosts;
  // Nodes in the order in which they should help; nodes that are not named come after them. Nodes
  // with the fewest sessions come first among equals.
  std::vector<std::string> helper_order;
  // Scheme rp: paths over these nodes, each for an equal part of the slices, if all of them can
  // help.
  std::vector<std::vector<std::string>> paths;
  // What repairs in flight leave of the links of nodes; nodes that are not named have all of them.
  std::map<std::string, LinkShares> link_shares;
  SeenLinks seen;                      // what earlier attempts saw of links
  std::optional<SlicesLeft> left;      // for another attempt: the slices that are still missing
  std::optional<Verification> verify;  // none: the default
  // With scheme auto: the block itself is read if it is there and nothing speaks against it.
  bool prefer_direct = false;
  // With scheme direct: the block is there, and is copied to its host.
  bool copy = false;
  Features features = OwnFeatures();  // that the requestor's part may need
  bool background = false;            // nobody waits for the bytes; see docs/design/012-limits.md
  RepairCause cause = RepairCause::kDegradedRead;  // for metrics alone
};

// The plan for a request, before anything runs.
struct PlannedRepair {
  Stripe stripe;
  std::vector<uint64_t> block_lengths;  // of the wanted blocks, in the request's order
  // The wanted range of each block; the plan may bring more around it. A block that ends within the
  // range has zeros behind its end.
  uint64_t offset = 0;
  uint64_t bytes = 0;
  RepairPlan plan;
  PlanCost cost;
  std::map<std::string, std::string> racks;   // racks of the nodes with a block of the stripe
  std::vector<SchemePrediction> predictions;  // from Explain, unless the plan is a direct read
};

// Thread-safe.
class RepairPlanner {
 public:
  struct Options {
    std::string default_scheme = "auto";
    uint32_t default_slice_bytes = kDefaultSliceBytes;
    double link_bytes_per_second = 125e6;  // the assumed speed of an unknown link
    double rack_bytes_per_second = 0;      // as in ClusterView
    Verification default_verification = Verification::kNone;
  };
  // Nodes that may not take part, with the reason.
  using Refused = std::map<std::string, std::string>;

  // All outlive the planner.
  RepairPlanner(NodeRegistry* nodes, KnownLinks* links, const CorruptBlocks* corrupt,
                const Options& options)
      : nodes_(nodes), links_(links), corrupt_(corrupt), options_(options) {}

  // The errors are those of CoordinatorService.BeginRepair.
  absl::StatusOr<PlannedRepair> Plan(const RepairRequest& request, const WantedBlocks& wanted,
                                     const Refused& refused);
  // The same, with the expected time of each scheme.
  absl::StatusOr<PlannedRepair> Explain(const RepairRequest& request, const WantedBlocks& wanted);

 private:
  // Blocks that somebody calls corrupt, while their own helpers have not said so. They are read
  // only if there is no other way, and then parity has to prove them right.
  enum class Suspects { kLeftOut, kRead };

  // Fills in the wanted range in `planned`, and returns the request to the planner.
  absl::StatusOr<PlanRequest> MakeRequest(const RepairRequest& request, const WantedBlocks& wanted,
                                          const Refused& refused, PlannedRepair* planned);
  // Whether the request is served best by the block itself, if that can be read.
  bool MayReadDirectly(const RepairRequest& request, const WantedBlocks& wanted);
  bool HasSuspects(const WantedBlocks& wanted) const;
  absl::StatusOr<PlanRequest> MakeRequestWith(Suspects suspects, const RepairRequest& request,
                                              const WantedBlocks& wanted, const Refused& refused,
                                              PlannedRepair* planned);
  // Plans with what all who take part have. `used`: the request that led to the plan.
  absl::StatusOr<PlannedRepair> PlanForAll(RepairRequest request, const WantedBlocks& wanted,
                                           Refused refused, PlanRequest* used);
  // Changes what is asked for, if somebody in the plan lacks what its part needs; false: nobody
  // does. FAILED_PRECONDITION: the requestor does, and there is no other plan for it.
  absl::StatusOr<bool> GiveWay(const RepairPlan& plan, RepairRequest* request, Refused* refused);
  absl::Status Run(const PlanRequest& request, const std::optional<SlicesLeft>& left,
                   PlannedRepair* planned);
  // The wanted range of blocks of these lengths: within the longest, and to its end without a
  // length.
  absl::StatusOr<SliceGrid> GridFor(const RepairRequest& request,
                                    const std::vector<uint64_t>& block_lengths) const;
  // The same blocks, but each block with several replicas is placed at a usable replica if there is
  // one, and two blocks at one node only if no other node will do.
  WantedBlocks AtUsableReplicas(const RepairRequest& request, const WantedBlocks& wanted,
                                const Refused& refused, Suspects suspects);
  // Why the block cannot be read there now; empty if it can.
  std::string Unreadable(const BlockPlace& place, const std::optional<NodeView>& view,
                         TransportKind transport, const Refused& refused, Suspects suspects) const;
  // Fills in the usable survivors and the repair equation that the code makes from them.
  absl::Status FindSurvivors(const RepairRequest& request, const WantedBlocks& wanted,
                             const Refused& refused, Suspects suspects, PlanRequest* plan_request);
  // Adds the check rows that the request wants, or at least `least`.
  absl::Status AddVerification(const RepairRequest& request, Verification least,
                               PlanRequest* plan_request);
  // Fills in where each block goes.
  absl::Status FindRequestors(const RepairRequest& request, const WantedBlocks& wanted,
                              const Refused& refused, uint64_t bytes, PlanRequest* plan_request);
  // Why the node may not take the block of this index; empty if it may.
  static std::string UnfitHost(const std::string& host, const std::optional<NodeView>& view,
                               int block_index, TransportKind transport, const WantedBlocks& wanted,
                               const Refused& refused, const PlanRequest& plan_request);

  NodeRegistry* const nodes_;
  KnownLinks* const links_;
  const CorruptBlocks* const corrupt_;
  const Options options_;
  CodeCache codes_;
};

}  // namespace ecpipe
