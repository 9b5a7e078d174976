// SPDX-License-Identifier: Apache-2.0
// The coordinator's heart: hands planned repairs out, and follows them to their end.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/link_timing.h"
#include "common/mutex.h"
#include "common/repair_plan.h"
#include "coordinator/busy_nodes.h"
#include "coordinator/catalog.h"
#include "coordinator/helper_gateway.h"
#include "coordinator/journal.h"
#include "coordinator/known_links.h"
#include "coordinator/node_registry.h"
#include "coordinator/repair_planner.h"

namespace ecpipe {

// What the requestor is told.
struct RepairGrant {
  RepairId repair_id = 0;
  RepairPart part;  // empty when helpers host the requestors
  PlannedRepair planned;
};

// Since the start of the process.
struct RepairCounts {
  uint64_t started = 0;
  uint64_t done = 0;
  uint64_t failed = 0;
};

// What became of a block of a repair that helpers hosted.
struct HostedEnd {
  uint64_t recovery_id = 0;
  std::string block_id;
  absl::Status status;
};

// A node has done its part of a repair that helpers host; others may still be at theirs.
struct HostedPartEnd {
  uint64_t recovery_id = 0;
  std::string block_id;  // the repair's first
  std::string node;
};

// Thread-safe.
class RepairCoordinator {
 public:
  struct Options {
    RepairPlanner::Options planner;
    Duration handout_timeout = std::chrono::seconds(2);
    Duration dead_after = std::chrono::seconds(5);  // without a heartbeat
    // A repair whose parts have all ended, and of which its requestor, or a helper that hosts one,
    // says nothing for this long, is over.
    Duration abandon_after = std::chrono::seconds(30);
    uint32_t max_running = 10'000;  // repairs at once; bounds what requestors make us keep
    int journal_keep = 10'000;      // ended repairs
    RackTable racks;                // see NodeRegistry
    std::string topology_script;
    std::shared_ptr<const LinkTable> links;  // see KnownLinks
  };
  // Called without locks, from any thread, also before the BeginRepair in question returns.
  using OnHostedEnd = std::function<void(const HostedEnd&)>;
  using OnHostedPartEnd = std::function<void(const HostedPartEnd&)>;

  // All pointers outlive the coordinator.
  RepairCoordinator(Catalog* catalog, Journal* journal, HelperGateway* helpers, const Clock* clock,
                    const Options& options);

  // Plans, hands out, and answers once every helper runs its part. A helper that cannot be reached,
  // or does not have its block, is left out and the rest planned again. The errors are those of
  // CoordinatorService.BeginRepair. With request.hosts the repair ends by itself: when each host
  // has reported that its block is stored, and the catalog has the new places, or with the first
  // error; what SetHostedEnd was given hears of each block, unless this call fails.
  absl::StatusOr<RepairGrant> BeginRepair(const RepairRequest& request, uint64_t recovery_id = 0);
  // The plan that BeginRepair would run now.
  absl::StatusOr<PlannedRepair> Explain(const RepairRequest& request);
  // The requestor's verdict. Ends what still runs. An unknown repair is ignored, and so is a
  // verdict on a repair that helpers host, unless it is CANCELLED and no recovery's.
  void FinishRepair(RepairId repair_id, const absl::Status& status, uint64_t verified_bytes);

  // As it is now, or as it ended. NOT_FOUND: unknown, or ended long ago.
  absl::StatusOr<RepairRecord> Find(RepairId repair_id);

  // Before the first repair.
  void SetHostedEnd(OnHostedEnd on_end) { on_hosted_end_ = std::move(on_end); }
  void SetHostedPartEnd(OnHostedPartEnd on_end) { on_hosted_part_end_ = std::move(on_end); }
  // Takes up hosted repairs that were under way when the coordinator stopped: their hosts keep the
  // report until somebody takes it.
  void Adopt(const std::vector<RepairRecord>& interrupted);
  // Ends the hosted repairs of a recovery.
  void CancelHosted(uint64_t recovery_id);

  // From helpers.
  absl::Status Register(NodeRecord node);
  void ReportPart(const std::string& node, RepairId repair_id, uint32_t attempt,
                  const absl::Status& status);
  // What the streams of a node's part tell of links. Counts only for a repair that runs, or has
  // ended a few seconds ago, and among its nodes.
  void ReportLinks(const std::string& node, RepairId repair_id,
                   const std::vector<LinkTiming>& timings);

  // Ends repairs that nobody will end any more. Call it every few seconds.
  void Expire();

  NodeRegistry& nodes() { return nodes_; }
  KnownLinks& links() { return links_; }
  BusyNodes& busy() { return busy_; }
  RepairCounts counts();

 private:
  struct Running {
    RepairRecord record;
    std::string stripe_id;
    std::vector<HelperAddress> helpers;
    std::set<std::string> unreported;  // nodes whose part has not ended
    TimePoint last_news;
    std::shared_ptr<BusyNodes::Hold> busy;
    bool handing_out = false;  // what hosts report waits till that is over
    // Of a hosted repair: rows whose hosts say that they are stored, for the catalog to learn
    // (record.moved has those that it knows), whether a thread is about that, and what went wrong
    // first.
    std::set<Row> to_move;
    bool advancing = false;
    absl::Status failure;
  };
  // What is kept of a repair for reports that come after its end.
  struct Ended {
    TimePoint at;
    std::shared_ptr<BusyNodes::Hold> busy;
  };
  using Refused = RepairPlanner::Refused;

  absl::StatusOr<RepairGrant> HandOut(RepairRecord* record, const RepairRequest& request,
                                      PlannedRepair planned, Refused* refused);
  absl::StatusOr<std::vector<HelperGateway::Handout>> MakeHandouts(const RepairRecord& record,
                                                                   TransportKind transport,
                                                                   const PlannedRepair& planned,
                                                                   RepairPart* requestor_part);
  absl::Status AddRunning(const RepairRecord& record, const std::string& stripe_id);
  // Why the hosted repair must not begin beside those that run: ABORTED.
  absl::Status CheckHosts(const RepairRecord& record, const std::string& stripe_id)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<Running> TakeRunning(RepairId repair_id);
  Running Take(std::map<RepairId, Running>::iterator running) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Does what the reports of a hosted repair ask for: moves stored blocks, ends it.
  void Advance(RepairId repair_id);
  // The next row for Advance to move, if any, and what is known of the repair.
  std::optional<Row> NextStored(RepairId repair_id, RepairRecord* record, absl::Status* failure);
  void EndHosted(RepairId repair_id, const absl::Status& status);
  // Whether a hosted repair can no longer end by itself, and why.
  std::optional<absl::Status> Hopeless(const Running& running, TimePoint now);
  void End(RepairRecord record, RepairState state, const std::string& detail);
  void StoreEnd(RepairRecord* record, RepairState state, const std::string& detail);
  bool Runs(RepairId repair_id);

  Catalog* const catalog_;
  Journal* const journal_;
  HelperGateway* const helpers_;
  const Clock* const clock_;
  const Options options_;
  NodeRegistry nodes_;
  KnownLinks links_;
  BusyNodes busy_;
  RepairPlanner planner_;
  OnHostedEnd on_hosted_end_ = [](const HostedEnd&) {};
  OnHostedPartEnd on_hosted_part_end_ = [](const HostedPartEnd&) {};

  Mutex mutex_;
  std::map<RepairId, Running> running_ ABSL_GUARDED_BY(mutex_);
  std::map<RepairId, Ended> ended_ ABSL_GUARDED_BY(mutex_);
  RepairCounts counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ecpipe
