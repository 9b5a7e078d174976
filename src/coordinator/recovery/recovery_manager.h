// SPDX-License-Identifier: Apache-2.0
// Runs full-node recoveries: lists what is lost, starts hosted repairs as the queue and the policy
// say, and follows them. docs/design/003-recovery.md has the reasons.
#pragma once

#include <deque>
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
#include "base/thread.h"
#include "coordinator/recovery/hosted_news.h"
#include "coordinator/recovery/loss_finder.h"
#include "coordinator/recovery/placement/recovery_policy.h"
#include "coordinator/recovery/recovery_queue.h"
#include "coordinator/recovery/recovery_waits.h"
#include "coordinator/recovery/start_threads.h"
#include "coordinator/repairs/repair_coordinator.h"
#include "coordinator/store/catalog.h"
#include "coordinator/store/journal.h"
#include "model/recovery.h"

namespace ecpipe {

// The time over which the rate in bytes per second is averaged.
inline constexpr Duration kRecoveryRateWindow = std::chrono::seconds(30);

// Thread-safe.
class RecoveryManager {
 public:
  struct Options {
    RecoveryQueue::Options queue;
    uint32_t streams_per_node = 8;
    std::string default_scheme = "auto";  // of requests that name none
    // Most nodes that fall silent come back: a restart, an update, a cable.
    Duration delay = std::chrono::seconds(120);
    // After the start a node that has not registered may be alive all the same, for so long.
    Duration gather = std::chrono::seconds(5);
    // Between the first two questions to a node that is back and cannot tell what it has. Doubles
    // with each.
    Duration question_pause = std::chrono::seconds(1);
  };

  // All pointers outlive the manager. `news` is what `repairs` tells.
  RecoveryManager(Catalog* catalog, Journal* journal, RepairCoordinator* repairs,
                  HelperGateway* helpers, HostedNews* news, const Clock* clock,
                  const Options& options);
  // Starts no more repairs; running repairs stay in the journal for the next coordinator.
  ~RecoveryManager();

  // Reads the journal and continues the recoveries that were running. `interrupted` is the result
  // of Journal::ClaimInterrupted. Call it before any other call.
  absl::Status Open(std::vector<RepairRecord> interrupted);

  // What the calls that change something have done is in the journal, and outlives the process and
  // a power cut. Where the journal does not take it, nothing has changed, and the error is the
  // journal's. UNKNOWN: the disk failed, and the error says whether it has changed here; the next
  // coordinator may find it either way.

  // FAILED_PRECONDITION: the node is live, and `if_live` says to refuse it. ALREADY_EXISTS: a
  // recovery of the node is running. INVALID_ARGUMENT: an unknown scheme, or a host that never
  // registered. A request of kMove begins a drain, whatever `if_live` is; NOT_FOUND: the node is
  // unknown; FAILED_PRECONDITION: it is dead, or belongs to a storage system.
  absl::StatusOr<RecoveryId> Begin(const RecoveryRequest& request, IfLive if_live);
  // The record with which Begin would begin, or its error; begins nothing. (recovery_begin.cc)
  absl::StatusOr<RecoveryRecord> Prepare(const RecoveryRequest& request, IfLive if_live);

