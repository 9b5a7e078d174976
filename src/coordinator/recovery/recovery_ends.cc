// SPDX-License-Identifier: Apache-2.0
// RecoveryManager, how repairs of blocks end, and recoveries with the last of them.
#include <algorithm>

#include "base/process/log.h"
#include "coordinator/recovery/recovery_manager.h"

namespace ecpipe {
namespace {

constexpr Duration kSuspicion = std::chrono::seconds(10);

}  // namespace

void RecoveryManager::Hear(const HostedEnd& end) {
  MutexLock lock(&mutex_);
  const auto found = recoveries_.find(end.recovery_id);
  if (found == recoveries_.end()) return;
  found->second->adopted.erase(end.block_id);
  RecordEnd(found->second.get(), end.block_id, end.status, RepairStage::kRan);
}

// The first hops of a path are done long before the last ones, as much as buffers hold: meanwhile
// they can be at work for other blocks.
void RecoveryManager::Hear(const HostedPartEnd& end) {
  MutexLock lock(&mutex_);
  const auto recovery = recoveries_.find(end.recovery_id);
  if (recovery == recoveries_.end()) return;
  const auto in_flight = recovery->second->in_flight.find(end.block_id);
  if (in_flight == recovery->second->in_flight.end()) return;
  in_flight->second.EndPart(end.node, &loads_);
}

void RecoveryManager::RecordEnd(Recovery* recovery, const std::string& block_id,
                                const absl::Status& status, RepairStage stage) {
  const auto in_flight = recovery->in_flight.find(block_id);
  if (in_flight == recovery->in_flight.end()) return;
  in_flight->second.EndLoads(&loads_);
  const TimePoint now = clock_->Now();
  const bool limited = stage == RepairStage::kPlanned && KindOf(status) == WaitKind::kLimit;
  if (!limited) recovery->not_copied.erase(block_id);
  if (status.ok()) {
    const uint64_t before = recovery->queue.counts().done_bytes;
    recovery->queue.Done(block_id);
    auto& lately = recovery->lately_done;
    lately.emplace_back(now, recovery->queue.counts().done_bytes - before);
    while (now - lately.front().first > kRecoveryRateWindow) lately.pop_front();
  } else if (limited) {
    recovery->queue.NotBegun(block_id);
    limited_till_ = now + options_.queue.first_pause;
    limited_because_ = std::string(status.message());
  } else if (in_flight->second.copy) {
    // It proves nothing against the block, which is rebuilt next.
    recovery->not_copied.insert(block_id);
    recovery->queue.Wait(
        block_id, KindOf(status),
        absl::UnavailableError("the copy failed: " + std::string(status.message())), now);
  } else if (ProvesLoss(status, stage)) {
    recovery->queue.Fail(block_id, status, now);
  } else {
    recovery->queue.Wait(block_id, KindOf(status), status, now);
  }
  // Whatever else the host of a repair that has run did, others may do better.
  const bool target = stage == RepairStage::kRan || KindOf(status) == WaitKind::kTarget ||
                      KindOf(status) == WaitKind::kHelper;
  if (!status.ok() && target) {
    recovery->suspects[in_flight->second.host] = now + kSuspicion;
    recovery->nodes.reset();
  }
  recovery->in_flight.erase(in_flight);
  if (stage == RepairStage::kRan) limited_till_ = {};
  EndIfFinished(recovery);
  ForgetQueue(recovery);
}

void RecoveryManager::EndIfFinished(Recovery* recovery) {
  RecoveryRecord& record = recovery->record;
  // What a life of the node had is not what the next one has.
  FollowNode(recovery);
  if (Ended(record.state) || recovery->list_after || recovery->list_again) return;
  if (!recovery->queue.Finished()) return;
  if (ListsAgain(recovery)) return;
  const RecoveryQueue::Counts counts = recovery->queue.counts();
  End(recovery, counts.given_up > 0 ? RecoveryState::kPartial
                : counts.there > 0  ? RecoveryState::kReturned
                                    : RecoveryState::kDone);
}

void RecoveryManager::End(Recovery* recovery, RecoveryState state) {
  RecoveryRecord& record = recovery->record;
  const RecoveryView view = ViewOf(*recovery);
  record.done_blocks = view.record.done_blocks;
  record.done_bytes = view.record.done_bytes;
  record.failed_blocks = view.record.failed_blocks;
  record.state = state;
  record.ended_unix_ms = clock_->UnixMillis();
  Log(record.failed_blocks == 0 ? LogLevel::kInfo : LogLevel::kWarning, "recovery.end",
      {{"recovery", std::to_string(record.recovery_id)},
       {"node", record.request.node},
       {"state", RecoveryStateName(record.state)},
       {"blocks", std::to_string(record.blocks)},
       {"done", std::to_string(record.done_blocks)},
       {"failed", std::to_string(record.failed_blocks)}});
  StoreIfPossible(record);
  TellKeptOut();
  ForgetQueue(recovery);
}

}  // namespace ecpipe
