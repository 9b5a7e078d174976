// SPDX-License-Identifier: Apache-2.0
// Takes hosted repairs on after a fault. That means to wait for helpers, some of which may hang;
// so neither who reports the fault nor who looks after all repairs does it.
#pragma once

#include <deque>
#include <vector>

#include "common/mutex.h"
#include "common/thread.h"
#include "coordinator/repair_coordinator.h"

namespace ecpipe {

// Thread-safe.
class RepairResumer {
 public:
  // Has the coordinator tell it of faults from now on; `repairs` outlives it, and tells it of
  // nothing once it is destroyed.
  explicit RepairResumer(RepairCoordinator* repairs);
  ~RepairResumer() { Stop(); }

  // Waits for the repairs that are being taken on, and leaves the others as they are: the next
  // coordinator finds them in the journal.
  void Stop();

 private:
  void Push(RepairId repair_id);
  void Run();

  RepairCoordinator* const repairs_;
  Mutex mutex_;
  CondVar wake_;
  // Each repair once at most, so as many as the coordinator runs.
  std::deque<RepairId> queue_ ABSL_GUARDED_BY(mutex_);
  std::vector<Thread> threads_ ABSL_GUARDED_BY(mutex_);
  size_t idle_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace ecpipe
