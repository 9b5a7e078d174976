// SPDX-License-Identifier: Apache-2.0
// RepairCoordinator, the second half: how repairs that helpers host end, and how all end that
// nobody ends any more.
#include <algorithm>

#include "base/process/log.h"
#include "base/status.h"
#include "coordinator/repairs/repair_coordinator.h"

namespace ecpipe {
namespace {

// After a restart: how long repairs may run that nobody here knows of.
constexpr Duration kDistrust = std::chrono::minutes(1);
constexpr Duration kLateReports = std::chrono::seconds(10);
// How long the report that says why a repair failed may come after those that say that it did.
constexpr Duration kRootCause = std::chrono::milliseconds(300);

}  // namespace

void RepairCoordinator::Advance(RepairId repair_id) {
  // One thread at a time, so that a move and the note of it are one step to all others.
  RepairRecord record;
  absl::Status failure;
  {
    MutexLock lock(&mutex_);
    const auto found = running_.find(repair_id);
    if (found == running_.end()) return;
    Running& running = found->second;
    if (running.record.hosts.empty() || running.handing_out || running.advancing) return;
    running.advancing = true;
  }
  while (const std::optional<Row> row = NextStored(repair_id, &record, &failure)) {
    absl::Status status = catalog_->MoveBlock(record.block_ids[*row], record.hosts[*row]);
    if (status.ok()) {
      corrupt_.Forget(record.block_ids[*row]);
      record.moved.push_back(*row);
      // A coordinator after this one must not wait for reports that have come.
      if (record.moved.size() < record.hosts.size()) status = journal_->Record(record);
    }
    MutexLock lock(&mutex_);
    Running& running = running_.at(repair_id);
    running.record.moved = record.moved;
    if (running.failure.ok()) running.failure = status;
    if (!status.ok()) running.may_go_on = false;
  }
  if (record.moved.size() == record.hosts.size()) {
    EndHosted(repair_id, absl::OkStatus());
  } else if (!failure.ok()) {
    FailAttempt(repair_id, record.attempt, failure);
  }
}

std::optional<Row> RepairCoordinator::NextStored(RepairId repair_id, RepairRecord* record,
                                                 absl::Status* failure) {
  MutexLock lock(&mutex_);
  Running& running = running_.at(repair_id);
  *record = running.record;
  *failure = running.failure;
  if (running.to_move.empty()) {
    running.advancing = false;
    return std::nullopt;
  }
  return running.to_move.extract(running.to_move.begin()).value();
}

void RepairCoordinator::EndHosted(RepairId repair_id, const absl::Status& status) {
  Running ended;
  {
    MutexLock lock(&mutex_);
    const auto found = running_.find(repair_id);
    if (found == running_.end()) return;
    if (found->second.advancing) {  // the thread that does so ends it
      if (found->second.failure.ok()) found->second.failure = status;
      found->second.may_go_on = false;
      return;
    }
    ended = Take(found);
  }
  const RepairRecord& record = ended.record;
  std::string detail;
  if (!status.ok()) {
    std::vector<HelperAddress> helpers = ended.helpers;
    // Of an adopted repair only the hosts are known; the others end when these close their streams.
    for (const std::string& host : record.hosts) {
      const std::optional<NodeView> view = nodes_.Find(host);
      if (ended.helpers.empty() && view) helpers.push_back({host, view->record.control_address});
    }
    helpers_->CancelRepair(repair_id, record.attempt, helpers);
    detail = StatusText(status);
    if (!record.moved.empty()) {
      detail += "; stored " + std::to_string(record.moved.size()) + " of " +
                std::to_string(record.hosts.size()) + " blocks";
    }
  }
  End(record, status.ok() ? RepairState::kDone : RepairState::kFailed, detail);
  for (Row row = 0; row < record.hosts.size(); ++row) {
    const bool moved =
        std::find(record.moved.begin(), record.moved.end(), row) != record.moved.end();
    on_hosted_end_({record.recovery_id, record.block_ids[row], moved ? absl::OkStatus() : status});
  }
}

void RepairCoordinator::Adopt(const std::vector<RepairRecord>& interrupted) {
  // Requestors' repairs may go on, too; nobody here knows with which nodes.
  if (!interrupted.empty()) busy_.DistrustUntil(clock_->Now() + kDistrust);
  for (RepairRecord record : interrupted) {
    if (record.hosts.empty()) continue;
    record.state = RepairState::kRunning;
    record.ended_unix_ms = 0;
    // Of the other nodes nothing is known, so nobody can say who failed.
    Running running{.record = record, .last_news = clock_->Now(), .may_go_on = false};
    running.request.background = record.recovery_id != 0;
    for (Row row = 0; row < record.hosts.size(); ++row) {
      const absl::StatusOr<BlockLocation> place = catalog_->FindBlock(record.block_ids[row]);
      if (place.ok()) running.stripe_id = place->stripe.stripe_id;
      const bool moved =
          std::find(record.moved.begin(), record.moved.end(), row) != record.moved.end();
      if (!moved) running.unreported.insert(record.hosts[row]);
    }
    // The next coordinator takes it up as well.
    if (absl::Status stored = journal_->Record(record); !stored.ok()) {
      Log(LogLevel::kError, "journal.failed", {{"status", StatusText(stored)}});
    }
    {
      MutexLock lock(&mutex_);
      running_[record.repair_id] = std::move(running);
    }
    Advance(record.repair_id);
  }
}

void RepairCoordinator::CancelHosted(uint64_t recovery_id) {
  std::vector<RepairId> ids;
  {
    MutexLock lock(&mutex_);
    for (const auto& [repair_id, running] : running_) {
      const bool hosted = !running.record.hosts.empty();
      if (hosted && running.record.recovery_id == recovery_id) ids.push_back(repair_id);
    }
  }
  for (const RepairId id : ids) EndHosted(id, absl::CancelledError("the recovery was cancelled"));
}

std::string RepairCoordinator::GoneBecause(const Running& running, const std::string& node) {
  const std::optional<NodeView> view = nodes_.Find(node);
  if (!view) return "is not registered";
  if (view->state == NodeState::kDead) return "died";
  // A helper that starts again knows nothing of the parts that it ran.
  const auto then = running.incarnations.find(node);
  const bool same = then == running.incarnations.end() || then->second == view->record.incarnation;
  return same ? "" : "restarted";
}

std::optional<absl::Status> RepairCoordinator::Hopeless(const Running& running, TimePoint now) {
  const std::vector<std::string>& hosts = running.record.hosts;
  if (hosts.empty() || running.handing_out || running.to_go_on) return std::nullopt;
  for (const std::string& node : running.unreported) {
    // A node that is not known yet, after a restart of the coordinator, may still report.
    const std::string why = nodes_.HasRegistered(node) ? GoneBecause(running, node) : "";
    if (!why.empty()) return absl::UnavailableError("node " + node + " " + why);
  }
  if (!running.consequence.ok() && now - running.last_news >= kRootCause) {
    return running.consequence;
  }
  // After its helpers have ended a host has little left to do.
  std::string silent;
  for (const std::string& node : running.unreported) {
    if (std::find(hosts.begin(), hosts.end(), node) == hosts.end()) return std::nullopt;
    silent += (silent.empty() ? "" : ", ") + node;
  }
  if (now - running.last_news <= options_.abandon_after) return std::nullopt;
  return absl::DeadlineExceededError("these nodes did not report how the repair ended: " + silent);
}

bool RepairCoordinator::HearHosts(RepairId repair_id, uint32_t attempt) {
  Running silent;
  {
    MutexLock lock(&mutex_);
    const auto found = running_.find(repair_id);
    if (found == running_.end() || found->second.record.attempt != attempt) return true;
    silent.record = found->second.record;
    for (const std::string& node : found->second.unreported) {
      const std::optional<NodeView> view = nodes_.Find(node);
      if (view) silent.helpers.push_back({node, view->record.control_address});
    }
  }
  bool heard = false;
  for (const auto& [node, answer] : Ask(silent.record, silent.helpers)) {
    if (!answer.ok()) continue;
    heard = true;
    if (!answer->running) ReportPart(node, repair_id, silent.record.attempt, answer->ended);
  }
  MutexLock lock(&mutex_);
  const auto found = running_.find(repair_id);
  if (heard && found != running_.end()) found->second.last_news = clock_->Now();
  return heard;
}

void RepairCoordinator::Expire() {
  std::vector<RepairRecord> abandoned;
  struct Verdict {
    RepairId repair_id = 0;
    uint32_t attempt = 0;
    absl::Status status;
  };
  std::vector<Verdict> hopeless;
  const TimePoint now = clock_->Now();
  {
    MutexLock lock(&mutex_);
    for (auto it = running_.begin(); it != running_.end();) {
      Running& running = it->second;
      if (const auto status = Hopeless(running, now)) {
        hopeless.push_back({it->first, running.record.attempt, *status});
      }
      if (!running.record.hosts.empty()) {
        ++it;
        continue;
      }
      std::erase_if(running.unreported,
                    [&](const std::string& node) { return !GoneBecause(running, node).empty(); });
      if (running.unreported.empty() && now - running.last_news > options_.abandon_after) {
        abandoned.push_back(running.record);
        it = running_.erase(it);
      } else {
        ++it;
      }
    }
  }
  std::vector<LeftBehind> left_behind;
  {
    MutexLock lock(&mutex_);
    left_behind.swap(left_behind_);
    std::erase_if(ended_, [&](const auto& ended) { return now - ended.second.at > kLateReports; });
  }
  for (const LeftBehind& attempt : left_behind) {
    helpers_->CancelRepair(attempt.repair_id, attempt.attempt, attempt.helpers);
  }
  for (const auto& [repair_id, attempt, status] : hopeless) {
    if (!absl::IsDeadlineExceeded(status)) {
      FailAttempt(repair_id, attempt, status);
    } else if (!HearHosts(repair_id, attempt)) {
      EndHosted(repair_id, status);
    }
  }
  for (const RepairRecord& record : abandoned) {
    End(record, RepairState::kFailed,
        "the requestor fell silent and never reported how the repair ended");
  }
  StoreUnwritten();
  if (absl::Status trimmed = journal_->Trim(options_.journal_keep); !trimmed.ok()) {
    Log(LogLevel::kError, "journal.failed", {{"status", StatusText(trimmed)}});
  }
}

}  // namespace ecpipe
