// SPDX-License-Identifier: Apache-2.0
// The parts that run on this helper. A session is one part: a thread, its slice buffers, its
// streams.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "helper/sessions/kept_blocks.h"
#include "helper/sessions/probe_ends.h"
#include "helper/sessions/store_sink.h"
#include "helper/store/block_store.h"
#include "model/plan/part_progress.h"
#include "model/plan/repair_plan.h"
#include "pipeline/parity_check_sink.h"
#include "pipeline/part_runner.h"

namespace ecpipe {

// How a part ended.
struct PartReport {
  RepairId repair_id = 0;
  uint32_t attempt = 0;
  absl::Status status;
  PartTraffic traffic;
  Duration elapsed{};
  std::vector<LinkTiming> links;  // timings of the streams that the plan wants measured
  bool stored = false;            // the store has blocks that it had not
};

struct SessionCounts {
  uint32_t active_sessions = 0;
  uint32_t kept_parts = 0;    // failed parts whose stored slices are kept for another attempt
  uint64_t buffer_bytes = 0;  // slice buffers and tallies held by active sessions
  PartTraffic traffic;        // traffic of all parts since the start
  uint64_t parts_done = 0;
  uint64_t parts_failed = 0;
};

// Thread-safe.
class SessionManager {
 public:
  struct Options {
    PartOptions part;
    // A repair opens one session on each of k helpers; a recovery runs several repairs at once.
    uint32_t max_sessions = 64;
    // Limit of all slice buffers together. A part with one hop of a path takes 1 MiB.
    uint64_t max_buffer_bytes = uint64_t{512} << 20;
    // How long the stored slices of a failed part are kept for the next attempt. The coordinator
    // asks for them within a few seconds or never. At most max_sessions parts are kept.
    Duration keep_for = std::chrono::seconds(30);
  };
  // Background parts get at most this share of sessions and buffers, so that a degraded read finds
  // room whatever a recovery does.
  static constexpr double kBackgroundShare = 0.75;
  // Called once for each part that was started, from its own thread.
  using OnEnd = std::function<void(const PartReport&)>;

  // `store` and the transports outlive the manager; `redis` may be null.
  SessionManager(BlockStore* store, Transport* tcp, Transport* redis, const Options& options,
                 OnEnd on_end);
  // Cancels the running parts and waits for them.
  ~SessionManager();

  // Opens the part's blocks and streams and runs the part on a thread of its own. `part` has passed
  // ValidatePart. Returns the checksums that the store keeps of the part's block, if it keeps any.
  // A newer attempt cancels the older one of its repair, and goes on from the slices that a failed
  // attempt has stored; FAILED_PRECONDITION: it needs these slices, and they are not here. The
  // other errors are those of HelperService.StartPart. After an error nothing is left behind, and
  // the slices of an older attempt stay.
  absl::StatusOr<std::optional<ChecksumKind>> Start(RepairPart part);

  // Ends the parts of a repair in attempts up to this one; returns how many. Discards the slices
  // that they and earlier parts have stored.
  uint32_t Cancel(RepairId repair_id, uint32_t attempt);
  // The same, but keeps the slices for the next attempt. Waits at most half a second until the
  // parts that store blocks have ended, also those that are being opened.
  uint32_t CancelAndKeep(RepairId repair_id, uint32_t attempt);

  // How far a part has come, or how it ended and which slices it lacks. NOT_FOUND: the part has not
  // run here since the process started, or it ended long ago. Waits only a moment.
  absl::StatusOr<PartProgress> Progress(RepairId repair_id, uint32_t attempt);

  // Replaces Options::max_sessions. Sessions beyond the new limit go on to their end.
  void SetMaxSessions(uint32_t max_sessions);
  uint32_t max_sessions();

  // Refuses new parts from now on.
  void StopAdmitting();
  // The same, and waits for the running parts; after `patience` it cancels them. Keeps no slices.
  // False: some have not ended ten seconds after that, because a disk hangs. They still use the
  // manager, so it cannot be destroyed then before the disk answers; the process can end.
  bool Drain(Duration patience);
  bool draining();

  SessionCounts counts();

 private:
  struct Session {
    // Where the part's rows end, if they end here. At most one of the two is set; both outlive the
    // runner.
    std::unique_ptr<StoreSink> store;
    std::unique_ptr<DiscardSink> probe_sink;
    std::unique_ptr<ParityCheckSink> check;  // in front of the sink; null without check rows
    std::shared_ptr<PartRunner> runner;      // shared with callers that ask for its progress
    Thread thread;
    uint64_t buffer_bytes = 0;
    TimePoint started;
    std::optional<ChecksumKind> checksum;  // the checksums that the store keeps of its block
    bool goes_on = false;                  // `store` is from an older attempt
    bool discard = false;                  // the slices that it stores must not be kept
  };
  // At most one part runs here for a repair and attempt.
  using SessionKey = std::pair<RepairId, uint32_t>;
  using Sessions = std::map<SessionKey, Session>;

  absl::StatusOr<PartRunner::Blocks> OpenBlocks(const RepairPart& part);
  // Opens the sink of a part that stores blocks: the one of an older attempt, or a new one.
  absl::Status OpenStore(const RepairPart& part, Session* session);
  // Opens the part's blocks, sink and streams.
  absl::Status Open(RepairPart part, Transport* transport, Session* session);
  // A part whose blocks and streams are being opened, without the lock. It counts as a session.
  struct Opening {
    SessionKey key;
    bool background = false;
    bool stores = false;  // blocks
    uint64_t buffer_bytes = 0;
    bool cancelled = false;  // it must not begin any more
    bool discard = false;    // and what an older attempt has stored must not be kept
  };
  using Openings = std::list<Opening>;
  // Makes a session of what was opened. After an error it is the caller's, as is the opening.
  absl::Status BeginOpened(Openings::iterator opening, Session* opened);
  // Ends an opening that becomes no session, and what was opened.
  void Forget(Openings::iterator opening, Session* opened);
  // Takes the session, and starts its thread. After an error it is the caller's again.
  absl::Status Begin(const SessionKey& key, Session* opened) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Admit(const RepairPart& part, uint64_t buffer_bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status AdmitBackground(uint64_t buffer_bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Run(const SessionKey& key, PartRunner* runner, StoreSink* store, TimePoint started);
  // As Drain(); waits without end if no `last` patience is given.
  bool End(Duration patience, std::optional<Duration> last);
  enum class Stored { kKeep, kDiscard };
  uint32_t EndSessions(RepairId repair_id, uint32_t attempt, Stored stored);
  // Forgets a session that has ended. Returns true if its slices must not be kept.
  bool Erase(const SessionKey& key, const PartReport& report);
  bool Discards(const SessionKey& key);
  void JoinEnded();

  BlockStore* const store_;
  Transport* const tcp_;
  Transport* const redis_;
  const Options options_;
  const OnEnd on_end_;
  KeptBlocks kept_;

  Mutex mutex_;
  CondVar ended_;
  Sessions sessions_ ABSL_GUARDED_BY(mutex_);
  Openings opening_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::pair<SessionKey, absl::Status>> ends_ ABSL_GUARDED_BY(mutex_);  // the latest
  std::vector<Thread> joinable_ ABSL_GUARDED_BY(mutex_);
  uint32_t max_sessions_ ABSL_GUARDED_BY(mutex_);
  SessionCounts counts_ ABSL_GUARDED_BY(mutex_);
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace ecpipe
