// SPDX-License-Identifier: Apache-2.0
#include "coordinator/repairs/hosted_watch.h"

#include <chrono>
#include <utility>

#include "base/clock.h"

namespace ecpipe {
namespace {

// They wait nearly all of their time. A node that hangs holds each of its repairs up for about two
// seconds here, so a few at once keep a recovery going.
constexpr size_t kWatchThreads = 8;
constexpr Duration kTick = std::chrono::milliseconds(100);

}  // namespace

void HostedWatch::Start(RepairCoordinator* repairs) {
  repairs_ = repairs;
  ticker_ = Thread([this] {
    while (WaitForTick()) PushChecks();
  });
}

void HostedWatch::OnHostedEnd(const HostedEnd& end) {
  if (ends_ != nullptr) ends_->OnHostedEnd(end);
}

void HostedWatch::OnHostedPartEnd(const HostedPartEnd& end) {
  if (ends_ != nullptr) ends_->OnHostedPartEnd(end);
}

bool HostedWatch::OnHostedFault(RepairId repair_id) {
  MutexLock lock(&mutex_);
  Push({repair_id, /*failed=*/true});
  return true;
}

void HostedWatch::PushChecks() {
  const std::vector<RepairId> due = repairs_->HostedToCheck();
  MutexLock lock(&mutex_);
  for (const RepairId repair_id : due) {
    if (checking_.insert(repair_id).second) Push({repair_id, /*failed=*/false});
  }
  Grow();
}

void HostedWatch::Push(const Task& task) {
  if (stopping_) return;
  // A repair that stands still before those that run.
  if (task.failed) {
    queue_.push_front(task);
  } else {
    queue_.push_back(task);
  }
  Grow();
  wake_.NotifyOne();
}

// Where the system has no thread now, the next tick asks again.
void HostedWatch::Grow() {
  if (stopping_ || queue_.size() <= idle_ || threads_.size() >= kWatchThreads) return;
  absl::StatusOr<Thread> thread = Thread::Start([this] { Run(); });
  if (thread.ok()) threads_.push_back(*std::move(thread));
}

bool HostedWatch::WaitForTick() {
  const TimePoint next = Clock::System().Now() + kTick;
  MutexLock lock(&mutex_);
  while (!stopping_ && stop_.WaitUntil(lock, next)) {
  }
  return !stopping_;
}

void HostedWatch::Run() {
  while (true) {
    Task task;
    {
      MutexLock lock(&mutex_);
      ++idle_;
      while (queue_.empty() && !stopping_) wake_.Wait(lock);
      --idle_;
      if (stopping_) return;
      task = queue_.front();
      queue_.pop_front();
    }
    if (task.failed) {
      repairs_->StartNextAttempt(task.repair_id);
      continue;
    }
    repairs_->CheckHostedProgress(task.repair_id);
    MutexLock lock(&mutex_);
    checking_.erase(task.repair_id);
  }
}

void HostedWatch::Stop() {
  std::vector<Thread> threads;
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    threads.swap(threads_);
  }
  wake_.NotifyAll();
  stop_.NotifyAll();
  for (Thread& thread : threads) thread.join();
  if (ticker_.joinable()) ticker_.join();
}

}  // namespace ecpipe
