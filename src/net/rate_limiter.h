// SPDX-License-Identifier: Apache-2.0
// Limits the rate at which many streams send together. A frame takes a place in a queue and learns
// when to ask again; so no call sleeps, and a stream that is late does not hold up the ones behind.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "base/mutex.h"

namespace ecpipe {

// Which traffic goes first. Background traffic gets what foreground traffic leaves, and at least a
// sixteenth of the rate: with nothing at all it would stall, fail and be repeated.
enum class TrafficClass { kForeground, kBackground };

// The limiter earns bytes at the rate. Each class gets its share, which pays for the frames in its
// queue in order; bytes that no frame needs are saved, up to kBurst. A frame may go once all frames
// before it are paid for, and its own bytes are paid for afterwards. So over any time the bytes
// that may go are rate times time, give or take kBurst and one frame of each class. A changed rate
// holds from then on, also for frames that are in a queue already. Thread-safe.
class RateLimiter {
 public:
  static constexpr Duration kBurst = std::chrono::milliseconds(20);
  static constexpr double kBackgroundFloor = 1.0 / 16;
  // The longest wait that a caller is told: the rate may change meanwhile.
  static constexpr Duration kLongestWait = std::chrono::milliseconds(100);

  // A frame's place in the queue of its class.
  struct Turn {
    double position = 0;  // bytes of the class queued before it
    double bytes = 0;     // the frame's own bytes; 0 if there was no limit
  };

  // There is no limit at first. `clock` outlives the limiter.
  explicit RateLimiter(const Clock* clock) : clock_(clock) {}

  // In bytes per second; 0 is no limit. Not negative.
  void SetRate(double bytes_per_second);
  double rate() const { return rate_; }

  Turn Queue(TrafficClass traffic, uint64_t bytes);
  // The time until the caller should ask again; 0: the frame may go.
  Duration Wait(TrafficClass traffic, const Turn& turn);
  // Gives up the place of a frame that will not be sent.
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
