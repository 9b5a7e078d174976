// SPDX-License-Identifier: Apache-2.0
// The heart of the coordinator: hands out planned repairs and follows them to their end.
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
#include "base/clock.h"
#include "base/mutex.h"
#include "coordinator/cluster/busy_nodes.h"
#include "coordinator/cluster/corrupt_blocks.h"
#include "coordinator/cluster/known_links.h"
#include "coordinator/cluster/node_registry.h"
#include "coordinator/planning/repair_planner.h"
#include "coordinator/repairs/diagnosis.h"
#include "coordinator/repairs/helper_gateway.h"
#include "coordinator/repairs/left_out.h"
#include "coordinator/store/catalog.h"
#include "coordinator/store/journal.h"
#include "model/link_timing.h"
#include "model/plan/repair_plan.h"
#include "model/repair.h"

namespace ecpipe {

// Since the start of the process.
struct RepairCounts {
  uint64_t started = 0;
  uint64_t done = 0;
  uint64_t failed = 0;
};

// How the repair of a block that a helper stores has ended.
struct HostedEnd {
  uint64_t recovery_id = 0;
  std::string block_id;
  absl::Status status;
};

// A node has ended its part of a repair whose blocks helpers store; other parts may still run.
struct HostedPartEnd {
  uint64_t recovery_id = 0;
  std::string block_id;  // the first block of the repair
  std::string node;
};

// The number of streams that running repairs send over the network.
struct SendingStreams {
  uint64_t of_node = 0;
  uint64_t of_all = 0;
};

// Thread-safe.
class RepairCoordinator {
 public:
  // Background repairs get at most this share of max_running, so that a degraded read always finds
  // room.
  static constexpr double kBackgroundShare = 0.75;
  // How soon the coordinator looks into the first attempt of a hosted repair that brings no bytes.
  static constexpr Duration kLookAtHostsEvery = std::chrono::milliseconds(500);

  struct Options {
    RepairPlanner::Options planner;
    Duration handout_timeout = std::chrono::seconds(2);
    Duration dead_after = std::chrono::seconds(5);  // without a heartbeat
    // A repair is over if all its parts have ended and its requestor, or a helper that stores one
    // of its blocks, is silent for this long.
    Duration abandon_after = std::chrono::seconds(30);
    uint32_t max_running = 10'000;  // repairs at once; bounds the memory that requestors can take
    int journal_keep = 10'000;      // records of ended repairs
    RackTable racks;                // see NodeRegistry
    std::string topology_script;
    std::shared_ptr<const LinkTable> links;  // see KnownLinks
  };
  // Called without locks, from any thread, possibly before the BeginRepair of that repair returns.
  using OnHostedEnd = std::function<void(const HostedEnd&)>;
  using OnHostedPartEnd = std::function<void(const HostedPartEnd&)>;
  using OnHostedFault = std::function<void(RepairId)>;

  // All pointers outlive the coordinator.
  RepairCoordinator(Catalog* catalog, Journal* journal, HelperGateway* helpers, const Clock* clock,
                    const Options& options);

  // Plans the repair, hands out its parts, and answers once every helper runs its part. A helper
  // that cannot be reached, or does not have its block, is left out, and the repair is planned
  // again. The errors are those of CoordinatorService.BeginRepair. With request.hosts the repair
  // ends by itself: when each host has reported that its block is stored and the catalog has the
  // new places, or with an error that no further attempt can mend (GoOn). Unless this call fails,
  // the function given to SetHostedEnd is called for each block.
  absl::StatusOr<RepairGrant> BeginRepair(const RepairRequest& request, uint64_t recovery_id = 0);
  // Starts another attempt after the requestor has said that the last one failed: for the missing
  // slices, without the helpers at fault. It also continues a repair that ran when an earlier
  // coordinator stopped. ABORTED: too many attempts; the other errors are as above.
  absl::StatusOr<RepairGrant> ResumeRepair(const RepairRequest& request, const ResumePoint& from);
  // Decides whether another attempt should replace the running one, because helpers do not answer,
  // no bytes move, or a link is so slow that it is worth it. `quiet`: the requestor has received no
  // bytes for a while. NOT_FOUND: the repair is not running. Waits at most half a second for the
  // answers of helpers.
  absl::StatusOr<Inspection> InspectRepair(RepairId repair_id, uint32_t attempt,
                                           uint64_t missing_bytes, bool quiet);
  // The plan that BeginRepair would run now.
  absl::StatusOr<PlannedRepair> Explain(const RepairRequest& request);
  // The requestor says how the repair ended; its running parts are ended. Ignored for an unknown
  // repair, and for a repair whose blocks helpers store, unless the status is CANCELLED and the
  // repair belongs to no recovery.
  void FinishRepair(RepairId repair_id, const absl::Status& status, uint64_t verified_bytes);

