// SPDX-License-Identifier: Apache-2.0
// The heart of the coordinator: hands out planned repairs and follows them to their end.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
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
#include "coordinator/repairs/helper_gateway.h"
#include "coordinator/repairs/tracker.h"
#include "coordinator/store/catalog.h"
#include "coordinator/store/journal.h"
#include "model/link_timing.h"
#include "model/repair.h"
#include "model/repair_counts.h"

namespace ecpipe {

// Hears of hosted repairs, whose blocks helpers store. Called without locks, from any thread,
// possibly before the BeginRepair of that repair returns.
class RepairListener {
 public:
  virtual ~RepairListener() = default;
  virtual void OnHostedEnd(const HostedEnd&) {}
  virtual void OnHostedPartEnd(const HostedPartEnd&) {}
  // An attempt has failed, and another one may mend it. True: StartNextAttempt will be called, from
  // a thread that may wait for helpers. False: the caller of the listener is to do it at once.
  virtual bool OnHostedFault(RepairId) { return false; }
};

// Who waits for the grant of an attempt.
struct RepairCaller {
  // By when it needs the answer. Each handout leaves half of the time for another one.
  TimePoint answer_by = TimePoint::max();
  // Whether it has gone, so that a requestor's repair is ended. Null: it stays. Any thread.
  std::function<bool()> gone = nullptr;
};

// Why nodes are told to store these blocks.
inline RepairCause CauseOfStoring(const std::vector<std::string>& block_ids,
                                  const CorruptBlocks& corrupt) {
  return corrupt.HasAnyOf(block_ids) ? RepairCause::kCorruption : RepairCause::kCommand;
}

// Keeps a RepairTracker for each repair: tells it what happens, and does what it wants done. No
// lock is held meanwhile, and each call to a helper has a deadline, so repairs wait only for their
// own helpers. Thread-safe.
class RepairCoordinator {
 public:
  // Background repairs get at most this share of max_running, so that a degraded read always finds
  // room.
  static constexpr double kBackgroundShare = 0.75;
  // What one Expire ends, and what it cancels. Where nodes hang, each costs a second or two, eight
  // at a time: half a minute together. A caller that the service manager watches has a minute.
  static constexpr size_t kExpiredAtOnce = 80;
  // Of attempts whose parts are still to be cancelled; beyond it the oldest are forgotten. Parts
  // end by themselves, later.
  static constexpr size_t kMaxLeftBehind = 10'000;

  struct Options {
    RepairPlanner::Options planner;
    Duration handout_timeout = std::chrono::seconds(2);  // at most; see RepairCaller
    Duration dead_after = std::chrono::seconds(5);       // without a heartbeat
    Duration abandon_after = std::chrono::seconds(30);   // see RepairTracker
    uint32_t max_running = 10'000;  // repairs at once; bounds the memory that requestors can take
    int journal_keep = 10'000;      // records of ended repairs
    RackTable racks;                // see NodeRegistry
    std::string topology_script;
    std::shared_ptr<const LinkTable> links;  // see KnownLinks
    CorruptBlockStore* marks = nullptr;      // see CorruptBlocks
  };

  // All pointers outlive the coordinator. `listener` may be null.
  RepairCoordinator(Catalog* catalog, Journal* journal, HelperGateway* helpers, const Clock* clock,
                    const Options& options, RepairListener* listener = nullptr);

  // Plans the repair, hands out its parts, and answers once every helper runs its part. A helper
  // that cannot be reached, or does not have its block, is left out, and the repair is planned
  // again. The errors are those of CoordinatorService.BeginRepair. With request.hosts the repair
  // ends by itself: when each host has reported that its block is stored and the catalog has the
  // new places, or with an error that no further attempt can mend. Unless this call fails, the
  // listener hears of the end of each block.
  absl::StatusOr<RepairGrant> BeginRepair(const RepairRequest& request, uint64_t recovery_id = 0,
                                          const RepairCaller& caller = {});
  // Starts another attempt after the requestor has said that the last one failed: for the missing
  // slices, without the helpers at fault. It also continues a repair that ran when an earlier
  // coordinator stopped. ABORTED: the repair has ended, or is given up (AttemptBound).
  // INVALID_ARGUMENT: also, no attempt of that number can have failed. Other errors are as above.
  absl::StatusOr<RepairGrant> ResumeRepair(const RepairRequest& request, const ResumePoint& from,
                                           const RepairCaller& caller = {});
  // Decides whether another attempt should replace the running one, because helpers do not answer,
  // no bytes move, or a link is so slow that it is worth it. `quiet`: the requestor has received no
  // bytes for a while. NOT_FOUND: the repair is not running. Waits at most half a second for the
  // answers of helpers.
  absl::StatusOr<ProgressAdvice> CheckProgress(RepairId repair_id, uint32_t attempt,
                                               uint64_t missing_bytes, bool quiet);
  // The plan that BeginRepair would run now.
  absl::StatusOr<PlannedRepair> Explain(const RepairRequest& request);
  // The requestor says how the repair ended; its running parts are ended. Ignored for an unknown
  // repair, and for a repair whose blocks helpers store, unless the status is CANCELLED and the
  // repair belongs to no recovery.
  void FinishRepair(RepairId repair_id, const RepairVerdict& verdict);

