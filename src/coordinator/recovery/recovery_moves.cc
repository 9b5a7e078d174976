// SPDX-License-Identifier: Apache-2.0
// RecoveryManager, moves: what a drain does that other recoveries do not.
// docs/design/023-drain.md has the reasons.
#include <algorithm>

#include "base/process/log.h"
#include "base/status.h"
#include "coordinator/recovery/recovery_manager.h"

namespace ecpipe {
namespace {

// Enough to keep the uplink full while one copy ends and the next begins, and while one target has
// more to receive than the others.
constexpr uint32_t kCopiesAtOnce = 4;

bool OthersCanRebuild(const LostBlock& block, const std::set<std::string>& usable) {
  const auto survivors = std::count_if(block.holders.begin(), block.holders.end(),
                                       [&](const auto& node) { return usable.contains(node); });
  return survivors >= block.needed;
}

}  // namespace

std::optional<Placement> RecoveryManager::PlaceMove(const Recovery& recovery,
                                                    const PolicyInput& input) {
  const RecoveryRequest& request = recovery.record.request;
  if (!input.usable.contains(request.node)) return Place(request.policy, input, loads_);
  const bool copy_all = request.scheme == kDirectScheme;
  std::vector<const LostBlock*> copied;
  std::vector<const LostBlock*> rebuilt;
  for (const LostBlock* block : input.blocks) {
    const bool can_rebuild = OthersCanRebuild(*block, input.usable);
    const bool may_copy = !can_rebuild || !recovery.not_copied.contains(block->block_id);
    if (may_copy) copied.push_back(block);
    if (can_rebuild && !(copy_all && may_copy)) rebuilt.push_back(block);
  }
  const auto of = [&](std::span<const LostBlock* const> blocks) {
    return PolicyInput{blocks, input.usable, input.hosts, input.suspects, input.streams_per_node};
  };
  if (loads_.Streams(request.node) < std::min(kCopiesAtOnce, input.streams_per_node)) {
    std::optional<Placement> copy = PlaceCopy(request.policy, of(copied), loads_);
    if (copy) return copy;
  }
  return Place(request.policy, of(rebuilt), loads_);
}

bool RecoveryManager::ListsAgain(Recovery* recovery) {
  if (recovery->record.request.kind != RecoveryKind::kMove) return false;
  const uint64_t all = recovery->queue.counts().all;
  if (recovery->all_moved == all) return false;
  recovery->all_moved = all;
  recovery->list_after = "";
  return true;
}

void RecoveryManager::TellDrains() {
  std::map<std::string, NodeDrain> drains;
  for (const auto& [id, recovery] : recoveries_) {
    const RecoveryRecord& record = recovery->record;
    if (!record.keeps_out) continue;
    NodeDrain& drain = drains[record.request.node];
    if (drain == NodeDrain::kRunning) continue;
    drain = Ended(record.state) ? NodeDrain::kDone : NodeDrain::kRunning;
  }
  repairs_->nodes().SetDrains(std::move(drains));
}

void RecoveryManager::TakeOverDrains(RecoveryId id, const std::string& node) {
  for (const auto& [other, recovery] : recoveries_) {
    RecoveryRecord& record = recovery->record;
    if (other == id || !record.keeps_out || record.request.node != node) continue;
    record.keeps_out = false;
    StoreIfPossible(record);
  }
  TellDrains();
}

absl::StatusOr<std::vector<RecoveryId>> RecoveryManager::DrainsOf(const std::string& node) {
  std::vector<RecoveryId> drains;
  MutexLock lock(&mutex_);
  for (const auto& [id, recovery] : recoveries_) {
    const RecoveryRecord& record = recovery->record;
    if (!record.keeps_out || record.request.node != node) continue;
    if (!Ended(record.state)) {
      return absl::FailedPreconditionError(
          "drain " + std::to_string(id) + " of node " + node + " is " +
          RecoveryStateName(record.state) +
          "; to end it and readmit the node: ecpipe recovery cancel " + std::to_string(id));
    }
    drains.push_back(id);
  }
  if (drains.empty()) return absl::NotFoundError("node " + node + " has not been drained");
  return drains;
}

absl::Status RecoveryManager::Readmit(const std::string& node) {
  ECPIPE_ASSIGN_OR_RETURN(const std::vector<RecoveryId> drains, DrainsOf(node));
  {
    MutexLock lock(&mutex_);
    for (const RecoveryId id : drains) {
      const auto found = recoveries_.find(id);
      if (found == recoveries_.end()) continue;
      RecoveryRecord& kept = found->second->record;
      RecoveryRecord changed = kept;
      changed.keeps_out = false;
      ECPIPE_RETURN_IF_ERROR(Store(changed, "node " + node + " takes no blocks, as before"));
      kept = std::move(changed);
    }
    TellDrains();
  }
  Log(LogLevel::kInfo, "node.readmitted", {{"node", node}});
  return Sync("node " + node + " takes blocks again");
}

}  // namespace ecpipe
