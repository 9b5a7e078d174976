// SPDX-License-Identifier: Apache-2.0
// A read or repair that a thread of the library does, while its caller looks after it from an event
// loop: what ecpipe_call is.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "base/wakeup.h"
#include "requestor/client/requestor.h"

namespace ecpipe {

// Between the thread that does the work (Put, ShowProgress, End) and its caller (all else). Nothing
// but Put() waits. Thread-safe.
class SubmittedCall {
 public:
  // RESOURCE_EXHAUSTED: no descriptor is left. `buffer_bytes`: what a read holds at most; 0 for
  // calls that bring no bytes.
  static absl::StatusOr<std::shared_ptr<SubmittedCall>> Create(size_t buffer_bytes);

  // Holds the bytes for Take(), waiting for room. CANCELLED: the caller does not want them.
  absl::Status Put(std::span<const uint8_t> bytes);
  void ShowProgress(uint64_t verified_bytes, uint64_t total_bytes);
  // The last call of the thread.
  void End(absl::StatusOr<RepairReport> result);
  std::stop_token stop() const { return stop_.get_token(); }

  // Readable while Take() or result() has something to say.
  int descriptor() const { return ready_.fd(); }
  // Moves bytes to `out` and returns how many; 0: all were taken, and the call has succeeded;
  // nothing: there are none yet. After a failure: the failure.
  absl::StatusOr<std::optional<size_t>> Take(std::span<uint8_t> out);
  // Nothing until the call has ended.
  std::optional<absl::StatusOr<RepairReport>> result() const;
  void GetProgress(uint64_t* verified_bytes, uint64_t* total_bytes) const;
  void Cancel();

 private:
  explicit SubmittedCall(size_t buffer_bytes)
      : buffer_bytes_(buffer_bytes),
        buffer_(std::make_unique_for_overwrite<uint8_t[]>(buffer_bytes)) {}
  // Makes the descriptor say what is so.
  void ShowReady() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::stop_source stop_;
  mutable Mutex mutex_;
  CondVar room_;
  Wakeup ready_;
  bool shown_ready_ ABSL_GUARDED_BY(mutex_) = false;
  const size_t buffer_bytes_;
  // A ring. It is not zeroed: submitting does not wait for the kernel to give a GiB.
  const std::unique_ptr<uint8_t[]> buffer_ ABSL_GUARDED_BY(mutex_);
  size_t first_ ABSL_GUARDED_BY(mutex_) = 0;  // of the bytes that it holds
  size_t held_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t verified_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t total_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<absl::StatusOr<RepairReport>> result_ ABSL_GUARDED_BY(mutex_);
};

// The threads of a client's submitted calls. Thread-safe.
class CallThreads {
 public:
  using Work = std::function<absl::StatusOr<RepairReport>(SubmittedCall* call)>;

  explicit CallThreads(size_t most) : most_(most) {}
  // Cancels all calls and waits for their threads.
  ~CallThreads();

  // Has a thread of its own do `work` and end the call with what it returns, or throws.
  // RESOURCE_EXHAUSTED: as many calls as may be are under way, or no thread can be had.
  absl::Status Start(const std::shared_ptr<SubmittedCall>& call, Work work);
  // Needs no memory.
  void CancelAll();

 private:
  struct Worker {
    // Shared: its caller may free it before it has ended. Null when `done`.
    std::shared_ptr<SubmittedCall> call;
    Thread thread;
    bool done = false;
  };
  void Run(Worker* worker, const Work& work);
  // Without waiting: only what has nothing left to do.
  void JoinDone();

  const size_t most_;
  Mutex mutex_;
  std::list<Worker> workers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ecpipe
