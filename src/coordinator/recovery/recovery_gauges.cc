// SPDX-License-Identifier: Apache-2.0
// RecoveryManager, what it counts for metrics.
#include "coordinator/recovery/recovery_manager.h"

namespace ecpipe {

std::map<WaitKind, uint64_t> RecoveryManager::WaitingByKind() {
  std::map<WaitKind, uint64_t> blocks;
  MutexLock lock(&mutex_);
  for (const auto& [id, recovery] : recoveries_) {
    const uint64_t waiting = recovery->queue.counts().waiting;
    if (Ended(recovery->record.state) || InMaintenance(recovery->record) || waiting == 0) continue;
    if (const std::optional<RecoveryWait> idle = WhyIdle(*recovery)) {
      blocks[idle->kind] += waiting;
      continue;
    }
    const Nodes& nodes = LookUpNodes(recovery.get());
    const PolicyInput input = nodes.InputFor({});
    for (const auto& [kind, count] : WaitKindsOf(recovery->queue, input, loads_)) {
      blocks[kind] += count;
    }
  }
  return blocks;
}

std::map<RecoveryQueue::Spare, uint64_t> RecoveryManager::BlocksBySpare() {
  using Spare = RecoveryQueue::Spare;
  std::map<Spare, uint64_t> blocks;
  MutexLock lock(&mutex_);
  for (const auto& [id, recovery] : recoveries_) {
    const RecoveryRecord& record = recovery->record;
    if (Ended(record.state) || InMaintenance(record) || recovery->queue.Finished()) continue;
    // A recovery that has not begun has not looked for its blocks' survivors yet.
    const Nodes& nodes = LookUpNodes(recovery.get());
    const bool lives = nodes.usable.contains(record.request.node);
    if (record.request.kind == RecoveryKind::kMove && lives) continue;
    for (const Spare spare :
         {Spare::kTooFew, Spare::kNone, Spare::kOne, Spare::kTwo, Spare::kMore}) {
      blocks[spare] += recovery->queue.CountOf(spare);
    }
  }
  return blocks;
}

}  // namespace ecpipe
