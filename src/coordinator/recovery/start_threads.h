// SPDX-License-Identifier: Apache-2.0
// Threads that begin repairs. Each waits for the helpers of its own repair, one of which may hang.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/thread.h"

namespace ecpipe {

// Used by one thread.
class StartThreads {
 public:
  // One thread began 208 in a second (docs/scale.md), so 500 keep three at work. The others are for
  // nodes that hang: one holds up each of its repairs that begin for two seconds, until it is known
  // to be silent. More would not help: they would all wait for it.
  static constexpr size_t kMost = 16;

  // `on_free` is called by each thread when it is done with its work, and outlives Stop.
  explicit StartThreads(std::function<void()> on_free) : on_free_(std::move(on_free)) {}
  ~StartThreads() { Stop(); }

  bool HasRoom() {
    MutexLock lock(&mutex_);
    return busy_ < kMost;
  }

  // There must be room, so that nothing waits to begin. Returns at once, unless the system has not
  // one thread to give.
  void Run(std::function<void()> work);

  // Waits for what was begun. The last call.
  void Stop();

 private:
  void Work();
  // Waits for work and does it. Returns false at the end.
  bool DoOne();

  const std::function<void()> on_free_;
  std::vector<Thread> threads_;  // as many as there was work for at once
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::function<void()>> work_ ABSL_GUARDED_BY(mutex_);  // not taken up yet
  size_t busy_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace ecpipe