  // The repair as it is now, or as it ended. NOT_FOUND: it is unknown, or ended long ago.
  absl::StatusOr<RepairRecord> Find(RepairId repair_id);

  // Continues a hosted repair after a failed attempt: starts another attempt for the slices that
  // its hosts lack, or ends the repair. Waits at most some seconds for the answers of helpers, and
  // as long as a handout waits.
  void StartNextAttempt(RepairId repair_id);
  // The hosted repairs whose progress is due for a check.
  std::vector<RepairId> HostedToCheck();
  // As CheckProgress, but for a hosted repair: starts another attempt if that is worth it. Waits at
  // most a second for the answers of helpers.
  void CheckHostedProgress(RepairId repair_id);
  // Continues hosted repairs that were running when an earlier coordinator stopped. Their hosts
  // keep their reports until a coordinator takes them.
  void Adopt(const std::vector<RepairRecord>& interrupted);
  // Ends the hosted repairs of a recovery.
  void CancelHosted(uint64_t recovery_id);
  // Those that rebuild one of these blocks.
  void CancelHosted(uint64_t recovery_id, const std::set<std::string>& block_ids);

  // From helpers.
  absl::Status Register(NodeRecord node);
  void ReportPart(const std::string& node, RepairId repair_id, uint32_t attempt,
                  const absl::Status& status);
  // Takes the timings of the streams of a node's part. They count only if the repair runs or ended
  // a few seconds ago, and only between its nodes.
  void ReportLinks(const std::string& node, RepairId repair_id,
                   const std::vector<LinkTiming>& timings);

  // A participant of the repair reports a corrupt block. A node is believed about its own block;
  // whoever puts the rows together makes any block of the stripe a suspect. Other reports are
  // ignored.
  void ReportCorrupt(const std::string& node, RepairId repair_id, const std::string& block_id,
                     const std::string& reason);

  // The sources in the facts of a running repair whose own helpers have found their replicas
  // corrupt during this repair. Who named them does not know yet. Neither somebody else's
  // word is good enough for it nor an older finding, since the replica may have been restored.
  std::vector<StripeFacts::Source> CorruptSources(RepairId repair_id);

  // Ends abandoned repairs, and cancels parts that attempts have left behind. Call it every second
  // or so: a call waits for at most 2 x kExpiredAtOnce repairs, and leaves the rest to the next.
  void Expire();

  NodeRegistry& nodes() { return nodes_; }
  KnownLinks& links() { return links_; }
  BusyNodes& busy() { return busy_; }
  CorruptBlocks& corrupt() { return corrupt_; }
  // Replaces Options::max_running. Repairs beyond the new limit go on to their end.
  void SetMaxRunning(uint32_t max_running) {
    MutexLock lock(&mutex_);
    max_running_ = max_running;
  }
  SendingStreams StreamsOf(const std::string& node);
  // The blocks that running repairs rebuild.
  std::set<std::string> RunningBlocks();
  // The repairs that run: how many, and at most `most` of them, those that somebody waits for
  // first, and the oldest first among these.
  struct RunningRepairs {
    size_t all = 0;
    std::vector<RunningRepair> shown;
  };
  RunningRepairs ShowRunning(size_t most);
  RepairCounts counts() {
    MutexLock lock(&mutex_);
    return counts_;
  }
  size_t running() {
    MutexLock lock(&mutex_);
    return repairs_.size();
  }

