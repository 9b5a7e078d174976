// SPDX-License-Identifier: Apache-2.0
#include "requestor/client/submitted_call.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/guarded.h"
#include "base/process/blocked_signals.h"

namespace ecpipe {

absl::StatusOr<std::shared_ptr<SubmittedCall>> SubmittedCall::Create(size_t buffer_bytes) {
  std::shared_ptr<SubmittedCall> call(new SubmittedCall(buffer_bytes));
  if (!call->ready_.valid()) {
    return absl::ResourceExhaustedError("too many open files: raise the limit (ulimit -n)");
  }
  return call;
}

absl::Status SubmittedCall::Put(std::span<const uint8_t> bytes) {
  MutexLock lock(&mutex_);
  while (!bytes.empty()) {
    while (held_ == buffer_bytes_ && !stop_.stop_requested()) room_.Wait(lock);
    if (stop_.stop_requested()) return absl::CancelledError("the caller gave up");
    const size_t at = (first_ + held_) % buffer_bytes_;
    const size_t count = std::min({bytes.size(), buffer_bytes_ - held_, buffer_bytes_ - at});
    std::memcpy(buffer_.get() + at, bytes.data(), count);
    held_ += count;
    bytes = bytes.subspan(count);
    ShowReady();
  }
  return absl::OkStatus();
}

void SubmittedCall::ShowProgress(uint64_t verified_bytes, uint64_t total_bytes) {
  MutexLock lock(&mutex_);
  verified_bytes_ = verified_bytes;
  total_bytes_ = total_bytes;
}

void SubmittedCall::End(absl::StatusOr<RepairReport> result) {
  MutexLock lock(&mutex_);
  result_ = std::move(result);
  if (!result_->ok()) held_ = 0;
  ShowReady();
}

absl::StatusOr<std::optional<size_t>> SubmittedCall::Take(std::span<uint8_t> out) {
  MutexLock lock(&mutex_);
  if (result_ && !result_->ok()) return result_->status();
  if (held_ == 0) return result_ ? std::optional<size_t>(0) : std::nullopt;
  size_t taken = 0;
  while (taken < out.size() && held_ > 0) {
    const size_t count = std::min({out.size() - taken, held_, buffer_bytes_ - first_});
    std::memcpy(out.data() + taken, buffer_.get() + first_, count);
    first_ = (first_ + count) % buffer_bytes_;
    held_ -= count;
    taken += count;
  }
  ShowReady();
  room_.NotifyOne();
  return taken;
}

std::optional<absl::StatusOr<RepairReport>> SubmittedCall::result() const {
  MutexLock lock(&mutex_);
  return result_;
}

void SubmittedCall::GetProgress(uint64_t* verified_bytes, uint64_t* total_bytes) const {
  MutexLock lock(&mutex_);
  *verified_bytes = verified_bytes_;
  *total_bytes = total_bytes_;
}

void SubmittedCall::Cancel() {
  stop_.request_stop();
  MutexLock lock(&mutex_);  // so that no Put() is between its look and its wait
  room_.NotifyAll();
}

void SubmittedCall::ShowReady() {
  const bool ready = held_ > 0 || result_.has_value();
  if (ready && !shown_ready_) ready_.Signal();
  if (!ready && shown_ready_) ready_.Drain();
  shown_ready_ = ready;
}

CallThreads::~CallThreads() {
  CancelAll();
  std::list<Worker> left;
  {
    MutexLock lock(&mutex_);
    left.splice(left.end(), workers_);
  }
  for (Worker& worker : left) worker.thread.join();
}

absl::Status CallThreads::Start(const std::shared_ptr<SubmittedCall>& call, Work work) {
  JoinDone();
  MutexLock lock(&mutex_);
  if (workers_.size() >= most_) {
    return absl::ResourceExhaustedError(std::to_string(most_) +
                                        " submitted calls of this client are under way: wait for "
                                        "one to end");
  }
  Worker& worker = workers_.emplace_back();
  worker.call = call;
  try {
    const BlockedSignals for_the_thread;
    worker.thread = Thread([this, at = &worker, what = std::move(work)] { Run(at, what); });
  } catch (...) {
    workers_.pop_back();
    throw;
  }
  return absl::OkStatus();
}

void CallThreads::Run(Worker* worker, const Work& work) {
  absl::StatusOr<RepairReport> result = absl::InternalError("the call did not run");
  const absl::Status ran = Guarded([&] {
    result = work(worker->call.get());
    return absl::OkStatus();
  });
  if (!ran.ok()) result = ran;
  // Done before its caller hears of the end: he may submit the next one at once.
  std::shared_ptr<SubmittedCall> call;
  {
    MutexLock lock(&mutex_);
    call = std::move(worker->call);
    worker->done = true;
  }
  call->End(std::move(result));
}

// Under the lock, because a copy of the list takes memory: what listens for a call's stop ends
// waits and calls of requestors, and knows nothing of these threads.
void CallThreads::CancelAll() {
  MutexLock lock(&mutex_);
  for (const Worker& worker : workers_) {
    if (!worker.done) worker.call->Cancel();
  }
}

void CallThreads::JoinDone() {
  std::list<Worker> done;
  {
    MutexLock lock(&mutex_);
    for (auto at = workers_.begin(); at != workers_.end();) {
      const auto next = std::next(at);
      if (at->done) done.splice(done.end(), workers_, at);
      at = next;
    }
  }
  for (Worker& worker : done) worker.thread.join();
}

}  // namespace ecpipe
