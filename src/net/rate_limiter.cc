// SPDX-License-Identifier: Apache-2.0
#include "net/rate_limiter.h"

#include <algorithm>

#include "base/check.h"

namespace ecpipe {
namespace {

// Background frames are asked for less often: there may be many, all waiting for one foreground
// stream to end. It is well below kBurst, so that coming late loses nothing.
constexpr Duration kShortestBackgroundWait = std::chrono::milliseconds(5);
constexpr Duration kShortestWait = std::chrono::microseconds(100);

}  // namespace

void RateLimiter::SetRate(double bytes_per_second) {
  ECPIPE_CHECK(bytes_per_second >= 0);
  MutexLock lock(&mutex_);
  const bool starts_anew = rate_ == 0 || bytes_per_second == 0;
  Flow();
  rate_ = bytes_per_second;
  if (starts_anew) {
    // Frames that queue were limited by a rate that is gone.
    foreground_.paid = foreground_.queued;
    background_.paid = background_.queued;
    saved_ = 0;
  }
  saved_ = std::min(saved_, rate_ * Seconds(kBurst));
}

void RateLimiter::Flow() {
  const TimePoint now = clock_->Now();
  double bytes = rate_ * Seconds(now - flowed_until_);
  flowed_until_ = now;
  const double least = std::min(background_.owed(), bytes * kBackgroundFloor);
  const double foreground = std::min(foreground_.owed(), bytes - least);
  const double background = std::min(background_.owed(), bytes - foreground);
  foreground_.paid += foreground;
  background_.paid += background;
  bytes -= foreground + background;
  saved_ = std::min(saved_ + bytes, rate_ * Seconds(kBurst));
}

RateLimiter::Turn RateLimiter::Queue(TrafficClass traffic, uint64_t bytes) {
  if (rate_ == 0) return {};
  MutexLock lock(&mutex_);
  if (rate_ == 0) return {};
  Flow();
  Class& of = Of(traffic);
  const Turn turn{of.queued, static_cast<double>(bytes)};
  of.queued += turn.bytes;
  const double from_saved = std::min(saved_, of.owed());
  of.paid += from_saved;
  saved_ -= from_saved;
  return turn;
}

Duration RateLimiter::Wait(TrafficClass traffic, const Turn& turn) {
  // Half a byte is what adding up fractions may be off by, and less than any frame.
  constexpr double kRounding = 0.5;
  if (rate_ == 0 || turn.bytes == 0) return Duration(0);
  MutexLock lock(&mutex_);
  if (rate_ == 0) return Duration(0);
  Flow();
  double before = turn.position - Of(traffic).paid;
  if (before < kRounding) return Duration(0);
  const bool background = traffic == TrafficClass::kBackground;
  if (background) before += foreground_.owed();
  // Compared in seconds: a duration cannot hold what a low rate and a long queue make.
  const double seconds = std::min(before / rate_, Seconds(kLongestWait));
  return std::max(FromSeconds(seconds), background ? kShortestBackgroundWait : kShortestWait);
}

void RateLimiter::GiveBack(TrafficClass traffic, const Turn& turn) {
  if (rate_ == 0 || turn.bytes == 0) return;
  MutexLock lock(&mutex_);
  Flow();
  Class& of = Of(traffic);
  of.paid += std::min(of.owed(), turn.bytes);
}

}  // namespace ecpipe
