// SPDX-License-Identifier: Apache-2.0
// The means by which a program waits: time, threads, condition variables, poll(), randomness.
// Normally these are the kernel's. A simulation can install its own; then the same code runs
// unchanged as fibres of one thread in virtual time (tests/sim, docs/design/011-simulation.md).
// Production programs install none; they pay one load before a thread waits.
#pragma once

#include <poll.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "base/clock.h"

namespace ecpipe {

class Simulator {
 public:
  virtual ~Simulator() = default;

  // Null in production. Whoever installs one does so before anything else runs, and outlives it.
  static Simulator* Installed() { return installed_.load(std::memory_order_relaxed); }
  static void Install(Simulator* simulator) { installed_ = simulator; }

  virtual TimePoint Now() = 0;
  virtual void FillRandom(std::span<uint8_t> out) = 0;
  // As FaultPoint() in fault_points.h, once any fault is armed.
  virtual absl::Status FaultPoint(const char* name) = 0;

  // As poll().
  virtual int Poll(std::span<pollfd> fds, Duration timeout) = 0;
  // Something has been written to this eventfd.
  virtual void Signalled(int fd) = 0;

  // A condition variable, known by its address. False when `deadline` passed before a
  // notification.
  virtual bool Wait(const void* condition, std::unique_lock<std::mutex>& lock,
                    std::optional<TimePoint> deadline) = 0;
  virtual void Notify(const void* condition) = 0;

  // The thread's number, not 0.
  virtual uint64_t StartThread(std::function<void()> body) = 0;
  virtual void JoinThread(uint64_t thread) = 0;

 private:
  static inline std::atomic<Simulator*> installed_{nullptr};
};

// poll(), for threads that a simulation may run. Waits for `timeout`, rounded up to milliseconds,
// at most.
int Poll(std::span<pollfd> fds, Duration timeout);

}  // namespace ecpipe
