// SPDX-License-Identifier: Apache-2.0
// Watches hosted repairs, whose blocks helpers store, and continues them after a fault. Both mean
// waiting for helpers, which may hang; so this has a thread of its own, and the threads that report
// faults or end abandoned repairs do not wait.
#pragma once

#include <deque>
#include <set>
#include <vector>

#include "base/mutex.h"
#include "base/thread.h"
#include "coordinator/repairs/repair_coordinator.h"

namespace ecpipe {

// Thread-safe.
class HostedWatch {
 public:
  // From now on the coordinator reports faults to this object. `repairs` outlives it, and reports
  // nothing after its destruction.
  explicit HostedWatch(RepairCoordinator* repairs);
  ~HostedWatch() { Stop(); }

  // Begins to watch. Call it once, before Stop.
  void Start();

  // Waits until it is done with the repairs that it is handling. The others stay as they are: the
  // next coordinator finds them in the journal.
  void Stop();

 private:
  struct Task {
    RepairId repair_id = 0;
    bool go_on = false;  // true: continue the repair; false: only look at it
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
  // Has each repair at most once for either reason, so it is bounded by the number of running
  // repairs.
  std::deque<Task> queue_ ABSL_GUARDED_BY(mutex_);
  std::set<RepairId> looking_ ABSL_GUARDED_BY(mutex_);  // queued, or being looked at
  std::vector<Thread> threads_ ABSL_GUARDED_BY(mutex_);
  size_t idle_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  Thread ticker_;
};

}  // namespace ecpipe
