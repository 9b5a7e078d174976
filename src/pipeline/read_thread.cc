// SPDX-License-Identifier: Apache-2.0
#include "pipeline/read_thread.h"

#include <chrono>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"

namespace ecpipe {

struct ReadThread::State {
  std::shared_ptr<Job> Lowest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::shared_ptr<Job> lowest;
    uint32_t slice = 0;
    for (const std::shared_ptr<Job>& job : jobs) {
      const std::optional<uint32_t> next = job->Next();
      if (!next || (lowest && *next >= slice)) continue;
      lowest = job;
      slice = *next;
    }
    return lowest;
  }

  // Nothing: it is time to stop.
  std::shared_ptr<Job> WaitForWork() {
    MutexLock lock(&mutex);
    while (!stop) {
      if (std::shared_ptr<Job> job = Lowest()) return job;
      sleeping = true;
      work.Wait(lock);
      sleeping = false;
    }
    return nullptr;
  }

  void Run() {
    while (const std::shared_ptr<Job> job = WaitForWork()) job->Read();
    MutexLock lock(&mutex);
    exited = true;
    end.NotifyAll();
  }

  Mutex mutex;
  CondVar work;
  CondVar end;
  std::vector<std::shared_ptr<Job>> jobs ABSL_GUARDED_BY(mutex);
  bool sleeping ABSL_GUARDED_BY(mutex) = false;
  bool stop ABSL_GUARDED_BY(mutex) = false;
  bool exited ABSL_GUARDED_BY(mutex) = false;
};

ReadThread::ReadThread() : state_(std::make_shared<State>()) {}

ReadThread::~ReadThread() {
  if (!thread_.joinable()) return;
  bool exited = false;
  {
    constexpr auto kPatience = std::chrono::seconds(2);
    const auto deadline = Clock::System().Now() + kPatience;
    MutexLock lock(&state_->mutex);
    state_->stop = true;
    state_->work.NotifyAll();
    while (!state_->exited && state_->end.WaitUntil(lock, deadline)) {
    }
    exited = state_->exited;
  }
  if (exited) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

absl::Status ReadThread::Add(std::shared_ptr<Job> job) {
  if (!thread_.joinable()) {
    ECPIPE_ASSIGN_OR_RETURN(thread_, Thread::Start([state = state_] { state->Run(); }));
  }
  {
    MutexLock lock(&state_->mutex);
    state_->jobs.push_back(std::move(job));
  }
  Wake();  // the thread may have found nothing to do, and sleep
  return absl::OkStatus();
}

void ReadThread::Remove(const Job* job) {
  std::shared_ptr<Job> removed;  // freed without the lock
  MutexLock lock(&state_->mutex);
  std::vector<std::shared_ptr<Job>>& jobs = state_->jobs;
  for (std::shared_ptr<Job>& of_thread : jobs) {
    if (of_thread.get() != job) continue;
    removed = std::move(of_thread);
    of_thread = std::move(jobs.back());
    jobs.pop_back();
    break;
  }
}

void ReadThread::Wake() {
  bool wake = false;
  {
    MutexLock lock(&state_->mutex);
    wake = state_->sleeping;
  }
  if (wake) state_->work.NotifyOne();
}

}  // namespace ecpipe