  // NOT_FOUND: unknown id. FAILED_PRECONDITION: the recovery has ended; or a maintenance is to
  // pause whose time is not over. A paused recovery starts no more repairs; a cancelled one also
  // ends the running repairs.
  absl::Status Pause(RecoveryId id);
  absl::Status Resume(RecoveryId id);
  absl::Status Cancel(RecoveryId id);
  // The FAILED_PRECONDITION of these.
  static absl::Status CheckMayChange(const RecoveryRecord& record, RecoveryState to);
  // Nodes that take no blocks. (recovery_kept_out.cc)
  static constexpr double kShortestMaintenanceSeconds = 1;
  static constexpr double kLongestMaintenanceSeconds = 7 * 86400;
  // The node may be away for so long from now. Changes the end of the maintenance that it is in, if
  // it is in one. NOT_FOUND: it is unknown, and the catalog has no block on it.
  // FAILED_PRECONDITION: it belongs to a storage system. ALREADY_EXISTS: a recovery of it is
  // running. INVALID_ARGUMENT: such a time is not allowed. ABORTED: its maintenance ended while
  // this was asked.
  absl::StatusOr<RecoveryId> Maintain(const std::string& node, double seconds);
  // The record that Maintain would store, or its error. Its id is 0 where a maintenance would
  // begin.
  absl::StatusOr<RecoveryRecord> PrepareMaintenance(const std::string& node, double seconds);
  // The node takes blocks again: of drains that have ended, and its maintenance, which ends now.
  // NOT_FOUND: there is none. FAILED_PRECONDITION: a drain of it is running, or paused.
  absl::Status Readmit(const std::string& node);
  // What Readmit would end, or its error.
  absl::StatusOr<std::vector<RecoveryRecord>> KeptOutBy(const std::string& node);

  // The catalog has new blocks on these nodes: recoveries of them list it once more, for they may
  // have passed the place. Those of a coordinator after this one list it from its begin.
  void Loaded(const std::set<std::string>& nodes);

  absl::StatusOr<RecoveryView> Get(RecoveryId id);
  // The newest first.
  std::vector<RecoveryView> All();
  // What costs little to say of each, for metrics. The newest first, without those that are
  // OnlyAnnounced.
  struct Overview {
    std::string node;
    RecoveryState state = RecoveryState::kRunning;
    int64_t started_unix_ms = 0;
    int64_t ended_unix_ms = 0;  // 0: it has not
    uint64_t waiting_blocks = 0;
    uint64_t running_blocks = 0;
    RecoveryKind kind = RecoveryKind::kRebuild;
  };
  std::vector<Overview> Overviews();
  // For metrics, of all recoveries that have not ended; a maintenance as above. Each call looks at
  // a few blocks of a recovery, and at all of them once other nodes are usable.
  // (recovery_gauges.cc)
  // The blocks that wait, by what they wait for.
  std::map<WaitKind, uint64_t> WaitingByKind();
  // The blocks that wait or run, by the survivors that they have to spare. A drain's blocks are
  // none of them while its node lives: they are not lost.
  std::map<RecoveryQueue::Spare, uint64_t> BlocksBySpare();
  // The blocks that wait, of all recoveries: at most `most`, the most urgent first.
  std::vector<WaitingBlock> Waiting(size_t most);

 private:
  // The nodes as the policy sees them for a recovery.
  struct Nodes {
    std::set<std::string> usable;
    std::vector<std::string> hosts;
    std::set<std::string> suspects;
    LiveRacks racks;
    uint32_t streams = 0;
    NodeSpeeds speeds;     // if the policy asks for them
    uint64_t changes = 0;  // of the registry
    TimePoint looked_up{};

    // Valid as long as the nodes and the blocks.
    PolicyInput InputFor(std::span<const LostBlock* const> blocks) const {
      return {blocks, usable, hosts, suspects, racks, streams, speeds};
    }
  };
  struct Recovery {
    explicit Recovery(const RecoveryQueue::Options& options) : queue(options) {}
    RecoveryRecord record;
    RecoveryQueue queue;
    std::optional<std::string> list_after = "";  // the position of the listing; nothing at its end
    bool listed = false;                         // to its end, once at least
    bool list_again = false;                     // once this listing is at its end
    bool comparing = false;  // the node has come back, and this listing is the first since
    // The life of the node whose blocks the listing leaves out, because it has them; nothing: it is
    // away, and all are lost.
    std::optional<uint64_t> compared_with;
    int failed_questions = 0;  // to that life, one after the other
    TimePoint ask_again{};
    std::string trouble;  // of the last question
    // Repairs that an earlier coordinator began and that have not ended.
    std::set<std::string> adopted;
    // Of a move: blocks that could not be copied when they were tried last.
    std::set<std::string> not_copied;
    // Of a move: how many blocks there were when the catalog was last listed to its end, and all of
    // them were done.
    std::optional<uint64_t> all_moved;
    struct InFlight {
      // The repair has begun: what it was expected to be becomes what was planned.
      void EndStart(const std::vector<NodeLoad>& planned, RecoveryLoads* all);
      void EndPart(const std::string& node, RecoveryLoads* all);
      void EndLoads(RecoveryLoads* all) const;

