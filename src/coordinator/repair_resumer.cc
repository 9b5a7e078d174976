// SPDX-License-Identifier: Apache-2.0
#include "coordinator/repair_resumer.h"

#include <utility>

namespace ecpipe {
namespace {

// They wait nearly all of their time. A node that hangs holds each of its repairs up for about two
// seconds here, so a few at once keep a recovery going.
constexpr size_t kMaxThreads = 8;

}  // namespace

RepairResumer::RepairResumer(RepairCoordinator* repairs) : repairs_(repairs) {
  repairs_->SetHostedFault([this](RepairId repair_id) { Push(repair_id); });
}

void RepairResumer::Push(RepairId repair_id) {
  {
    MutexLock lock(&mutex_);
    if (stopping_) return;
    queue_.push_back(repair_id);
    if (queue_.size() > idle_ && threads_.size() < kMaxThreads) {
      threads_.emplace_back([this] { Run(); });
    }
  }
  wake_.NotifyOne();
}

void RepairResumer::Run() {
  while (true) {
    RepairId repair_id = 0;
    {
      MutexLock lock(&mutex_);
      ++idle_;
      while (queue_.empty() && !stopping_) wake_.Wait(lock);
      --idle_;
      if (stopping_) return;
      repair_id = queue_.front();
      queue_.pop_front();
    }
    repairs_->GoOn(repair_id);
  }
}

void RepairResumer::Stop() {
  std::vector<Thread> threads;
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    threads.swap(threads_);
  }
  wake_.NotifyAll();
  for (Thread& thread : threads) thread.join();
}

}  // namespace ecpipe
