// SPDX-License-Identifier: Apache-2.0
#include "coordinator/recovery/start_threads.h"

#include "base/check.h"

namespace ecpipe {

void StartThreads::Run(std::function<void()> work) {
  size_t busy = 0;
  {
    MutexLock lock(&mutex_);
    ECPIPE_CHECK(busy_ < kMost && !stopping_);
    work_.push_back(std::move(work));
    busy = ++busy_;
  }
  if (busy > threads_.size()) {
    absl::StatusOr<Thread> thread = Thread::Start([this] { Work(); });
    if (thread.ok()) threads_.push_back(*std::move(thread));
    // Where the system has no thread to give, those that are there take the work one by one.
    if (threads_.empty()) DoOne();
  }
  changed_.NotifyOne();
}

void StartThreads::Work() {
  while (DoOne()) {
  }
}

bool StartThreads::DoOne() {
  std::function<void()> work;
  {
    MutexLock lock(&mutex_);
    while (work_.empty() && !stopping_) changed_.Wait(lock);
    if (work_.empty()) return false;
    work = std::move(work_.back());
    work_.pop_back();
  }
  work();
  {
    MutexLock lock(&mutex_);
    --busy_;
  }
  on_free_();
  return true;
}

void StartThreads::Stop() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  for (Thread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace ecpipe