      std::string host;
      bool copy = false;
      uint64_t starting = 0;  // the number of its Start, until that is done; 0: it runs
      // Of the nodes whose parts still run; while it starts, what is expected.
      std::vector<NodeLoad> loads = {};
      std::set<std::string> ended_parts = {};  // while it starts
    };
    std::map<std::string, InFlight> in_flight;  // by block id
    // Hosts of repairs that failed, and until when other hosts are preferred: that a node is dead
    // is known only some seconds later.
    std::map<std::string, TimePoint> suspects;
    std::deque<std::pair<TimePoint, uint64_t>> lately_done;  // bytes
    std::optional<Nodes> nodes;         // as they were looked up last; nothing: look anew
    std::vector<BlockedBlock> blocked;  // once it has ended, and the queue is forgotten
  };
  struct Choice {
    Placement placement;
    int needed = 0;  // this and the others as in LostBlock
    uint64_t bytes = 0;
    bool uncertain = false;
  };
  // A repair that is about to begin.
  struct Start {
    RecoveryId id = 0;
    uint64_t number = 0;  // of all starts of this coordinator, from 1 on
    RepairRequest request = {};
    LossFinder::OwnNode own_node = LossFinder::OwnNode::kHasLostIt;
  };

  void Run();
  // One step of each recovery; false when there was nothing to do.
  bool Turn();
  // Hears what repairs have told. Returns whether there was something.
  bool RecordNews();
  // Notices nodes that are back, and those that are away again.
  void FollowNodes();
  void FollowNode(Recovery* recovery) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Lists a page of the lost blocks. Nothing to do: a question has to wait.
  absl::StatusOr<bool> ListSome(RecoveryId id);
  // Leaves in the page what the node does not have. False: it is to be asked again.
  bool Compare(RecoveryId id, const std::string& node, LossFinder::Page* page);
  void Take(Recovery* recovery, LossFinder::Page page, std::set<std::string>* unneeded)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // recovery_starts.cc. Has at most one repair of each recovery begin, as long as there are threads
  // for it. False when there was nothing to do.
  bool StartSome(const std::vector<RecoveryId>& running);
  // The block that should be repaired next, and its nodes, by what is known of its stripe.
  std::optional<Choice> Choose(RecoveryId id);
  // The same of a move: copied, while the node's uplink has room, or rebuilt by the others.
  std::optional<Placement> PlaceMove(const Recovery& recovery, const PolicyInput& input)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Has a move list the catalog again, unless all blocks had been moved by the last listing.
  bool ListsAgain(Recovery* recovery) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Stores the record with a new id, and begins.
  absl::StatusOr<RecoveryId> Begin(RecoveryRecord record);
  // The one of the node whose time is not over; null: none.
  Recovery* MaintenanceOf(const std::string& node) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // From then on they are recoveries as others are.
  void EndMaintenances() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Tells the registry which nodes take no blocks.
  void TellKeptOut() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A drain that begins takes the place of those of its node that have ended.
  void TakeOverDrains(RecoveryId id, const std::string& node) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Looks up where the stripe's blocks are now. Nothing to begin: they are elsewhere, and the next
  // choice goes by that; or the block has to wait, or is done.
  std::optional<Start> Prepare(RecoveryId id, const Choice& choice);
  // On a thread for starts: waits for the helpers of this repair.
  void BeginRepair(const Start& start);
  // False: the recovery was paused or has ended since it was chosen, or its node has the block.
  bool MayBegin(const Start& start);
  // Null: it has ended already, or the node has the block again.
  static Recovery::InFlight* FindStarting(Recovery* recovery, const Start& start);
  void Hear(const HostedEnd& end);
  void Hear(const HostedPartEnd& end);
  // Records how the repair of a block that was started has ended.
  void RecordEnd(Recovery* recovery, const std::string& block_id, const absl::Status& status,
                 RepairStage stage) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // `why` with what the other nodes say, if it is that the block is lost for good.
  absl::Status AskIfLost(const Start& start, const absl::Status& why);
  // What keeps the whole recovery from starting anything; nothing if nothing does.
  std::optional<RecoveryWait> WhyIdle(const Recovery& recovery)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // `all` is the cluster's nodes.
  Nodes NodesFor(const Recovery& recovery, const std::vector<NodeView>& all)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // As they are, or were kNodesAge ago at most, with the queue told.
  const Nodes& LookUpNodes(Recovery* recovery) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // ALREADY_EXISTS: a recovery of the node is running, or is paused.
  absl::Status CheckNoOther(const std::string& node) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Of a recovery that has ended, with all its repairs, only what is shown is kept.
  void ForgetQueue(Recovery* recovery) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndIfFinished(Recovery* recovery) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(Recovery* recovery, RecoveryState state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Called under the lock, so that the journal sees changes in their order. `what` says in an error
  // what has not happened.
  absl::Status Store(const RecoveryRecord& record, const std::string& what)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Of what nobody has asked for. What the journal does not take, SyncIfNeeded stores later.
  void StoreIfPossible(const RecoveryRecord& record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits until what was stored survives a power cut, without the lock: a slow disk holds up only
  // the operator who has asked. `what` says in an error what has happened all the same.
  absl::Status Sync(const std::string& what);
  // The same of what StoreIfPossible has stored, or could not store. A disk that hangs holds up the
  // recoveries. After a failure it is done again, but not before `sync_again_at_`.
  void SyncIfNeeded(TimePoint now);
  // Null: it has ended, and others have taken its place (Begin), which may be whenever the lock is
  // not held.
  Recovery* Find(RecoveryId id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Recovery& Add(const RecoveryRecord& record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Of a repair that an earlier coordinator began: the journal does not keep it.
  static RepairCause CauseOf(RecoveryKind kind);
  RepairCause CauseOfAdopted(const RepairRecord& adopted) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Change(RecoveryId id, RecoveryState to);
  RecoveryView ViewOf(const Recovery& recovery) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The same with the reasons of what waits.
  RecoveryView ViewOf(const Recovery& recovery, const std::vector<NodeView>& nodes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<RecoveryWait> WaitsOf(const Recovery& recovery, const std::vector<NodeView>& all)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The streams_per_node that holds for it.
  uint32_t StreamsOf(const RecoveryRequest& request) const;
  // Whose that is.
  static std::string StreamsLimitOf(const Recovery& recovery);

  Catalog* const catalog_;
  Journal* const journal_;
  RepairCoordinator* const repairs_;
  HostedNews* const news_;
  const Clock* const clock_;
  const Options options_;
  LossFinder finder_;
  const TimePoint started_;

  Mutex mutex_;
  std::map<RecoveryId, std::unique_ptr<Recovery>> recoveries_ ABSL_GUARDED_BY(mutex_);
  RecoveryLoads loads_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // Until then nothing begins, for the coordinator was at a limit, and why. That is one for all:
  // otherwise those whose repairs end at once, without success, might always come first.
  TimePoint limited_till_ ABSL_GUARDED_BY(mutex_){};
  std::string limited_because_ ABSL_GUARDED_BY(mutex_);
  bool unsynced_ ABSL_GUARDED_BY(mutex_) = false;          // StoreIfPossible has stored something
  std::set<RecoveryId> unstored_ ABSL_GUARDED_BY(mutex_);  // whose record it could not store
  static constexpr Duration kSyncAgain = std::chrono::seconds(1);
  TimePoint questions_rest_till_ ABSL_GUARDED_BY(mutex_){};
  uint64_t last_start_ ABSL_GUARDED_BY(mutex_) = 0;
  // Used by the thread.
  TimePoint sync_again_at_{};
  RecoveryId began_last_ = 0;
  StartThreads threads_for_starts_;
  Thread thread_;
};

}  // namespace ecpipe
