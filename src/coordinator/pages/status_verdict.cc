// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pages/status_verdict.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "coordinator/recovery/recovered.h"

namespace ecpipe {
namespace {

// "1 node", "2 nodes".
std::string Count(uint64_t count, const std::string& one) {
  return std::to_string(count) + " " + one + (count == 1 ? "" : "s");
}

// Waits that end by themselves, or by the operator who has ordered them.
bool IsTrouble(WaitKind kind) {
  return kind == WaitKind::kSurvivors || kind == WaitKind::kTarget || kind == WaitKind::kHelper ||
         kind == WaitKind::kFailed;
}

struct Work {
  uint64_t recoveries = 0;  // that have not ended
  uint64_t waiting = 0;     // blocks
  uint64_t running = 0;
  uint64_t given_up = 0;
  std::optional<RecoveryWait> trouble;  // that the most blocks wait for
  std::optional<RecoveryWait> limit;
};

Work WorkOf(const StatusSnapshot& snapshot) {
  Work work;
  for (const RecoveryView& view : snapshot.recoveries) {
    if (Ended(view.record.state) || OnlyAnnounced(view.record)) continue;
    ++work.recoveries;
    work.waiting += view.waiting_blocks;
    work.running += view.running_blocks;
    work.given_up += view.record.failed_blocks;
    for (const RecoveryWait& wait : view.waits) {
      std::optional<RecoveryWait>& worst = IsTrouble(wait.kind) ? work.trouble : work.limit;
      if (!IsTrouble(wait.kind) && wait.kind != WaitKind::kLimit) continue;
      if (!worst || worst->blocks < wait.blocks) worst = wait;
    }
  }
  return work;
}

std::string TroubleOf(const StatusSnapshot& snapshot) {
  uint64_t dead = 0;
  uint64_t silent = 0;
  uint64_t roots = 0;
  for (const NodeView& node : snapshot.nodes) {
    if (node.Away()) continue;
    const bool is_dead = node.state == NodeState::kDead;
    dead += is_dead && !IsRecovered(snapshot, node) ? 1 : 0;
    silent += !node.silent_because.empty() ? 1 : 0;
    roots += is_dead ? 0 : node.record.failed_roots.size();
  }
  std::string text;
  const auto add = [&](uint64_t count, const std::string& one) {
    if (count > 0) text += (text.empty() ? "" : ", ") + Count(count, one);
  };
  add(dead, "dead node");
  add(silent, "node that answers no call");
  add(roots, "failed root");
  add(snapshot.corrupt_blocks, "corrupt block");
  return text;
}

std::string LimitInForce(const StatusSnapshot& snapshot) {
  for (const ShownRepair& repair : snapshot.repairs) {
    if (repair.held_back && repair.held_back->by == HeldBack::By::kLimit) {
      return "node " + repair.held_back->from + " sends as much as its limit allows";
    }
  }
  return "";
}

}  // namespace

bool IsRecovered(const StatusSnapshot& snapshot, const NodeView& node) {
  std::optional<LatestRecovery> latest;
  for (const RecoveryView& view : snapshot.recoveries) {  // the newest first
    const RecoveryRecord& record = view.record;
    if (record.request.node != node.record.node_id || OnlyAnnounced(record)) continue;
    latest = {record.state, record.ended_unix_ms};
    break;
  }
  return IsRecovered(node, latest, snapshot.unix_ms);
}

const char* ClusterStateName(ClusterState state) {
  switch (state) {
    case ClusterState::kEmpty:
      return "empty";
    case ClusterState::kHealthy:
      return "healthy";
    case ClusterState::kRepairing:
      return "repairing";
    case ClusterState::kThrottled:
      return "throttled";
    case ClusterState::kDegraded:
      return "degraded";
    case ClusterState::kStuck:
      return "stuck";
  }
  return "healthy";
}

ClusterVerdict Judge(const StatusSnapshot& snapshot) {
  if (snapshot.nodes.empty()) return {ClusterState::kEmpty, "no helper has registered yet"};
  const Work work = WorkOf(snapshot);
  const std::string trouble = TroubleOf(snapshot);
  const std::string and_trouble = trouble.empty() ? "" : "; " + trouble;
  const bool runs = snapshot.running_repairs > 0 || work.running > 0;
  if (work.trouble && !runs) {
    return {ClusterState::kStuck, Count(work.trouble->blocks, "block") + " of " +
                                      std::to_string(work.waiting) +
                                      " that wait cannot be repaired now: " + work.trouble->reason};
  }
  if (runs || work.recoveries > 0) {
    std::string text = Count(snapshot.running_repairs, "repair") + " running, " +
                       Count(work.waiting, "block") + " waiting";
    if (work.given_up > 0) text += ", " + Count(work.given_up, "block") + " given up";
    const std::string limit = work.limit ? work.limit->reason : LimitInForce(snapshot);
    if (!limit.empty()) {
      return {ClusterState::kThrottled, text + "; " + limit + and_trouble};
    }
    return {ClusterState::kRepairing, text + and_trouble};
  }
  if (!trouble.empty()) return {ClusterState::kDegraded, trouble + "; no repair runs"};
  std::string text = Count(snapshot.nodes.size(), "node") + ", nothing to repair";
  const auto maintained = static_cast<uint64_t>(
      std::count_if(snapshot.nodes.begin(), snapshot.nodes.end(),
                    [](const NodeView& node) { return node.kept_out == KeptOut::kMaintenance; }));
  if (maintained > 0) text += "; " + Count(maintained, "node") + " in maintenance";
  return {ClusterState::kHealthy, text};
}

}  // namespace ecpipe
