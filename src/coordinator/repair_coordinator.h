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
#include "common/checksum_kind.h"
#include "common/clock.h"
#include "common/link_timing.h"
#include "common/mutex.h"
#include "common/repair_plan.h"
#include "coordinator/busy_nodes.h"
#include "coordinator/catalog.h"
#include "coordinator/corrupt_blocks.h"
#include "coordinator/diagnosis.h"
#include "coordinator/helper_gateway.h"
#include "coordinator/journal.h"
#include "coordinator/known_links.h"
#include "coordinator/left_out.h"
#include "coordinator/node_registry.h"
#include "coordinator/repair_planner.h"
#include "coordinator/slices_left.h"

namespace ecpipe {

// What the requestor is told.
struct RepairGrant {
  RepairId repair_id = 0;
  RepairPart part;  // empty when helpers host the requestors
  PlannedRepair planned;
  std::optional<ChecksumKind> checksum;  // that a survivor's store keeps
};

// Where an attempt has left a repair.
struct ResumePoint {
  RepairId repair_id = 0;
  uint32_t attempt = 0;
  SlicesLeft left;
  std::string scheme;    // that it ran by
  absl::Status failure;  // with the blame (common/blame.h)
};

// What to do about an attempt that runs.
struct Inspection {
  bool replan = false;
  std::string reason;
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

// Streams that repairs under way send over the network.
struct SendingStreams {
  uint64_t of_node = 0;
  uint64_t of_all = 0;
};

// Thread-safe.
class RepairCoordinator {
 public:
  // What runs in the background has at most this share of max_running, so that a degraded read
  // always finds room.
  static constexpr double kBackgroundShare = 0.75;
  // How soon a hosted repair of which nothing comes is looked into, in its first attempt.
  static constexpr Duration kLookAtHostsEvery = std::chrono::milliseconds(500);

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
  using OnHostedFault = std::function<void(RepairId)>;

  // All pointers outlive the coordinator.
  RepairCoordinator(Catalog* catalog, Journal* journal, HelperGateway* helpers, const Clock* clock,
                    const Options& options);

  // Plans, hands out, and answers once every helper runs its part. A helper that cannot be reached,
  // or does not have its block, is left out and the rest planned again. The errors are those of
  // CoordinatorService.BeginRepair. With request.hosts the repair ends by itself: when each host
  // has reported that its block is stored, and the catalog has the new places, or with an error
  // that no other attempt mends (GoOn); what SetHostedEnd was given hears of each block, unless
  // this call fails.
  absl::StatusOr<RepairGrant> BeginRepair(const RepairRequest& request, uint64_t recovery_id = 0);
  // Another attempt of a repair whose requestor says that the last one failed: over the slices that
  // are missing, without the helpers that are at fault. A repair that ran when the coordinator
  // stopped is taken up. ABORTED: too many attempts; the other errors as above.
  absl::StatusOr<RepairGrant> ResumeRepair(const RepairRequest& request, const ResumePoint& from);
  // Whether an attempt should be given up for another one, since helpers of it do not answer,
  // nothing moves, or a link is so slow that it is worth it. `quiet`: nothing has come to the
  // requestor for a while. NOT_FOUND: no such repair runs. Waits for helpers' answers for half a
  // second at most.
  absl::StatusOr<Inspection> InspectRepair(RepairId repair_id, uint32_t attempt,
                                           uint64_t missing_bytes, bool quiet);
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
  // What to do when an attempt of a hosted repair has failed and another one may mend it: have GoOn
  // called, from a thread that may wait for helpers. By default it is called at once.
  void SetHostedFault(OnHostedFault on_fault) { on_hosted_fault_ = std::move(on_fault); }
  // Another attempt of a hosted repair that has failed, over what its hosts lack; or its end. Waits
  // for helpers' answers for some seconds at most, and for those that a handout waits for.
  void GoOn(RepairId repair_id);
  // The hosted repairs that it is time to look at.
  std::vector<RepairId> HostedToLookAt();
  // What InspectRepair is for a requestor, for a hosted repair: has another attempt made where that
  // is worth it. Waits for helpers' answers for a second at most.
  void LookAtHosted(RepairId repair_id);
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

  // Somebody who takes part in the repair says that a block is corrupt: a node of its own block, or
  // the one who puts the rows together of any block of the stripe. Others are not heard.
  void ReportCorrupt(const std::string& node, RepairId repair_id, const std::string& block_id,
                     const std::string& reason);

  // Ends repairs that nobody will end any more. Call it every few seconds.
  void Expire();

