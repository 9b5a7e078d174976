// SPDX-License-Identifier: Apache-2.0
// Looks after hosted repairs, and takes them on after a fault. Both mean to wait for helpers, some
// of which may hang; so neither who reports a fault nor who ends abandoned repairs does it.
#pragma once

#include <deque>
#include <set>
#include <vector>

#include "common/mutex.h"
#include "common/thread.h"
#include "coordinator/repair_coordinator.h"

namespace ecpipe {

// Thread-safe.
class HostedWatch {
 public:
  // Has the coordinator tell it of faults from now on; `repairs` outlives it, and tells it of
  // nothing once it is destroyed.
  explicit HostedWatch(RepairCoordinator* repairs);
  ~HostedWatch() { Stop(); }

  // Looks from now on. Once, before Stop.
  void Start();

  // Waits for the repairs that are being looked at or taken on, and leaves the others as they are:
  // the next coordinator finds them in the journal.
  void Stop();

 private:
  struct Task {
    RepairId repair_id = 0;
    bool go_on = false;  // otherwise a look
  };

  void PushFault(RepairId repair_id);
  void PushLooks();
  void Push(const Task& task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // False when it is time to stop.
  bool WaitForTick();
  void Run();

  RepairCoordinator* const repairs_;
  Mutex mutex_;
  CondVar wake_;
  CondVar stop_;
  // Each repair once at most for either reason, so bounded by what the coordinator runs.
  std::deque<Task> queue_ ABSL_GUARDED_BY(mutex_);
  std::set<RepairId> looking_ ABSL_GUARDED_BY(mutex_);  // queued, or being looked at
  std::vector<Thread> threads_ ABSL_GUARDED_BY(mutex_);
  size_t idle_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  Thread ticker_;
};

}  // namespace ecpipe
