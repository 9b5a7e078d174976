// SPDX-License-Identifier: Apache-2.0
// RecoveryManager: whether a recovery may begin, and as what.
#include <algorithm>
#include <optional>

#include "base/status.h"
#include "coordinator/planning/scheme.h"
#include "coordinator/recovery/recovery_manager.h"

namespace ecpipe {
namespace {

absl::Status CheckScheme(const std::string& name, RecoveryKind kind) {
  if (name.empty() || name == "auto") return absl::OkStatus();
  const Scheme* scheme = FindScheme(name);
  const bool rebuilds = scheme != nullptr && scheme->kind != SchemeKind::kDirect;
  if (rebuilds || (scheme != nullptr && kind == RecoveryKind::kMove)) return absl::OkStatus();
  return absl::InvalidArgumentError("scheme '" + name + "' cannot be used to recover a node");
}

// Whether the blocks of the node may be moved off it.
absl::Status CheckMayMove(const RecoveryRequest& request, const std::optional<NodeView>& node) {
  if (!node) return absl::NotFoundError("node " + request.node + " has never registered");
  if (node->state == NodeState::kDead) {
    return absl::FailedPreconditionError("node " + request.node +
                                         " is dead, so nothing can be copied from it; to rebuild "
                                         "its blocks: ecpipe recover-node " +
                                         request.node);
  }
  if (!node->record.storage_id.empty()) {
    return absl::FailedPreconditionError("node " + request.node +
                                         " belongs to a storage system, which moves its blocks "
                                         "itself: decommission it there");
  }
  if (std::find(request.hosts.begin(), request.hosts.end(), request.node) == request.hosts.end()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("node " + request.node +
                                    " cannot take the blocks that are moved off it");
}

}  // namespace

absl::StatusOr<RecoveryRecord> RecoveryManager::Prepare(const RecoveryRequest& request,
                                                        IfLive if_live) {
  ECPIPE_RETURN_IF_ERROR(CheckScheme(request.scheme, request.kind));
  if (request.node.empty() || request.node.size() > NodeTable::kMaxNodeIdBytes) {
    return absl::InvalidArgumentError("the lost node's id is empty or too long");
  }
  const std::optional<NodeView> node = repairs_->nodes().Find(request.node);
  const bool live = node && node->state != NodeState::kDead;
  const bool move = request.kind == RecoveryKind::kMove;
  if (move) ECPIPE_RETURN_IF_ERROR(CheckMayMove(request, node));
  if (!move && live && if_live == IfLive::kRefuse) {
    return absl::FailedPreconditionError(
        "node " + request.node + " is " + NodeStateName(node->state) +
        ", so its blocks are not lost; if it has lost some of them, use --missing; else stop its "
        "helper first, or use --even-if-live");
  }
  for (const std::string& host : request.hosts) {
    const std::optional<NodeView> view = repairs_->nodes().Find(host);
    if (!view) return absl::InvalidArgumentError("node " + host + " has never registered");
    if (view->kept_out != KeptOut::kNone) {
      return absl::InvalidArgumentError("node " + host + " is " + KeptOutName(view->kept_out) +
                                        ", so it takes no blocks; to let it take some: ecpipe "
                                        "nodes readmit " +
                                        host);
    }
  }
  RecoveryRecord record;
  record.request = request;
  record.started_unix_ms = clock_->UnixMillis();
  record.keeps_out = move;
  if (!move && if_live != IfLive::kRebuildAll) {
    // A live node will not come back.
    const double usual = live ? 0 : Seconds(options_.delay);
    const double delay = request.delay_seconds < 0 ? usual : request.delay_seconds;
    const double silent = node ? node->seconds_since_heartbeat : 0;
    record.rebuild_after_unix_ms =
        record.started_unix_ms + static_cast<int64_t>(std::max(0.0, delay - silent) * 1000);
  }
  MutexLock lock(&mutex_);
  ECPIPE_RETURN_IF_ERROR(CheckNoOther(request.node));
  return record;
}

absl::Status RecoveryManager::CheckNoOther(const std::string& node) {
  for (const auto& [id, recovery] : recoveries_) {
    if (recovery->record.request.node != node || Ended(recovery->record.state)) continue;
    if (InMaintenance(recovery->record)) {
      return absl::AlreadyExistsError("node " + node +
                                      " is in maintenance; to end that and rebuild what the node "
                                      "does not have: ecpipe nodes readmit " +
                                      node + "; to end it only: ecpipe recovery cancel " +
                                      std::to_string(id));
    }
    return absl::AlreadyExistsError("recovery " + std::to_string(id) + " of node " + node + " is " +
                                    RecoveryStateName(recovery->record.state) +
                                    "; to end it: ecpipe recovery cancel " + std::to_string(id));
  }
  return absl::OkStatus();
}

}  // namespace ecpipe
