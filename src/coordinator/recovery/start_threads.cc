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
  if (busy > threads_.size()) threads_.emplace_back([this] { Work(); });
  changed_.NotifyOne();
}

void StartThreads::Work() {
  while (true) {
    std::function<void()> work;
    {
      MutexLock lock(&mutex_);
      while (work_.empty() && !stopping_) changed_.Wait(lock);
      if (work_.empty()) return;
      work = std::move(work_.back());
      work_.pop_back();
    }
    work();
    {
      MutexLock lock(&mutex_);
      --busy_;
    }
    on_free_();
  }
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
