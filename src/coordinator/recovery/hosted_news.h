// SPDX-License-Identifier: Apache-2.0
// What the repairs of recoveries have to tell, kept until the thread of the recoveries takes it: so
// repairs know nothing of recoveries.
#pragma once

#include <deque>
#include <utility>
#include <variant>

#include "base/mutex.h"
#include "coordinator/repairs/repair_coordinator.h"

namespace ecpipe {

// Thread-safe.
class HostedNews : public RepairListener {
 public:
  using Item = std::variant<HostedEnd, HostedPartEnd>;

  void OnHostedEnd(const HostedEnd& end) override { Add(end); }
  void OnHostedPartEnd(const HostedPartEnd& end) override { Add(end); }

  // Makes the next Await return at once.
  void Wake() {
    MutexLock lock(&mutex_);
    woken_ = true;
    wake_.NotifyAll();
  }

  // Waits for something to Drain, or for Wake, until `deadline`.
  void Await(TimePoint deadline) {
    MutexLock lock(&mutex_);
    while (!woken_ && items_.empty() && wake_.WaitUntil(lock, deadline)) {
    }
    woken_ = false;
  }

  // Takes what has been told, in order.
  std::deque<Item> Drain() {
    MutexLock lock(&mutex_);
    return std::exchange(items_, {});
  }

 private:
  template <typename End>
  void Add(const End& end) {
    if (end.recovery_id == 0) return;
    MutexLock lock(&mutex_);
    items_.emplace_back(end);
    wake_.NotifyAll();
  }

  Mutex mutex_;
  CondVar wake_;
  // For each repair of a recovery that has run since the latest Drain: one end a block, and one
  // part end a node and attempt. Between two calls the thread of the recoveries has at most one
  // repair begin for each recovery, so this is bounded by the repairs that may run.
  std::deque<Item> items_ ABSL_GUARDED_BY(mutex_);
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace ecpipe
