// SPDX-License-Identifier: Apache-2.0
// Keeps what many streams send together to a rate. Frames queue up and learn when to come back, so
// nobody sleeps in here and nobody who is late holds up those behind.
#pragma once

#include <atomic>
#include <cstdint>

#include "common/clock.h"
#include "common/mutex.h"

namespace ecpipe {

// Who goes first. Background traffic gets what foreground traffic leaves, and a sixteenth of the
// rate at least: with nothing at all it would stall, fail and be done again.
enum class TrafficClass { kForeground, kBackground };

// The rate is split up as it flows: what a class's queue is owed is paid to its frames in order,
// and what nobody is owed is saved up for at most kBurst. A frame is due once all frames before it
// are paid, and its own bytes are paid after it; so over any time the bytes that were let through
// are rate times time, give or take kBurst and one frame of each class. A changed rate holds from
// then on, also for frames that queue already. Thread-safe.
class RateLimiter {
 public:
  static constexpr Duration kBurst = std::chrono::milliseconds(20);
  static constexpr double kBackgroundShare = 1.0 / 16;
  // Nobody is told to stay away for longer: the rate may have changed.
  static constexpr Duration kLongestWait = std::chrono::milliseconds(100);

  // A frame's place in the queue of its class.
  struct Turn {
    double position = 0;  // bytes of the class queued before it
    double bytes = 0;     // its own; 0 when nothing was limited
  };

  // No rate at first. `clock` outlives the limiter.
  explicit RateLimiter(const Clock* clock) : clock_(clock) {}

  // In bytes per second; 0 is no limit. Not negative.
  void SetRate(double bytes_per_second);
  double rate() const { return rate_; }

  Turn Queue(TrafficClass traffic, uint64_t bytes);
  // How long until it is worth asking again; 0: the frame may go.
  Duration Wait(TrafficClass traffic, const Turn& turn);
  // A frame that will not be sent makes room for those behind it.
  void GiveBack(TrafficClass traffic, const Turn& turn);

 private:
  // Running totals of bytes. Doubles are exact up to nine petabytes.
  struct Class {
    double queued = 0;
    double paid = 0;
    double owed() const { return queued - paid; }
  };

  void Flow() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Class& Of(TrafficClass traffic) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return traffic == TrafficClass::kForeground ? foreground_ : background_;
  }

  const Clock* const clock_;
  std::atomic<double> rate_{0};  // written under the lock; read without it where 0 saves taking it
  Mutex mutex_;
  TimePoint flowed_until_ ABSL_GUARDED_BY(mutex_){};
  Class foreground_ ABSL_GUARDED_BY(mutex_);
  Class background_ ABSL_GUARDED_BY(mutex_);
  double saved_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace ecpipe