  // The repair as it is now, or as it ended. NOT_FOUND: it is unknown, or ended long ago.
  absl::StatusOr<RepairRecord> Find(RepairId repair_id);

  // Call it before the first repair.
  void SetHostedEnd(OnHostedEnd on_end) { on_hosted_end_ = std::move(on_end); }
  void SetHostedPartEnd(OnHostedPartEnd on_end) { on_hosted_part_end_ = std::move(on_end); }
  // `on_fault` is called when an attempt of a hosted repair has failed and another one may mend it:
  // it must have GoOn called, from a thread that may wait for helpers. By default GoOn is called at
  // once.
  void SetHostedFault(OnHostedFault on_fault) { on_hosted_fault_ = std::move(on_fault); }
  // Continues a hosted repair after a failed attempt: starts another attempt for the slices that
  // its hosts lack, or ends the repair. Waits at most some seconds for the answers of helpers, and
  // as long as a handout waits.
  void GoOn(RepairId repair_id);
  // The hosted repairs that are due for a look.
  std::vector<RepairId> HostedToLookAt();
  // As InspectRepair, but for a hosted repair: starts another attempt if that is worth it. Waits at
  // most a second for the answers of helpers.
  void LookAtHosted(RepairId repair_id);
  // Continues hosted repairs that were running when an earlier coordinator stopped. Their hosts
  // keep their reports until a coordinator takes them.
  void Adopt(const std::vector<RepairRecord>& interrupted);
  // Ends the hosted repairs of a recovery.
  void CancelHosted(uint64_t recovery_id);

  // From helpers.
  absl::Status Register(NodeRecord node);
  void ReportPart(const std::string& node, RepairId repair_id, uint32_t attempt,
                  const absl::Status& status);
  // Takes the timings of the streams of a node's part. They count only if the repair runs or ended
  // a few seconds ago, and only between its nodes.
  void ReportLinks(const std::string& node, RepairId repair_id,
                   const std::vector<LinkTiming>& timings);

  // A participant of the repair reports a corrupt block. A node may report its own block; the node
  // that puts the rows together may report any block of the stripe. Other reports are ignored.
  void ReportCorrupt(const std::string& node, RepairId repair_id, const std::string& block_id,
                     const std::string& reason);

  // The sources in the facts of a running repair whose own helpers have found their replicas
  // corrupt during this repair. Who named them does not know yet. Neither somebody else's
  // word is good enough for it nor an older finding, since the replica may have been restored.
  std::vector<StripeFacts::Source> CorruptSources(RepairId repair_id);

  // Ends abandoned repairs. Call it every few seconds.
  void Expire();

  NodeRegistry& nodes() { return nodes_; }
  KnownLinks& links() { return links_; }
  BusyNodes& busy() { return busy_; }
  CorruptBlocks& corrupt() { return corrupt_; }
  // Replaces Options::max_running. Repairs beyond the new limit go on to their end.
  void SetMaxRunning(uint32_t max_running);
  SendingStreams StreamsOf(const std::string& node);
  // The blocks that running repairs rebuild.
  std::set<std::string> RunningBlocks();
  RepairCounts counts();

