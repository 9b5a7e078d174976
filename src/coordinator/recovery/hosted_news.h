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

  // Takes what has been told, in order. Waits for something, or for Wake, until `deadline`.
  std::deque<Item> Await(TimePoint deadline) {
    MutexLock lock(&mutex_);
    while (!woken_ && items_.empty() && wake_.WaitUntil(lock, deadline)) {
    }
    woken_ = false;
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
  // At most one end and one part end a node for each repair of a recovery that
  // runs.
  std::deque<Item> items_ ABSL_GUARDED_BY(mutex_);
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace ecpipe
