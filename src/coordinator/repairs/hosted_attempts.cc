// SPDX-License-Identifier: Apache-2.0
// RepairCoordinator: another attempt of a repair whose blocks helpers store, from what they have.
#include <algorithm>
#include <utility>

#include "base/process/log.h"
#include "base/status.h"
#include "coordinator/repairs/hosted_left.h"
#include "coordinator/repairs/repair_coordinator.h"
#include "model/fault.h"

namespace ecpipe {
namespace {

absl::Status Because(const absl::Status& failure, const absl::Status& fault) {
  const std::string text(failure.message());
  const std::string why(fault.message());
  if (text.find(why) != std::string::npos) return failure;
  return absl::Status(failure.code(), text + "; there was no further attempt, because " + why);
}

}  // namespace

std::optional<Row> RepairCoordinator::RowToStore(const RepairRecord& record,
                                                 const std::string& node) {
  const auto host = std::find(record.hosts.begin(), record.hosts.end(), node);
  if (host == record.hosts.end()) return std::nullopt;
  const auto row = static_cast<Row>(host - record.hosts.begin());
  const auto moved = std::find(record.moved.begin(), record.moved.end(), row);
  return moved == record.moved.end() ? std::optional(row) : std::nullopt;
}

std::set<std::string> RepairCoordinator::HostsAtWork(const RepairRecord& record) {
  std::set<std::string> hosts;
  for (const std::string& host : record.hosts) {
    if (RowToStore(record, host)) hosts.insert(host);
  }
  return hosts;
}

RepairCoordinator::Sides RepairCoordinator::SidesOf(const Running& running) {
  Sides sides;
  const std::set<std::string> at_work = HostsAtWork(running.record);
  for (const HelperAddress& helper : running.helpers) {
    (at_work.contains(helper.node) ? sides.hosts : sides.others).push_back(helper);
  }
  return sides;
}

void RepairCoordinator::FailAttempt(RepairId repair_id, uint32_t attempt,
                                    const absl::Status& status) {
  bool may_go_on = false;
  {
    MutexLock lock(&mutex_);
    const auto found = running_.find(repair_id);
    if (found == running_.end() || found->second.record.attempt != attempt) return;
    Running& running = found->second;
    if (running.failure.ok()) running.failure = status;
    // Whoever is at it looks at the failure when that is done.
    if (running.handing_out || running.advancing || running.to_go_on) return;
    may_go_on = running.may_go_on;
    running.to_go_on = may_go_on;
  }
  if (may_go_on) {
    on_hosted_fault_(repair_id);
  } else {
    EndHosted(repair_id, status);
  }
}

bool RepairCoordinator::TakeFailed(RepairId repair_id, Running* failed) {
  MutexLock lock(&mutex_);
  const auto found = running_.find(repair_id);
  if (found == running_.end() || !found->second.to_go_on) return false;
  Running& running = found->second;
  running.to_go_on = false;
  if (running.handing_out || running.advancing) return false;
  running.handing_out = true;
  *failed = running;
  failed->busy.reset();
  return true;
}

void RepairCoordinator::TakeStored(RepairId repair_id, const std::vector<std::string>& hosts) {
  {
    MutexLock lock(&mutex_);
    const auto found = running_.find(repair_id);
    if (found == running_.end()) return;
    Running& running = found->second;
    for (const std::string& host : hosts) {
      running.unreported.erase(host);
      if (const auto row = RowToStore(running.record, host)) running.to_move.insert(*row);
    }
    running.handing_out = false;
  }
  // Which finds the failure again, if there are other hosts.
  Advance(repair_id);
}

void RepairCoordinator::GoOn(RepairId repair_id) {
  Running failed;
  if (!TakeFailed(repair_id, &failed)) return;
  const absl::Status failure = failed.failure;
  const Suspects suspects =
      WhoFailed(Ask(failed.record, failed.helpers), failure, failed.receivers);
  Sides sides = SidesOf(failed);
  helpers_->EndAttempt(repair_id, failed.record.attempt, sides.hosts);
  const HostedLeft left = LeftOnHosts(Ask(failed.record, sides.hosts), failed.grid);
  if (!left.stored.empty()) return TakeStored(repair_id, left.stored);
  if (!left.fault.ok()) return EndHosted(repair_id, Because(failure, left.fault));
  // As it was it would fail again, and whoever ordered it knows better when to try that.
  if (suspects.empty() && FaultOf(failure).empty()) return EndHosted(repair_id, failure);
  RepairRequest again = failed.request;
  again.block_ids.clear();
  again.hosts.clear();
  for (size_t i = 0; i < failed.record.hosts.size(); ++i) {
    if (!RowToStore(failed.record, failed.record.hosts[i])) continue;
    again.block_ids.push_back(failed.record.block_ids[i]);
    again.hosts.push_back(failed.record.hosts[i]);
  }
  again.left = {failed.grid, left.missing};
  again.slice_bytes = failed.grid.slice_bytes;
  again.scheme = failed.record.scheme;
  const absl::StatusOr<LostBlocks> lost = Locate(again);
  if (!lost.ok()) return EndHosted(repair_id, lost.status());
  {
    MutexLock lock(&mutex_);
    left_behind_.push_back({repair_id, failed.record.attempt, std::move(sides.others)});
  }
  const absl::Status begun = NextAttempt(failed, suspects, failure, again, *lost).status();
  if (begun.ok()) return;
  Log(LogLevel::kWarning, "repair.not_resumed",
      {{"repair", RepairIdText(repair_id)}, {"status", StatusText(begun)}});
}

}  // namespace ecpipe
