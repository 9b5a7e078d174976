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
  view.blocked = recovery.blocked;
  if (view.blocked.empty()) view.blocked = recovery.queue.Blocked(kShownBlocked, clock_->Now());
  view.there_blocks = counts.there;
  if (Ended(recovery.record.state)) return view;
  // One that lists once more has counted its blocks, but for those that have just come.
  view.listing =
      recovery.list_after.has_value() && !recovery.listed && !InMaintenance(recovery.record);
  view.record.done_blocks = counts.done;
  view.record.done_bytes = counts.done_bytes;
  if (!view.listing) {
    view.record.done_blocks += recovery.record.blocks - counts.all;
    view.record.done_bytes += recovery.record.bytes - counts.all_bytes;
  }
  view.begins_in_seconds = static_cast<double>(std::max<int64_t>(
                               0, recovery.record.rebuild_after_unix_ms - clock_->UnixMillis())) /
                           1000;
  view.streams_per_node = StreamsOf(recovery.record.request);
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
        static_cast<double>(recovery.record.bytes - view.record.done_bytes - counts.there_bytes) /
        view.bytes_per_second;
  }
  return view;
}

RecoveryView RecoveryManager::ViewOf(const Recovery& recovery, const std::vector<NodeView>& nodes) {
  RecoveryView view = ViewOf(recovery);
  if (!Ended(recovery.record.state)) view.waits = WaitsOf(recovery, nodes);
  return view;
}

void RecoveryManager::ForgetQueue(Recovery* recovery) {
  if (!Ended(recovery->record.state) || !recovery->in_flight.empty()) return;
  if (recovery->blocked.empty()) {
    recovery->blocked = recovery->queue.Blocked(kShownBlocked, clock_->Now());
  }
  recovery->queue.Forget();
  recovery->nodes.reset();
}

std::vector<RecoveryManager::Overview> RecoveryManager::Overviews() {
  MutexLock lock(&mutex_);
  std::vector<Overview> all;
  for (auto it = recoveries_.rbegin(); it != recoveries_.rend(); ++it) {
    const RecoveryRecord& record = it->second->record;
    if (OnlyAnnounced(record)) continue;
    const RecoveryQueue::Counts counts = it->second->queue.counts();
    all.push_back({record.request.node, record.state, record.started_unix_ms, record.ended_unix_ms,
                   counts.waiting, counts.running, record.request.kind});
  }
  return all;
}

std::optional<RecoveryWait> RecoveryManager::WhyIdle(const Recovery& recovery) {
  const RecoveryRecord& record = recovery.record;
  const uint64_t blocks = recovery.queue.counts().waiting;
  const std::string& node = record.request.node;
  const std::string id = std::to_string(record.recovery_id);
  if (record.state == RecoveryState::kPaused) {
    return RecoveryWait{WaitKind::kPaused, blocks,
                        "the recovery is paused; to go on: ecpipe recovery resume " + id};
  }
  if (recovery.comparing) {
    return RecoveryWait{WaitKind::kComparing, blocks,
                        "node " + node + " is back and is asked which of its blocks it has" +
                            (recovery.trouble.empty() ? "" : ", so far in vain: ") +
                            recovery.trouble};
  }
  const bool follows = record.rebuild_after_unix_ms != 0;
  if (follows && !repairs_->nodes().HasRegistered(node) &&
      clock_->Now() - started_ < options_.gather) {
    return RecoveryWait{WaitKind::kStarting, blocks,
                        "the coordinator has just started, and node " + node +
                            " may register within the next seconds"};
  }
  const int64_t left_ms = record.rebuild_after_unix_ms - clock_->UnixMillis();
  if (left_ms <= 0) {
    if (clock_->Now() >= limited_till_) return std::nullopt;
    return RecoveryWait{WaitKind::kLimit, blocks, limited_because_};
  }
  return RecoveryWait{WaitKind::kDelay, blocks,
                      "node " + node + " may come back: nothing is rebuilt for another " +
                          std::to_string((left_ms + 999) / 1000) +
                          " s (--delay, or delay_seconds in [recovery])"};
}

std::vector<RecoveryWait> RecoveryManager::WaitsOf(const Recovery& recovery,
                                                   const std::vector<NodeView>& all) {
  // A node that does not say what it has may hold up all that is still to be listed.
  if (recovery.queue.counts().waiting == 0 && !recovery.comparing) return {};
  if (std::optional<RecoveryWait> idle = WhyIdle(recovery)) return {*std::move(idle)};
  const Nodes nodes = NodesFor(recovery, all);
  return ecpipe::WaitsOf(recovery.queue, nodes.InputFor({}), loads_, StreamsLimitOf(recovery));
}

std::string RecoveryManager::StreamsLimitOf(const Recovery& recovery) {
  const bool own = recovery.record.request.streams_per_node != 0;
  return own ? "--streams of this recovery" : "streams_per_node in [recovery]";
}

std::vector<WaitingBlock> RecoveryManager::Waiting(size_t most) {
  std::vector<WaitingBlock> all;
  MutexLock lock(&mutex_);
  for (const auto& [id, recovery] : recoveries_) {
    if (Ended(recovery->record.state) || recovery->queue.counts().waiting == 0) continue;
    // A recovery that has not begun has not looked for its blocks' survivors yet.
    const Nodes& nodes = LookUpNodes(recovery.get());
    for (WaitingBlock& block :
         WaitingOf(recovery->queue, nodes.InputFor({}), loads_, StreamsLimitOf(*recovery),
                   WhyIdle(*recovery), most, clock_->Now())) {
      block.recovery_id = id;
      block.node = recovery->record.request.node;
      all.push_back(std::move(block));
    }
    KeepMostUrgent(&all, most);
  }
  return all;
}

absl::StatusOr<RecoveryView> RecoveryManager::Get(RecoveryId id) {
  const std::vector<NodeView> nodes = repairs_->nodes().All();
  MutexLock lock(&mutex_);
  const Recovery* const found = Find(id);
  if (found == nullptr) {
    return absl::NotFoundError("there is no recovery " + std::to_string(id));
  }
  return ViewOf(*found, nodes);
}

std::vector<RecoveryView> RecoveryManager::All() {
  const std::vector<NodeView> nodes = repairs_->nodes().All();
  MutexLock lock(&mutex_);
  std::vector<RecoveryView> views;
  for (auto it = recoveries_.rbegin(); it != recoveries_.rend(); ++it) {
    views.push_back(ViewOf(*it->second, nodes));
  }
  return views;
}

}  // namespace ecpipe