 private:
  // How far an attempt had come at an inspection that was not quiet and in which all its helpers
  // answered.
  struct Milestone {
    TimePoint at;
    uint64_t missing_bytes = 0;  // what the requestor lacked of each block
    Sent sent;
  };
  // What all attempts of a repair have shown of its speed.
  struct SpeedHistory {
    double best_pace = 0;  // 0: not known yet
    // For each node: the number of slow links that it was at when the plan was changed.
    std::map<std::string, int> slow_ends;
    int known_changes = 0;    // changes of plan because the repair had been faster
    int guessed_changes = 0;  // changes of plan because other links looked faster
  };
  // The looks at an attempt of a hosted repair.
  struct HostLooks {
    TimePoint at;                   // the latest look, or the begin of the attempt
    TimePoint all_asked;            // the latest look at which all helpers were asked, or the begin
    std::optional<uint64_t> bytes;  // received by its hosts at the latest look, if all answered
  };
  struct Running {
    RepairRecord record;
    std::string stripe_id;
    std::vector<HelperAddress> helpers;
    std::set<std::string> unreported;  // nodes whose part has not ended
    Receivers receivers;
    RepairRequest request;  // the request of the running attempt, or of the next one
    SliceGrid grid;         // the grid of its plan
    // For a stripe that is not in the catalog: where attempts have read; the latest at the end.
    std::vector<BlockPlace> places;
    // Block ids and nodes: the replicas of these that their own helpers found corrupt.
    std::set<std::pair<std::string, std::string>> found_corrupt;
    TimePoint attempt_began;
    uint64_t attempt_bytes = 0;          // what the attempt has to bring of each block
    LeftOut left_out;                    // nodes that this repair leaves out, from all its attempts
    std::optional<PartAnswers> quiet;    // answers at the latest inspection, if no bytes came then
    std::optional<Milestone> milestone;  // from the latest inspection that showed speeds of links
    SpeedHistory speed;
    HostLooks host_looks;
    // The incarnations of the nodes when they were chosen. Empty if an earlier coordinator chose
    // them.
    std::map<std::string, uint64_t> incarnations;
    TimePoint last_news;
    std::shared_ptr<BusyNodes::Hold> busy;
    bool handing_out = false;  // parts are being handed out; reports of hosts wait meanwhile
    bool granted = false;      // the requestor, or the recovery, has its answer
    // For a hosted repair: rows that the hosts report as stored and that the catalog does not know
    // yet (record.moved has those that it knows); whether a thread is telling the catalog; and the
    // first failure.
    std::set<Row> to_move;
    bool advancing = false;
    absl::Status failure;
    absl::Status consequence;  // an error that follows from a failure which is not known yet
    bool may_go_on = true;     // whether another attempt may mend a failure
    bool to_go_on = false;     // on_hosted_fault_ was called, and GoOn has not been called yet
  };
  // What is kept of an ended repair for reports that come late.
  struct Ended {
    TimePoint at;
    std::shared_ptr<BusyNodes::Hold> busy;
  };
  // Parts of an attempt that was given up. They end by themselves when their streams close, but
  // parts upstream of a node that hangs would take long.
  struct LeftBehind {
    RepairId repair_id = 0;
    uint32_t attempt = 0;
    std::vector<HelperAddress> helpers;
  };

