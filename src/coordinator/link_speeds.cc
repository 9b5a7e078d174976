// SPDX-License-Identifier: Apache-2.0
#include "coordinator/link_speeds.h"

#include <algorithm>
#include <cmath>

namespace ecpipe {
namespace {

// The kernel counts in ticks of some milliseconds; less than a few of them is no measurement.
constexpr double kLeastNetworkSeconds = 0.02;
constexpr double kLeastNetworkShare = 0.8;
constexpr size_t kSmallTable = 1000;

bool Sane(const LinkTiming& timing) {
  return timing.bytes > 0 && std::isfinite(timing.seconds) && timing.seconds > 0 &&
         std::isfinite(timing.network_seconds);
}

}  // namespace

void LinkSpeeds::Take(const std::string& from, const LinkTiming& timing, bool alone) {
  if (!Sane(timing)) return;
  const auto bytes = static_cast<double>(timing.bytes);
  const bool network_bound =
      timing.network_seconds >=
      std::max(kLeastNetworkSeconds, kLeastNetworkShare * timing.seconds);
  MutexLock lock(&mutex_);
  if (alone && network_bound) {
    history_.Measured(from, timing.to, bytes / timing.network_seconds, clock_->Now());
  } else {
    history_.AtLeast(from, timing.to, bytes / timing.seconds);
  }
  changed_ = true;
}

void LinkSpeeds::TakeProbe(const std::string& from, const LinkTiming& timing) {
  if (!Sane(timing)) return;
  MutexLock lock(&mutex_);
  history_.Measured(from, timing.to, static_cast<double>(timing.bytes) / timing.seconds,
                    clock_->Now());
  changed_ = true;
}

void LinkSpeeds::FillIn(ClusterView* cluster) {
  cluster->links = configured_;
  MutexLock lock(&mutex_);
  const TimePoint now = clock_->Now();
  const bool due = table_ == nullptr || table_->size() < kSmallTable ||
                   now - made_ >= std::chrono::seconds(1);
  if (changed_ && due) {
    history_.Forget(now);
    table_ = std::make_shared<const LinkTable>(history_.Table());
    changed_ = false;
    made_ = now;
  }
  cluster->measured = table_;
}

std::vector<LinkEstimate> LinkSpeeds::Measured() {
  MutexLock lock(&mutex_);
  history_.Forget(clock_->Now());
  return history_.All();
}

}  // namespace ecpipe
