// SPDX-License-Identifier: Apache-2.0
// The parts that run on this helper. A session is one part: a thread, its slice buffers, its
// streams.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "common/repair_plan.h"
#include "helper/block_store.h"
#include "helper/part_sink.h"
#include "pipeline/part_runner.h"

namespace ecpipe {

// What became of a part.
struct PartReport {
  RepairId repair_id = 0;
  uint32_t attempt = 0;
  absl::Status status;
  PartTraffic traffic;
  Duration elapsed{};
  std::vector<LinkTiming> links;  // of the streams that were to be measured
};

struct SessionCounts {
  uint32_t active_sessions = 0;
  uint64_t buffer_bytes = 0;  // slice buffers held by active sessions
  PartTraffic traffic;        // of all parts since the start
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
    // All slice buffers together; a part of one path hop takes 1 MiB.
    uint64_t max_buffer_bytes = uint64_t{512} << 20;
  };
  // Called once for each part that was started, from its own thread.
  using OnEnd = std::function<void(const PartReport&)>;

  // `store` and the transports outlive the manager; `redis` may be null.
  SessionManager(BlockStore* store, Transport* tcp, Transport* redis, const Options& options,
                 OnEnd on_end);
  // Cancels what runs and waits for it.
  ~SessionManager();

  // Opens the part's blocks and streams and runs it on a thread of its own. `part` has passed
  // ValidatePart. The errors are those of HelperService.StartPart; nothing is left behind after
  // one. A newer attempt cancels the older one of its repair.
  absl::Status Start(RepairPart part);

  // Ends the parts of a repair up to this attempt; returns how many.
  uint32_t Cancel(RepairId repair_id, uint32_t attempt);

  // Refuses new parts from now on.
  void StopAdmitting();
  // The same, and waits for the parts that run; after `patience` it cancels them.
  void Drain(Duration patience);
  bool draining();

  SessionCounts counts();

 private:
  struct Session {
    std::unique_ptr<PartSink> sink;  // null unless rows end here; outlives the runner
    std::unique_ptr<PartRunner> runner;
    std::thread thread;
    uint64_t buffer_bytes = 0;
    TimePoint started;
  };
  // One part a repair and attempt runs here.
  using SessionKey = std::pair<RepairId, uint32_t>;
  using Sessions = std::map<SessionKey, Session>;

  absl::StatusOr<PartRunner::Blocks> OpenBlocks(const RepairPart& part);
  // Null when no rows end here.
  absl::StatusOr<std::unique_ptr<PartSink>> OpenSink(const RepairPart& part);
  absl::Status Admit(const RepairPart& part, uint64_t buffer_bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Run(const SessionKey& key, PartRunner* runner, PartSink* sink, TimePoint started);
  void JoinEnded();

  BlockStore* const store_;
  Transport* const tcp_;
  Transport* const redis_;
  const Options options_;
  const OnEnd on_end_;

  Mutex mutex_;
  CondVar ended_;
  Sessions sessions_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> joinable_ ABSL_GUARDED_BY(mutex_);
  SessionCounts counts_ ABSL_GUARDED_BY(mutex_);
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace ecpipe
