// SPDX-License-Identifier: Apache-2.0
// RecoveryManager, what it shows of its recoveries.
#include <algorithm>

#include "coordinator/recovery/recovery_manager.h"

namespace ecpipe {
namespace {

constexpr size_t kShownBlocked = 20;

}  // namespace

RecoveryView RecoveryManager::ViewOf(const Recovery& recovery) {
  RecoveryView view;
  view.record = recovery.record;
  const RecoveryQueue::Counts counts = recovery.queue.counts();
  view.blocked = recovery.queue.Blocked(kShownBlocked);
  if (Ended(recovery.record.state)) return view;
  view.listing = recovery.list_after.has_value();
  view.record.done_blocks = counts.done;
  view.record.done_bytes = counts.done_bytes;
  if (!view.listing) {
    view.record.done_blocks += recovery.record.blocks - recovery.listed_blocks;
    view.record.done_bytes += recovery.record.bytes - recovery.listed_bytes;
  }
  view.begins_in_seconds = static_cast<double>(std::max<int64_t>(
                               0, recovery.record.rebuild_after_unix_ms - clock_->UnixMillis())) /
                           1000;
  view.running_blocks = counts.running;
  view.waiting_blocks = counts.waiting;
  view.record.failed_blocks = counts.given_up;
  const TimePoint now = clock_->Now();
  uint64_t lately = 0;
  for (const auto& [at, bytes] : recovery.lately_done) {
    if (now - at <= kRecoveryRateWindow) lately += bytes;
  }
  const double age =
      static_cast<double>(clock_->UnixMillis() - recovery.record.started_unix_ms) / 1000;
  view.bytes_per_second =
      static_cast<double>(lately) / std::clamp(age, 0.001, Seconds(kRecoveryRateWindow));
  if (view.bytes_per_second > 0 && !view.listing) {
    view.eta_seconds =
        static_cast<double>(recovery.record.bytes - view.record.done_bytes) / view.bytes_per_second;
  }
  return view;
}

absl::StatusOr<RecoveryView> RecoveryManager::Get(RecoveryId id) {
  MutexLock lock(&mutex_);
  const auto found = recoveries_.find(id);
  if (found == recoveries_.end()) {
    return absl::NotFoundError("there is no recovery " + std::to_string(id));
  }
  return ViewOf(*found->second);
}

std::vector<RecoveryView> RecoveryManager::All() {
  MutexLock lock(&mutex_);
  std::vector<RecoveryView> views;
  for (auto it = recoveries_.rbegin(); it != recoveries_.rend(); ++it) {
    views.push_back(ViewOf(*it->second));
  }
  return views;
}

}  // namespace ecpipe
