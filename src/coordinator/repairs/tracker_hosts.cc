// SPDX-License-Identifier: Apache-2.0
// RepairTracker, repairs whose blocks helpers store: their reports, another attempt after a fault,
// and their end.
#include <algorithm>

#include "base/status.h"
#include "coordinator/repairs/hosted_left.h"
#include "coordinator/repairs/tracker.h"
#include "model/fault.h"

namespace ecpipe {
namespace {

// How long the report that says why a repair failed may come after those that say that it did.
constexpr Duration kRootCause = std::chrono::milliseconds(300);

absl::Status Because(const absl::Status& failure, const absl::Status& fault) {
  const std::string text(failure.message());
  const std::string why(fault.message());
  if (text.find(why) != std::string::npos) return failure;
  return absl::Status(failure.code(), text + "; there was no further attempt, because " + why);
}

bool HasRow(const std::vector<Row>& rows, Row row) {
  return std::find(rows.begin(), rows.end(), row) != rows.end();
}

}  // namespace

std::optional<Row> RepairTracker::RowToStore(const std::string& node) const {
  const auto host = std::find(record_.hosts.begin(), record_.hosts.end(), node);
  if (host == record_.hosts.end()) return std::nullopt;
  const auto row = static_cast<Row>(host - record_.hosts.begin());
  return HasRow(record_.moved, row) ? std::nullopt : std::optional(row);
}

bool RepairTracker::AllAreStored() const {
  return hosted() && record_.moved.size() + hosts()->to_move.size() == record_.hosts.size();
}

std::set<std::string> RepairTracker::HostsAtWork() const {
  std::set<std::string> at_work;
  for (const std::string& host : record_.hosts) {
    if (RowToStore(host)) at_work.insert(host);
  }
  return at_work;
}

RepairTracker::Sides RepairTracker::SidesOf(const std::vector<HelperAddress>& helpers) const {
  Sides sides;
  for (const HelperAddress& helper : helpers) {
    (RowToStore(helper.node) ? sides.hosts : sides.others).push_back(helper);
  }
  return sides;
}

void RepairTracker::Hear(event::Adopted&) { Advance(); }

void RepairTracker::Advance() {
  ForHosts* const hosted = hosts();
  if (hosted == nullptr || hosted->moving || !(Is<Running>() || Is<Failed>())) return;
  if (!hosted->to_move.empty()) {
    const Row row = hosted->to_move.extract(hosted->to_move.begin()).value();
    // One row at a time, so that a move and the note of it are one step to all others.
    hosted->moving = true;
    return Emit(action::MoveBlock{row, record_.block_ids[row], record_.hosts[row]});
  }
  if (record_.moved.size() == record_.hosts.size()) return EndHosted(absl::OkStatus());
  if (!hosted->failure.ok()) FailAttempt(hosted->failure);
}

void RepairTracker::Hear(event::Moved& moved) {
  if (!moved.status.ok()) return AdvanceAfter(moved.status);
  record_.moved.push_back(moved.row);
  // A coordinator after this one must not wait for reports that have come.
  if (record_.moved.size() < record_.hosts.size()) return Emit(action::Journal{record_});
  AdvanceAfter(absl::OkStatus());
}

void RepairTracker::AdvanceAfter(const absl::Status& stored) {
  ForHosts& hosted = *hosts();
  hosted.moving = false;
  if (!stored.ok()) {
    if (hosted.failure.ok()) hosted.failure = stored;
    hosted.may_go_on = false;
  }
  Advance();
}

void RepairTracker::FailAttempt(const absl::Status& status) {
  ForHosts& hosted = *hosts();
  if (hosted.failure.ok()) hosted.failure = status;
  // Otherwise whoever is at it looks at the failure when that is done.
  if (!Is<Running>() || hosted.moving) return;
  if (!hosted.may_go_on) return EndHosted(status);
  phase_ = Failed{};
  Emit(action::Fault{});
}

void RepairTracker::Hear(event::NextAttempt&) {
  if (!Is<Failed>()) return;
  if (hosts()->moving) {  // after which the failure is found again
    phase_ = Running{};
    return;
  }
  phase_ = Resuming{{}, hosts()->failure, {}};
  Await(action::AskParts{Question::kWhoFailed, record_.attempt, attempt_.helpers, {}});
}

void RepairTracker::ContinueFrom(const PartAnswers& hosts_have) {
  auto resuming = std::move(PhaseAs<Resuming>());
  phase_ = Running{};
  const HostedLeft left = LeftOnHosts(hosts_have, attempt_.grid);
  if (!left.stored.empty()) {
    for (const std::string& host : left.stored) {
      attempt_.unreported.erase(host);
      if (const auto row = RowToStore(host)) hosts()->to_move.insert(*row);
    }
    return Advance();  // which finds the failure again, if there are other hosts
  }
  const absl::Status& failure = resuming.failure;
  if (!left.fault.ok()) return EndHosted(Because(failure, left.fault));
  // As it was it would fail again, and whoever ordered it knows better when to try that.
  if (resuming.suspects.empty() && FaultOf(failure).empty()) return EndHosted(failure);
  RepairRequest again = attempt_.request;
  again.block_ids.clear();
  again.hosts.clear();
  for (Row row = 0; row < record_.hosts.size(); ++row) {
    if (HasRow(record_.moved, row)) continue;
    again.block_ids.push_back(record_.block_ids[row]);
    again.hosts.push_back(record_.hosts[row]);
  }
  again.left = {attempt_.grid, left.missing};
  again.slice_bytes = attempt_.grid.slice_bytes;
  again.scheme = record_.scheme;
  CountFailed(*again.left);
  Emit(action::CancelLater{record_.attempt, SidesOf(attempt_.helpers).others});
  PlanNextAttempt(std::move(again), resuming.suspects, failure);
}

void RepairTracker::EndHosted(const absl::Status& status) {
  ForHosts& hosted = *hosts();
  if (hosted.moving) {  // after which it ends
    if (hosted.failure.ok()) hosted.failure = status;
    hosted.may_go_on = false;
    if (Is<Failed>()) phase_ = Running{};
    return;
  }
  std::string detail;
  if (!status.ok()) {
    std::vector<HelperAddress> helpers = attempt_.helpers;
    // Of an adopted repair only the hosts are known; the others end when these close their streams.
    if (helpers.empty()) {
      for (const std::string& host : record_.hosts) helpers.push_back({host, ""});
    }
    Emit(action::Cancel{record_.attempt, std::move(helpers)});
    DoubtSurvivors(status);
    detail = StatusText(status);
    if (!record_.moved.empty()) {
      detail += "; stored " + std::to_string(record_.moved.size()) + " of " +
                std::to_string(record_.hosts.size()) + " blocks";
    }
  }
  End(StateAfter(status), detail);
  if (!granted_) return;  // whoever ordered it still waits for the first attempt
  for (Row row = 0; row < record_.hosts.size(); ++row) {
    Emit(action::TellEnd{{record_.recovery_id, record_.block_ids[row],
                          HasRow(record_.moved, row) ? absl::OkStatus() : status}});
  }
}

std::string RepairTracker::SilentHosts() const {
  std::string silent;
  for (const std::string& node : attempt_.unreported) silent += (silent.empty() ? "" : ", ") + node;
  return silent;
}

void RepairTracker::EndIfHopeless(const NodeLives& nodes) {
  if (!Is<Running>()) return;
  for (const std::string& node : attempt_.unreported) {
    // A node that is not known yet, after a restart of the coordinator, may still report.
    const auto life = nodes.find(node);
    if (life == nodes.end() || !life->second.registered_here) continue;
    const std::string why = GoneBecause(node, nodes);
    if (!why.empty()) return FailAttempt(absl::UnavailableError("node " + node + " " + why));
  }
  const absl::Status& consequence = hosts()->consequence;
  if (!consequence.ok() && now_ - last_news_ >= kRootCause) return FailAttempt(consequence);
  if (now_ - last_news_ <= abandon_after_) return;
  std::vector<HelperAddress> silent;
  for (const std::string& node : attempt_.unreported) {
    const std::vector<std::string>& hosts = record_.hosts;
    // After its helpers have ended a host has little left to do.
    if (std::find(hosts.begin(), hosts.end(), node) == hosts.end()) return;
    silent.push_back({node, ""});
  }
  Emit(action::AskParts{Question::kStillThere, record_.attempt, std::move(silent), {}});
}

void RepairTracker::HearSilentHosts(const PartAnswers& answers) {
  // A node has reported since they were asked.
  if (now_ - last_news_ <= abandon_after_) return;
  const bool heard = std::any_of(answers.begin(), answers.end(),
                                 [](const auto& entry) { return entry.second.ok(); });
  if (!heard) {
    return EndHosted(absl::DeadlineExceededError(
        "these nodes did not report how the repair ended: " + SilentHosts()));
  }
  last_news_ = now_;
  const uint32_t attempt = record_.attempt;
  for (const auto& [node, answer] : answers) {
    if (ended() || !answer.ok() || answer->running) continue;
    event::Reported report{node, attempt, answer->ended};
    Hear(report);
  }
}

}  // namespace ecpipe