 private:
  struct Tracked {
    RepairTracker repair;
    // Of the catalog, as it was when the repair began, or was taken up: all attempts are for it.
    // Of facts only the id.
    Stripe stripe;
    std::shared_ptr<BusyNodes::Hold> busy = nullptr;
    // What Count has counted.
    std::map<std::string, uint64_t> streams = {};
    bool background = false;
  };
  // What is kept of an ended repair for reports that come late.
  struct Ended {
    TimePoint at;
    std::shared_ptr<BusyNodes::Hold> busy;
  };
  struct LeftBehind {
    RepairId repair_id = 0;
    action::CancelLater parts;
  };
  // What came of an event for the caller that brought it. Nothing comes of it if the repair ended
  // before.
  struct Reply {
    RepairCaller caller = {};
    absl::StatusOr<RepairGrant> grant = absl::AbortedError("the repair has ended");
    absl::StatusOr<ProgressAdvice> advice = absl::NotFoundError("this repair is not running");
  };
  struct Heard {
    RepairId repair_id = 0;
    Actions actions;
  };

  absl::StatusOr<WantedBlocks> Locate(const RepairRequest& request);
  // Whether all nodes of the stripe have registered, or have had time to do so since the start.
  bool Gathered(const WantedBlocks& wanted);
  // UNAVAILABLE: the coordinator has just started, and helpers that the repair needs have not
  // registered yet.
  absl::Status CheckGathered(const RepairRequest& request, const WantedBlocks& wanted);
  NodeLives Lives();
  // Tells repairs that time has passed, in turn. Returns those that want something done.
  std::vector<Heard> TickSome() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // The table of repairs. Null: not running.
  RepairTracker* FindRunning(RepairId repair_id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Runs(RepairId repair_id);
  // Adds a repair if there is room for it, and dispatches its event.
  absl::StatusOr<RepairGrant> Admit(RepairTracker repair, Stripe stripe, Event event,
                                    const RepairCaller& caller);
  // ABORTED if a running repair keeps this hosted repair from beginning.
  absl::Status CheckHosts(const RepairRecord& record, const std::string& stripe_id)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes up a requestor's repair that this coordinator does not know.
  absl::StatusOr<RepairGrant> TakeUp(event::Resume resume, Stripe stripe,
                                     const RepairCaller& caller);
  // ABORTED: it has been loaded anew since the repair began, and slices of both must not be mixed.
  absl::Status CheckSameStripe(RepairId repair_id, const Stripe& now);
  // The same of a repair that an earlier process may have begun.
  static absl::Status CheckSameStripe(const ResumePoint& from, const Stripe& now);
  void NoteCorrupt(const CorruptBlock& block, const std::string& hint);

  // dispatcher.cc. Tells the repair of the event, does what follows, and tells it what came of
  // that, until nothing is left to do.
  Reply Dispatch(RepairId repair_id, Event event, const RepairCaller& caller = {});
  Actions Hear(RepairId repair_id, Event event);
  Actions HearLocked(RepairId repair_id, Event event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Brings what is known of all repairs together up to date with this one.
  void Count(Tracked* tracked) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What follows, for a repair that has been told already.
  void Follow(RepairId repair_id, Actions actions, Reply* reply);
  // The same for several repairs, side by side.
  void DispatchAll(const std::vector<RepairId>& repair_ids, const Event& event);
  void FollowAll(std::vector<Heard> heard);
  // The answer of each action, if it has one.
  std::optional<Event> Perform(RepairId repair_id, action::Plan& plan, Reply* reply);
  std::optional<Event> Perform(RepairId repair_id, action::Journal& journal, Reply* reply);
  std::optional<Event> Perform(RepairId repair_id, action::StartParts& start, Reply* reply);
  std::optional<Event> Perform(RepairId repair_id, action::AskParts& ask, Reply* reply);
  std::optional<Event> Perform(RepairId repair_id, action::EndParts& end, Reply* reply);
  std::optional<Event> Perform(RepairId repair_id, action::Cancel& cancel, Reply* reply);
  std::optional<Event> Perform(RepairId repair_id, action::CancelLater& cancel, Reply* reply);
  std::optional<Event> Perform(RepairId repair_id, action::MoveBlock& move, Reply* reply);
  std::optional<Event> Perform(RepairId repair_id, action::TryPlan& attempt, Reply* reply);
  std::optional<Event> Perform(RepairId repair_id, action::Grant& grant, Reply* reply);
  std::optional<Event> Perform(RepairId repair_id, action::Refuse& refuse, Reply* reply);
  std::optional<Event> Perform(RepairId repair_id, action::Advise& advise, Reply* reply);
  std::optional<Event> Perform(RepairId repair_id, action::Fault& fault, Reply* reply);
  std::optional<Event> Perform(RepairId repair_id, action::Doubt& doubt, Reply* reply);
  std::optional<Event> Perform(RepairId repair_id, action::End& end, Reply* reply);
  std::optional<Event> Perform(RepairId repair_id, action::TellEnd& tell, Reply* reply);
  std::optional<Event> Perform(RepairId repair_id, action::TellPartEnd& tell, Reply* reply);
  // What the coordinator learns of a part's end, whether it is told or has to ask.
  static void LogPartEnd(const std::string& node, RepairId repair_id, const absl::Status& status);
  event::Planned PlanAttempt(RepairId repair_id, const action::Plan& plan);
  absl::StatusOr<PlannedAttempt> MakeParts(RepairId repair_id, const action::Plan& plan,
                                           PlannedRepair planned);
  // Helpers without an address get the one that they have now; those that have none are gone.
  std::vector<HelperAddress> Addressed(std::vector<HelperAddress> helpers);
  // Whether a helper that refused its part with this status says that its block is corrupt.
  bool IsCorruptWhenOpened(RepairId repair_id, const absl::Status& status);
  // The plan without the nodes that are left out; if possible also without silent ones.
  absl::StatusOr<PlannedRepair> PlanWithout(const RepairRequest& request,
                                            const WantedBlocks& wanted,
                                            const LeftOut::Reasons& left_out);
  // Whether a requestor's repair that has no plan would have one if all helpers that are at a limit
  // had room.
  bool IsForWantOfRoom(const absl::Status& why, const RepairRequest& request,
                       const WantedBlocks& wanted, const LeftOut& left_out);
  // Takes the silent ones out of `helpers`: a call would only wait for them.
  using SilentOnes = std::map<std::string, std::string>;
  static std::vector<HelperAddress> TakeSilent(const SilentOnes& silent,
                                               std::vector<HelperAddress>* helpers);
  void NoteAnswers(const std::vector<HelperAddress>& helpers,
                   const std::vector<absl::Status>& answers);
  // Cancels the parts at helpers that answer, and leaves those at silent helpers behind.
  using CancelCall = std::function<std::vector<absl::Status>(const std::vector<HelperAddress>&)>;
  void CancelAt(RepairId repair_id, uint32_t attempt, std::vector<HelperAddress> helpers,
                const CancelCall& call);
  // What was left behind and can be cancelled now.
  void TakeLeftBehind(std::vector<Heard>* heard) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Asks silent nodes whether they answer again.
  void ProbeSilent();
  // Whether the catalog has other bytes of the block by now: what was said of those before says
  // nothing of these.
  bool IsLoadedAnew(const LocalBlock& block);
  // Records that a helper found its block corrupt when it opened it.
  void ReportOpened(const HelperGateway::Handout& handout, const absl::Status& status);
  // Journal::Record. Counts what that does not take, and says so now and then.
  absl::Status Record(const RepairRecord& record);
  void StoreEnd(const RepairRecord& record);
  void StoreUnwritten();

  Catalog* const catalog_;
  Journal* const journal_;
  HelperGateway* const helpers_;
  const Clock* const clock_;
  const Options options_;
  RepairListener* const listener_;
  const TimePoint started_;
  NodeRegistry nodes_;
  KnownLinks links_;
  BusyNodes busy_;
  CorruptBlocks corrupt_;
  RepairPlanner planner_;

  Mutex mutex_;
  uint32_t max_running_ ABSL_GUARDED_BY(mutex_);
  // Ended repairs stay until the last answer has come.
  std::map<RepairId, Tracked> repairs_ ABSL_GUARDED_BY(mutex_);
  std::map<RepairId, Ended> ended_ ABSL_GUARDED_BY(mutex_);
  // That all running repairs send, by node, without zeros: each heartbeat asks for them.
  std::map<std::string, uint64_t> streams_ ABSL_GUARDED_BY(mutex_);
  uint64_t all_streams_ ABSL_GUARDED_BY(mutex_) = 0;
  // Those in repairs_ that are in the background, and the hosted ones that have not ended, by
  // stripe: what begins is not compared with all that runs.
  size_t background_ ABSL_GUARDED_BY(mutex_) = 0;
  std::set<std::pair<std::string, RepairId>> storing_ ABSL_GUARDED_BY(mutex_);
  std::deque<LeftBehind> left_behind_ ABSL_GUARDED_BY(mutex_);  // for Expire to cancel
  RepairId last_ticked_ ABSL_GUARDED_BY(mutex_) = 0;  // Expire goes on with the repair after it
  // Ended repairs that the journal could not record yet, and therefore still has as running. They
  // are kept here until it can, so that questions about them are answered. At most max_running.
  std::map<RepairId, RepairRecord> unwritten_ ABSL_GUARDED_BY(mutex_);
  std::optional<TimePoint> journal_failed_ ABSL_GUARDED_BY(mutex_);  // when that was said last
  RepairCounts counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ecpipe
