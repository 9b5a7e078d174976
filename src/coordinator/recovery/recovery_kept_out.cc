// SPDX-License-Identifier: Apache-2.0
// RecoveryManager, nodes that take no blocks: those that are drained, and those in maintenance.
// docs/design/024-maintenance.md has the reasons.
#include <map>
#include <optional>

#include "absl/strings/str_format.h"
#include "base/process/log.h"
#include "base/status.h"
#include "coordinator/recovery/recovery_manager.h"

namespace ecpipe {
namespace {

KeptOut WhyOf(const RecoveryRecord& record) {
  if (InMaintenance(record)) return KeptOut::kMaintenance;
  return Ended(record.state) ? KeptOut::kDrained : KeptOut::kDraining;
}

}  // namespace

void RecoveryManager::TellKeptOut() {
  std::map<std::string, KeptOut> nodes;
  for (const auto& [id, recovery] : recoveries_) {
    const RecoveryRecord& record = recovery->record;
    if (!record.keeps_out) continue;
    KeptOut& why = nodes[record.request.node];
    // Of a node at most one recovery has not ended.
    if (why == KeptOut::kNone || why == KeptOut::kDrained) why = WhyOf(record);
  }
  repairs_->nodes().SetKeptOut(std::move(nodes));
}

void RecoveryManager::TakeOverDrains(RecoveryId id, const std::string& node) {
  for (const auto& [other, recovery] : recoveries_) {
    RecoveryRecord& record = recovery->record;
    if (other == id || !record.keeps_out || record.request.node != node) continue;
    record.keeps_out = false;
    StoreIfPossible(record);
  }
}

// ---- Maintenance ------------------------------------------------------------------------------

absl::StatusOr<RecoveryRecord> RecoveryManager::PrepareMaintenance(const std::string& node,
                                                                   double seconds) {
  if (!(seconds >= kShortestMaintenanceSeconds && seconds <= kLongestMaintenanceSeconds)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("a maintenance lasts from %.0f to %.0f seconds (7 days)",
                        kShortestMaintenanceSeconds, kLongestMaintenanceSeconds));
  }
  const std::optional<NodeView> view = repairs_->nodes().Find(node);
  if (!view) {
    // It may have been dead when this coordinator started.
    ECPIPE_ASSIGN_OR_RETURN(const NodeBlockPage page, catalog_->ListNode(node, "", 1));
    if (page.blocks.empty()) {
      return absl::NotFoundError("node " + node +
                                 " has not registered, and no block is on it in the catalog");
    }
  }
  if (view && !view->record.storage_id.empty()) {
    return absl::FailedPreconditionError(
        "node " + node +
        " belongs to a storage system, which repairs its blocks itself: announce the maintenance "
        "there");
  }
  const int64_t now = clock_->UnixMillis();
  const int64_t end = now + static_cast<int64_t>(seconds * 1000);
  MutexLock lock(&mutex_);
  if (const Recovery* const running = MaintenanceOf(node)) {
    RecoveryRecord record = running->record;
    record.rebuild_after_unix_ms = end;
    return record;
  }
  ECPIPE_RETURN_IF_ERROR(CheckNoOther(node));
  RecoveryRecord record;
  record.request.node = node;
  record.request.kind = RecoveryKind::kMaintenance;
  record.started_unix_ms = now;
  record.rebuild_after_unix_ms = end;
  record.keeps_out = true;
  return record;
}

absl::StatusOr<RecoveryId> RecoveryManager::Maintain(const std::string& node, double seconds) {
  ECPIPE_ASSIGN_OR_RETURN(RecoveryRecord record, PrepareMaintenance(node, seconds));
  if (record.recovery_id == 0) return Begin(std::move(record));
  {
    MutexLock lock(&mutex_);
    Recovery* const running = MaintenanceOf(node);
    if (running == nullptr || running->record.recovery_id != record.recovery_id) {
      return absl::AbortedError("the maintenance of node " + node +
                                " has just ended; ask again if it shall go on");
    }
    RecoveryRecord changed = running->record;
    changed.rebuild_after_unix_ms = record.rebuild_after_unix_ms;
    ECPIPE_RETURN_IF_ERROR(
        Store(changed, "the maintenance of node " + node + " ends at the time set before"));
    running->record = std::move(changed);
  }
  Log(LogLevel::kInfo, "maintenance.changed",
      {{"recovery", std::to_string(record.recovery_id)},
       {"node", node},
       {"seconds", absl::StrFormat("%.0f", seconds)}});
  ECPIPE_RETURN_IF_ERROR(Sync("the maintenance of node " + node + " has its new end"));
  return record.recovery_id;
}

RecoveryManager::Recovery* RecoveryManager::MaintenanceOf(const std::string& node) {
  for (const auto& [id, recovery] : recoveries_) {
    if (recovery->record.request.node == node && InMaintenance(recovery->record)) {
      return recovery.get();
    }
  }
  return nullptr;
}

void RecoveryManager::EndMaintenances() {
  bool ended = false;
  for (const auto& [id, recovery] : recoveries_) {
    RecoveryRecord& record = recovery->record;
    if (!InMaintenance(record) || clock_->UnixMillis() < record.rebuild_after_unix_ms) continue;
    record.keeps_out = false;
    ended = true;
    StoreIfPossible(record);
    Log(LogLevel::kInfo, "maintenance.end",
        {{"recovery", std::to_string(id)}, {"node", record.request.node}});
  }
  if (ended) TellKeptOut();
}

// ---- The way back -----------------------------------------------------------------------------

absl::StatusOr<std::vector<RecoveryRecord>> RecoveryManager::KeptOutBy(const std::string& node) {
  std::vector<RecoveryRecord> all;
  MutexLock lock(&mutex_);
  for (const auto& [id, recovery] : recoveries_) {
    const RecoveryRecord& record = recovery->record;
    if (!record.keeps_out || record.request.node != node) continue;
    if (WhyOf(record) == KeptOut::kDraining) {
      return absl::FailedPreconditionError(
          "drain " + std::to_string(id) + " of node " + node + " is " +
          RecoveryStateName(record.state) +
          "; to end it and readmit the node: ecpipe recovery cancel " + std::to_string(id));
    }
    all.push_back(record);
  }
  if (all.empty()) {
    return absl::NotFoundError("node " + node + " has not been drained, and is in no maintenance");
  }
  return all;
}

absl::Status RecoveryManager::Readmit(const std::string& node) {
  ECPIPE_ASSIGN_OR_RETURN(const std::vector<RecoveryRecord> by, KeptOutBy(node));
  {
    MutexLock lock(&mutex_);
    // The maintenance first, so that after an error a node that was drained takes no blocks yet.
    for (auto each = by.rbegin(); each != by.rend(); ++each) {
      const auto found = recoveries_.find(each->recovery_id);
      if (found == recoveries_.end()) continue;
      RecoveryRecord& kept = found->second->record;
      RecoveryRecord changed = kept;
      changed.keeps_out = false;
      if (InMaintenance(kept)) changed.rebuild_after_unix_ms = clock_->UnixMillis();
      ECPIPE_RETURN_IF_ERROR(Store(changed, "node " + node + " takes no blocks, as before"));
      kept = std::move(changed);
      TellKeptOut();
      // Before the next choice: it is not to rebuild what the node has.
      FollowNode(found->second.get());
    }
  }
  Log(LogLevel::kInfo, "node.readmitted", {{"node", node}});
  news_->Wake();
  return Sync("node " + node + " takes blocks again");
}

}  // namespace ecpipe
