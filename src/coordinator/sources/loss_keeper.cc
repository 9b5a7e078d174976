// SPDX-License-Identifier: Apache-2.0
#include "coordinator/sources/loss_keeper.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/process/log.h"
#include "base/status.h"

namespace ecpipe {
namespace {

int64_t Millis(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

// As a helper would tell all that it has.
BlockReport ReportOf(const std::string& node, NodeBlocks blocks) {
  BlockReport report{node, blocks.incarnation, 1, 0, {}};
  for (const auto& [pool, of_pool] : blocks.pools) {
    std::vector<BlockChanges::Added>& added = report.pools[pool].added;
    added.reserve(of_pool.size());
    for (const InternalBlock& block : of_pool) added.push_back({block, 0});
  }
  return report;
}

void LogFailure(const char* what, const std::string& node, const absl::Status& status) {
  Log(LogLevel::kWarning, what, {{"node", node}, {"status", StatusText(status)}});
}

}  // namespace

absl::Status LossKeeper::RestoreNode(const std::string& node) {
  ECPIPE_ASSIGN_OR_RETURN(LostNode lost, store_->Load(node));
  const auto silent =
      std::chrono::milliseconds(std::max<int64_t>(0, clock_->UnixMillis() - lost.heard_unix_ms));
  ECPIPE_RETURN_IF_ERROR(nodes_->AddDead(std::move(lost.record), silent));
  ECPIPE_RETURN_IF_ERROR(
      reported_->Record(ReportOf(node, std::move(lost.blocks)), clock_->Now() - silent).status());
  kept_[node] = reported_->Of(node);
  return absl::OkStatus();
}

void LossKeeper::Restore() {
  const absl::Status forgotten = store_->ForgetOlder(clock_->UnixMillis() - Millis(kKeptFor));
  if (!forgotten.ok()) LogFailure("losses.not_forgotten", "", forgotten);
  const absl::StatusOr<std::vector<std::string>> nodes = store_->Nodes();
  if (!nodes.ok()) return LogFailure("losses.unreadable", "", nodes.status());
  for (const std::string& node : *nodes) {
    if (const absl::Status restored = RestoreNode(node); !restored.ok()) {
      LogFailure("losses.unreadable", node, restored);
    }
  }
}

absl::Status LossKeeper::LookAt(const std::string& name) {
  const std::shared_ptr<const NodeBlocks> blocks = reported_->Of(name);
  if (blocks == nullptr) return absl::OkStatus();
  const std::optional<NodeView> node = nodes_->Find(name);
  const auto kept = kept_.find(name);
  const bool forgotten = !node || node->heartbeat_unknown;  // by an operator, or for want of room
  const bool too_old =
      !forgotten && node->state == NodeState::kDead &&
      FromSeconds(node->seconds_since_heartbeat) > kKeptFor;
  if (forgotten || too_old) {
    // First in the store: a coordinator that starts again must not know it.
    ECPIPE_RETURN_IF_ERROR(store_->Forget(name));
    kept_.erase(name);
    reported_->Forget(name, blocks);
    return absl::OkStatus();
  }
  if (node->state == NodeState::kDead) {
    if (kept != kept_.end() && kept->second == blocks) return absl::OkStatus();
    const int64_t silent = Millis(FromSeconds(node->seconds_since_heartbeat));
    ECPIPE_RETURN_IF_ERROR(store_->Keep(node->record, clock_->UnixMillis() - silent, *blocks));
    kept_[name] = blocks;
  } else if (kept != kept_.end() && blocks->incarnation == node->record.incarnation) {
    // Of another incarnation: it has come back, and what is on its disks now it has yet to tell.
    ECPIPE_RETURN_IF_ERROR(store_->Forget(name));
    kept_.erase(kept);
  }
  return absl::OkStatus();
}

void LossKeeper::Look() {
  absl::Status status;
  const TimePoint begun = clock_->Now();
  for (const auto& [node, unused] : reported_->All()) {
    if (clock_->Now() - begun > kLongestLook) break;
    const absl::Status looked = LookAt(node);
    if (!looked.ok() && status.ok() && !failing_) LogFailure("losses.not_kept", node, looked);
    status.Update(looked);
  }
  failing_ = !status.ok();
}

}  // namespace ecpipe