  NodeRegistry& nodes() { return nodes_; }
  KnownLinks& links() { return links_; }
  BusyNodes& busy() { return busy_; }
  CorruptBlocks& corrupt() { return corrupt_; }
  // Replaces Options::max_running; repairs beyond it go on to their end.
  void SetMaxRunning(uint32_t max_running);
  SendingStreams StreamsOf(const std::string& node);
  // Blocks that repairs under way rebuild.
  std::set<std::string> RunningBlocks();
  RepairCounts counts();

 private:
  // How far an attempt had come when all its helpers told and the look was not a quiet one.
  struct Milestone {
    TimePoint at;
    uint64_t missing_bytes = 0;  // at the requestor, of each block
    Sent sent;
  };
  // Of all attempts of a repair.
  struct SpeedHistory {
    double best_pace = 0;                  // 0: not known yet
    std::map<std::string, int> slow_ends;  // at how many slow links a node was, in changes of plan
    int known_changes = 0;                 // of plan: the repair had been faster
    int guessed_changes = 0;               // other links looked faster
  };
  // Of an attempt of a hosted repair.
  struct HostLooks {
    TimePoint at;                   // the latest, or its begin
    TimePoint all_asked;            // the latest at which all were, or its begin
    std::optional<uint64_t> bytes;  // that its hosts had at the latest, if all told
  };
  struct Running {
    RepairRecord record;
    std::string stripe_id;
    std::vector<HelperAddress> helpers;
    std::set<std::string> unreported;  // nodes whose part has not ended
    Receivers receivers;
    RepairRequest request;  // of the attempt that runs, or of the next one
    SliceGrid grid;         // of its plan
    // Where attempts have read, of a stripe that no catalog has; the latest at the end.
    std::vector<BlockPlace> places;
    TimePoint attempt_began;
    uint64_t attempt_bytes = 0;          // that it is to bring, of each block
    LeftOut left_out;                    // by this repair, in all its attempts
    std::optional<PartAnswers> quiet;    // of the latest inspection, if nothing came then
    std::optional<Milestone> milestone;  // of the latest inspection that told of links
    SpeedHistory speed;
    HostLooks host_looks;
    // Of the nodes, when they were chosen. Unknown of repairs that a coordinator before began.
    std::map<std::string, uint64_t> incarnations;
    TimePoint last_news;
    std::shared_ptr<BusyNodes::Hold> busy;
    bool handing_out = false;  // what hosts report waits till that is over
    bool granted = false;      // whoever ordered it has its answer
    // Of a hosted repair: rows whose hosts say that they are stored, for the catalog to learn
    // (record.moved has those that it knows), whether a thread is about that, and what went wrong
    // first.
    std::set<Row> to_move;
    bool advancing = false;
    absl::Status failure;
    absl::Status consequence;  // what follows from a failure that is not known yet
    bool may_go_on = true;     // another attempt may mend a failure
    bool to_go_on = false;     // on_hosted_fault_ was told, and GoOn has not come yet
  };
  // What is kept of a repair for reports that come after its end.
  struct Ended {
    TimePoint at;
    std::shared_ptr<BusyNodes::Hold> busy;
  };
  // Parts of an attempt that was given up. They end by themselves, since their streams close; those
  // above a node that hangs would take their time.
  struct LeftBehind {
    RepairId repair_id = 0;
    uint32_t attempt = 0;
    std::vector<HelperAddress> helpers;
  };