  // Plans and hands out until helpers run the repair or no helpers are left to try. In the latter
  // case the repair ends, unless it was resumed and helpers that have not registered yet may help:
  // UNAVAILABLE.
  absl::StatusOr<RepairGrant> RunAttempts(RepairRecord record, const RepairRequest& request,
                                          const LostBlocks& lost, LeftOut left_out);
  // Starts the attempt after a failed one, without the nodes at fault. `request` says what is
  // missing.
  absl::StatusOr<RepairGrant> NextAttempt(const Running& failed, const Suspects& suspects,
                                          const absl::Status& failure, const RepairRequest& request,
                                          const LostBlocks& lost);
  // A resumed repair waits until its requestor asks again; the next attempt follows that of
  // `record`.
  void SetAside(const RepairRecord& record, LeftOut left_out);
  // Ends a repair for which no attempt could be handed out.
  void EndFailed(RepairRecord record, const absl::Status& status);
  absl::StatusOr<PlannedRepair> PlanAttempt(const RepairRequest& request, const LostBlocks& lost,
                                            LeftOut* left_out);
  // Whether all nodes of the stripe have registered, or have had time to do so since the start.
  bool Gathered(const LostBlocks& lost);
  // UNAVAILABLE: the coordinator has just started, and helpers that the repair needs have not
  // registered yet.
  absl::Status CheckGathered(const RepairRequest& request, const LostBlocks& lost);
  absl::StatusOr<LostBlocks> Locate(const RepairRequest& request);
  // Marks the repair as being handed out again, and returns what is known of it in `before`.
  absl::Status FindForResume(const RepairRequest& request, const ResumePoint& from,
                             const std::string& stripe_id, Running* before);
  // Where a repair has read a block that is not in the catalog and turns out to be corrupt: at
  // `node`, which says so itself, or if `node` is empty, at the place that it read last. Empty:
  // nowhere.
  std::string PlaceOfCorrupt(RepairId repair_id, const std::string& block_id,
                             const std::string& node);
  void NoteCorrupt(const CorruptBlock& block, const std::string& hint);
  PartAnswers Ask(const RepairRecord& record, const std::vector<HelperAddress>& helpers);
  // Decides what to do about the attempt of `before`, from these answers and from how far it had
  // come.
  Inspection Judge(Running before, const PartAnswers& answers, Milestone now, bool quiet);
  // Judges the links by the time since the attempt's milestone, and moves the milestone.
  static Suspects WhoIsTooSlow(const PartAnswers& answers, const Milestone& now, Running* running);
  // Whether an attempt without these nodes is worth making. If there are not enough other nodes and
  // the attempt is quiet, takes some of them back that may not be at fault.
  bool CanDoWithout(const Running& running, bool quiet, LeftOut* left_out);
  // Whether one of these nodes takes part now.
  static bool LeavesOutAHelper(const Running& running, const LeftOut& left_out);
  absl::StatusOr<RepairGrant> HandOut(RepairRecord* record, const RepairRequest& request,
                                      PlannedRepair planned, LeftOut* left_out);
  absl::StatusOr<std::vector<HelperGateway::Handout>> MakeHandouts(const RepairRecord& record,
                                                                   const RepairRequest& request,
                                                                   const PlannedRepair& planned,
                                                                   RepairPart* requestor_part);
  // Records that a helper found its block corrupt when it opened it.
  void ReportOpened(const HelperGateway::Handout& handout, const absl::Status& status);
  std::map<std::string, uint64_t> IncarnationsOf(const std::set<std::string>& nodes);
  absl::Status AddRunning(const RepairRecord& record, const RepairRequest& request,
                          const std::string& stripe_id);
  // ABORTED if a running repair keeps this hosted repair from beginning.
  absl::Status CheckRoomForBackground() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckHosts(const RepairRecord& record, const std::string& stripe_id)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<Running> TakeRunning(RepairId repair_id);
  Running Take(std::map<RepairId, Running>::iterator running) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Acts on the reports of a hosted repair: records the new places of stored blocks, ends the
  // repair.
  void Advance(RepairId repair_id);
  // The next row whose place Advance has to record, if there is one, and what is known of the
  // repair.
  std::optional<Row> NextStored(RepairId repair_id, RepairRecord* record, absl::Status* failure);
  void EndHosted(RepairId repair_id, const absl::Status& status);
  // After a failed attempt of a hosted repair: another attempt, or the end of the repair.
  void FailAttempt(RepairId repair_id, uint32_t attempt, const absl::Status& status);
  // For GoOn; returns false if there is nothing to continue.
  bool TakeFailed(RepairId repair_id, Running* failed);
  // Takes the word of hosts of a failed attempt that their blocks are stored.
  void TakeStored(RepairId repair_id, const std::vector<std::string>& hosts);
  // The row that the node still has to store, if it is a host.
  static std::optional<Row> RowToStore(const RepairRecord& record, const std::string& node);
  // The hosts that still have a row to store.
  static std::set<std::string> HostsAtWork(const RepairRecord& record);
  // The helpers of an attempt: those that are such hosts, and the others.
  struct Sides {
    std::vector<HelperAddress> hosts;
    std::vector<HelperAddress> others;
  };
  static Sides SidesOf(const Running& running);
  static bool IsTimeToLook(const Running& running, TimePoint now);
  // Asks hosts that have been silent for long whether their parts still run, and takes the reports
  // of those whose parts have ended. False: no host answers, and the attempt is still the same.
  bool HearHosts(RepairId repair_id, uint32_t attempt);
  // Why no report of the node's part can come any more; empty if one may come.
  std::string GoneBecause(const Running& running, const std::string& node);
  // Why a hosted repair can no longer end by itself; nothing if it can.
  std::optional<absl::Status> Hopeless(const Running& running, TimePoint now);
  void End(RepairRecord record, RepairState state, const std::string& detail);
  void StoreEnd(RepairRecord* record, RepairState state, const std::string& detail);
  void StoreUnwritten();
  bool Runs(RepairId repair_id);

  Catalog* const catalog_;
  Journal* const journal_;
  HelperGateway* const helpers_;
  const Clock* const clock_;
  const Options options_;
  const TimePoint started_;
  NodeRegistry nodes_;
  KnownLinks links_;
  BusyNodes busy_;
  CorruptBlocks corrupt_;
  RepairPlanner planner_;
  OnHostedEnd on_hosted_end_ = [](const HostedEnd&) {};
  OnHostedPartEnd on_hosted_part_end_ = [](const HostedPartEnd&) {};
  OnHostedFault on_hosted_fault_ = [this](RepairId repair_id) { GoOn(repair_id); };

  Mutex mutex_;
  uint32_t max_running_ ABSL_GUARDED_BY(mutex_);
  std::map<RepairId, Running> running_ ABSL_GUARDED_BY(mutex_);
  std::map<RepairId, Ended> ended_ ABSL_GUARDED_BY(mutex_);
  std::vector<LeftBehind> left_behind_ ABSL_GUARDED_BY(mutex_);  // for Expire to cancel
  // Ended repairs that the journal could not record yet, and therefore still has as running. They
  // are kept here until it can, so that questions about them are answered. At most max_running.
  std::map<RepairId, RepairRecord> unwritten_ ABSL_GUARDED_BY(mutex_);
  RepairCounts counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ecpipe
