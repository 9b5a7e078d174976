// SPDX-License-Identifier: Apache-2.0
// Watches hosted repairs, whose blocks helpers store, and continues them after a fault. Both mean
// waiting for helpers, which may hang; so this has threads of its own, and the threads that report
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
class HostedWatch : public RepairListener {
 public:
  // To be given to a coordinator; passes the ends of repairs and parts on to `ends`, which outlives
  // it, unless that is null.
  explicit HostedWatch(RepairListener* ends = nullptr) : ends_(ends) {}
  ~HostedWatch() override { Stop(); }

  // Begins to watch the coordinator's repairs. Call it once, before Stop and before the first
  // repair. `repairs` outlives Stop.
  void Start(RepairCoordinator* repairs);

  // Waits until it is done with the repairs that it is handling. The others stay as they are: the
  // next coordinator finds them in the journal.
  void Stop();

  void OnHostedEnd(const HostedEnd& end) override;
  void OnHostedPartEnd(const HostedPartEnd& end) override;
  bool OnHostedFault(RepairId repair_id) override;

 private:
  struct Task {
    RepairId repair_id = 0;
    bool failed = false;  // true: continue the repair; false: only check its progress
  };

  void PushChecks();
  void Push(const Task& task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Starts one more thread if a task waits for one.
  void Grow() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // False when it is time to stop.
  bool WaitForTick();
  void Run();

  RepairListener* const ends_;
  RepairCoordinator* repairs_ = nullptr;  // set by Start
  Mutex mutex_;
  CondVar wake_;
  CondVar stop_;
  // Has each repair at most once for either reason, so it is bounded by the number of running
  // repairs.
  std::deque<Task> queue_ ABSL_GUARDED_BY(mutex_);
  std::set<RepairId> checking_ ABSL_GUARDED_BY(mutex_);  // queued, or being checked
  std::vector<Thread> threads_ ABSL_GUARDED_BY(mutex_);
  size_t idle_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  Thread ticker_;
};

}  // namespace ecpipe