  // Plans and hands out, until helpers run it or nothing more can be done. The repair ends then,
  // unless it was resumed and helpers that have not registered yet may help: UNAVAILABLE.
  absl::StatusOr<RepairGrant> RunAttempts(RepairRecord record, const RepairRequest& request,
                                          const LostBlocks& lost, LeftOut left_out);
  // The attempt after one that failed, without those who are at fault. `request` says what is left.
  absl::StatusOr<RepairGrant> NextAttempt(const Running& failed, const Suspects& suspects,
                                          const absl::Status& failure, const RepairRequest& request,
                                          const LostBlocks& lost);
  // A resumed repair waits for its requestor to ask again; the next attempt is that after
  // `record`'s.
  void SetAside(const RepairRecord& record, LeftOut left_out);
  // Of a repair for which no attempt could be handed out.
  void EndFailed(RepairRecord record, const absl::Status& status);
  absl::StatusOr<PlannedRepair> PlanAttempt(const RepairRequest& request, const LostBlocks& lost,
                                            LeftOut* left_out);
  // Whether all nodes of the stripe have registered, or have had the time to do so.
  bool Gathered(const LostBlocks& lost);
  // UNAVAILABLE: the coordinator has just started, and helpers that are needed have not registered.
  absl::Status CheckGathered(const RepairRequest& request, const LostBlocks& lost);
  absl::StatusOr<LostBlocks> Locate(const RepairRequest& request);
  // Marks the repair as being handed out again, and says what is known of it.
  absl::Status FindForResume(const RepairRequest& request, const ResumePoint& from,
                             const std::string& stripe_id, Running* before);
  // Where a repair has read a block that no catalog has: at `node`, or if that is empty, at last.
  // Empty: nowhere.
  std::string PlaceByFacts(RepairId repair_id, const std::string& block_id,
                           const std::string& node);
  void NoteCorrupt(const CorruptBlock& block, const std::string& hint);
  PartAnswers Ask(const RepairRecord& record, const std::vector<HelperAddress>& helpers);
  // What to do about the attempt of `before`, by these answers and how far it had come then.
  Inspection Judge(Running before, const PartAnswers& answers, Milestone now, bool quiet);
  // Judged by what has happened since the attempt's milestone, which moves.
  static Suspects WhoIsTooSlow(const PartAnswers& answers, const Milestone& now, Running* running);
  // Whether an attempt without these is worth making. Takes some back that may be blameless if
  // there are not enough others and the attempt is quiet.
  bool CanDoWithout(const Running& running, bool quiet, LeftOut* left_out);
  // Whether one that takes part now is among them.
  static bool LeavesOutAHelper(const Running& running, const LeftOut& left_out);
  absl::StatusOr<RepairGrant> HandOut(RepairRecord* record, const RepairRequest& request,
                                      PlannedRepair planned, LeftOut* left_out);
  absl::StatusOr<std::vector<HelperGateway::Handout>> MakeHandouts(const RepairRecord& record,
                                                                   const RepairRequest& request,
                                                                   const PlannedRepair& planned,
                                                                   RepairPart* requestor_part);
  // A helper found its block corrupt as it opened it.
  void ReportOpened(const HelperGateway::Handout& handout, const absl::Status& status);
  std::map<std::string, uint64_t> IncarnationsOf(const std::set<std::string>& nodes);
  absl::Status AddRunning(const RepairRecord& record, const RepairRequest& request,
                          const std::string& stripe_id);
  // Why the hosted repair must not begin beside those that run: ABORTED.
  absl::Status CheckRoomForBackground() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckHosts(const RepairRecord& record, const std::string& stripe_id)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<Running> TakeRunning(RepairId repair_id);
  Running Take(std::map<RepairId, Running>::iterator running) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Does what the reports of a hosted repair ask for: moves stored blocks, ends it.
  void Advance(RepairId repair_id);
  // The next row for Advance to move, if any, and what is known of the repair.
  std::optional<Row> NextStored(RepairId repair_id, RepairRecord* record, absl::Status* failure);
  void EndHosted(RepairId repair_id, const absl::Status& status);
  // An attempt of a hosted repair has failed: another one, or its end.
  void FailAttempt(RepairId repair_id, uint32_t attempt, const absl::Status& status);
  // For GoOn; false if there is nothing to go on with.
  bool TakeFailed(RepairId repair_id, Running* failed);
  // Hosts of a failed attempt say that their blocks are stored.
  void TakeStored(RepairId repair_id, const std::vector<std::string>& hosts);
  // The row that the node is still to store, if it is a host.
  static std::optional<Row> RowToStore(const RepairRecord& record, const std::string& node);
  // The hosts that have a row to store.
  static std::set<std::string> HostsAtWork(const RepairRecord& record);
  // The helpers of an attempt that are such hosts, and the others.
  struct Sides {
    std::vector<HelperAddress> hosts;
    std::vector<HelperAddress> others;
  };
  static Sides SidesOf(const Running& running);
  static bool IsTimeToLook(const Running& running, TimePoint now);
  // Asks hosts of which nothing was heard for long whether they are still at work, and takes the
  // report of those that are not. False: none answers, and this is still the attempt.
  bool HearHosts(RepairId repair_id, uint32_t attempt);
  // Why no report of the node's part will come any more; empty if one may.
  std::string GoneBecause(const Running& running, const std::string& node);
  // Whether a hosted repair can no longer end by itself, and why.
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
  // Ends that the journal did not take, until it does: it still has these repairs as running, and
  // whoever asks must not wait for them. At most max_running.
  std::map<RepairId, RepairRecord> unwritten_ ABSL_GUARDED_BY(mutex_);
  RepairCounts counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ecpipe
