// SPDX-License-Identifier: Apache-2.0
// A std::mutex with clang thread-safety annotations. absl::Mutex is not used: ThreadSanitizer
// cannot see into Debian's build of it and reports false races.
#pragma once

#include <condition_variable>
#include <mutex>

#include "absl/base/thread_annotations.h"
#include "base/simulator.h"

namespace ecpipe {

class ABSL_LOCKABLE Mutex {
 public:
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }

 private:
  friend class MutexLock;
  std::mutex mutex_;
};

// Holds a Mutex for its scope; also the handle that a CondVar waits with.
class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex* mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : lock_(mutex->mutex_) {}
  ~MutexLock() ABSL_UNLOCK_FUNCTION() = default;
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  friend class CondVar;
  std::unique_lock<std::mutex> lock_;
};

class CondVar {
 public:
  void Wait(MutexLock& lock) {
    if (Simulator* simulator = Simulator::Installed()) {
      simulator->Wait(this, lock.lock_, std::nullopt);
    } else {
      condition_.wait(lock.lock_);
    }
  }
  // Returns false when `deadline` passed without a notification.
  bool WaitUntil(MutexLock& lock, TimePoint deadline) {
    if (Simulator* simulator = Simulator::Installed()) {
      return simulator->Wait(this, lock.lock_, deadline);
    }
    return condition_.wait_until(lock.lock_, deadline) == std::cv_status::no_timeout;
  }
  void NotifyOne() {
    if (Simulator* simulator = Simulator::Installed()) simulator->Notify(this);
    condition_.notify_one();
  }
  void NotifyAll() {
    if (Simulator* simulator = Simulator::Installed()) simulator->Notify(this);
    condition_.notify_all();
  }

 private:
  std::condition_variable condition_;
};

}  // namespace ecpipe
