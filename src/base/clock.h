// SPDX-License-Identifier: Apache-2.0
// Time as the deciding code sees it: a value that is handed in. Only the edges read a clock.
#pragma once

#include <chrono>
#include <cstdint>

namespace ecpipe {

using Duration = std::chrono::nanoseconds;
// Monotonic time: deadlines and durations. Never compared across processes.
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint Now() const = 0;
  // Wall-clock milliseconds since the epoch, for records that people read.
  virtual int64_t UnixMillis() const = 0;

  // The process's clock. Lives for ever; safe from any thread.
  static const Clock& System();
};

// Stands still until a test moves it. Not thread-safe.
class FakeClock : public Clock {
 public:
  TimePoint Now() const override { return now_; }
  int64_t UnixMillis() const override {
    return std::chrono::duration_cast<std::chrono::milliseconds>(now_.time_since_epoch()).count();
  }
  void Advance(Duration step) { now_ += step; }

 private:
  TimePoint now_{};
};

inline double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }
inline Duration FromSeconds(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

}  // namespace ecpipe
