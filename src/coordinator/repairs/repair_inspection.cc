// SPDX-License-Identifier: Apache-2.0
// RepairCoordinator: whether an attempt that runs is worth going on with.
#include <algorithm>

#include "absl/strings/str_format.h"
#include "coordinator/repairs/hosted_left.h"
#include "coordinator/repairs/repair_coordinator.h"
#include "model/fault.h"

namespace ecpipe {
namespace {

// Of either kind: bounded, since it may be the wrong node that is taken to be the slow one.
constexpr int kMaxChangesForSpeed = 2;
// Helpers answer within milliseconds. Who asks has waited already.
constexpr Duration kAskTimeout = std::chrono::milliseconds(500);
// Each so many attempts of a hosted repair it is looked at less often.
constexpr uint32_t kAttemptsAtOnce = 4;
constexpr uint32_t kAttemptsLookedAt = 8;
// Of a hosted repair to which bytes come: its hosts alone tell whether they do.
constexpr Duration kAskAllEvery = std::chrono::seconds(1);

}  // namespace

PartAnswers RepairCoordinator::Ask(const RepairRecord& record,
                                   const std::vector<HelperAddress>& helpers) {
  PartAnswers answers;
  if (helpers.empty()) return answers;
  std::vector<absl::StatusOr<PartProgress>> given =
      helpers_->AskParts(record.repair_id, record.attempt, helpers, kAskTimeout);
  for (size_t i = 0; i < given.size(); ++i) {
    answers.emplace(helpers[i].node, std::move(given[i]));
  }
  return answers;
}

absl::StatusOr<Inspection> RepairCoordinator::InspectRepair(RepairId repair_id, uint32_t attempt,
                                                            uint64_t missing_bytes, bool quiet) {
  Running before;
  {
    MutexLock lock(&mutex_);
    const auto found = running_.find(repair_id);
    if (found == running_.end()) return absl::NotFoundError("this repair is not running");
    Running& running = found->second;
    if (running.record.attempt != attempt || running.handing_out) return Inspection{};
    before = running;
  }
  before.busy.reset();
  const Milestone now{.at = clock_->Now(), .missing_bytes = missing_bytes, .sent = {}};
  const PartAnswers answers = Ask(before.record, before.helpers);
  return Judge(std::move(before), answers, now, quiet);
}

Inspection RepairCoordinator::Judge(Running before, const PartAnswers& answers, Milestone now,
                                    bool quiet) {
  now.sent = SentBy(answers);
  const Suspects suspects = quiet ? WhoIsStuck(answers, before.quiet ? &*before.quiet : nullptr)
                                  : WhoIsTooSlow(answers, now, &before);
  LeftOut left_out = before.left_out;
  left_out.Suspect(suspects, HostsAtWork(before.record));
  const bool replan = !suspects.empty() && CanDoWithout(before, quiet, &left_out);
  MutexLock lock(&mutex_);
  const auto found = running_.find(before.record.repair_id);
  const bool runs =
      found != running_.end() && found->second.record.attempt == before.record.attempt;
  if (!runs) return Inspection{};
  Running& running = found->second;
  running.quiet.reset();
  if (quiet) running.quiet = answers;
  running.milestone = std::move(before.milestone);
  running.speed.best_pace = before.speed.best_pace;
  if (!replan) {
    // Nobody can be done without yet. What is seen again and again will weigh more.
    if (quiet && !LeavesOutAHelper(before, left_out)) running.left_out = std::move(left_out);
    return Inspection{};
  }
  running.speed = std::move(before.speed);
  Inspection inspection{.replan = true, .reason = ""};
  for (const auto& [node, reason] : left_out.reasons()) {
    if (running.left_out.Has(node)) continue;
    inspection.reason += (inspection.reason.empty() ? "node " : "; node ") + node + ": " + reason;
  }
  running.left_out = std::move(left_out);
  return inspection;
}

bool RepairCoordinator::IsTimeToLook(const Running& running, TimePoint now) {
  // Of an adopted repair nobody knows the helpers.
  if (running.record.hosts.empty() || running.helpers.empty()) return false;
  if (running.handing_out || running.advancing || running.to_go_on) return false;
  // Where all are too busy, more and more attempts make it no better. The last ones go on for as
  // long as the parts themselves have patience.
  if (running.record.attempt >= kAttemptsLookedAt) return false;
  const auto patience = kLookAtHostsEvery * (1 + running.record.attempt / kAttemptsAtOnce);
  return running.failure.ok() && now - running.host_looks.at >= patience;
}

std::vector<RepairId> RepairCoordinator::HostedToLookAt() {
  const TimePoint now = clock_->Now();
  std::vector<RepairId> due;
  MutexLock lock(&mutex_);
  for (const auto& [repair_id, running] : running_) {
    if (IsTimeToLook(running, now)) due.push_back(repair_id);
  }
  return due;
}

void RepairCoordinator::LookAtHosted(RepairId repair_id) {
  Milestone now{.at = clock_->Now(), .missing_bytes = 0, .sent = {}};
  Running before;
  {
    MutexLock lock(&mutex_);
    const auto found = running_.find(repair_id);
    if (found == running_.end() || !IsTimeToLook(found->second, now.at)) return;
    before = found->second;
  }
  before.busy.reset();  // the next attempt may begin meanwhile, and does not share nodes with it
  // Whose part has ended does no more for it, and no harm.
  std::erase_if(before.helpers, [&](const HelperAddress& helper) {
    return !before.unreported.contains(helper.node);
  });
  const Sides sides = SidesOf(before);
  if (sides.hosts.empty()) return;
  // In a recovery links look slow that other repairs of it share.
  const bool by_speed =
      before.record.recovery_id == 0 && now.at - before.host_looks.all_asked >= kAskAllEvery;
  PartAnswers answers = Ask(before.record, by_speed ? before.helpers : sides.hosts);
  const ComingToHosts coming = WhatComesToHosts(answers, sides.hosts);
  const bool quiet = coming.waiting && coming.bytes == before.host_looks.bytes;
  {
    MutexLock lock(&mutex_);
    const auto found = running_.find(repair_id);
    if (found == running_.end() || found->second.record.attempt != before.record.attempt) return;
    HostLooks& looks = found->second.host_looks;
    looks.at = clock_->Now();
    looks.bytes = coming.bytes;
    if (by_speed) looks.all_asked = now.at;
  }
  if (!coming.bytes || !(quiet || by_speed)) return;
  if (!by_speed) {
    now.at = clock_->Now();
    answers.merge(Ask(before.record, sides.others));
  }
  const uint32_t attempt = before.record.attempt;
  now.missing_bytes = coming.missing_bytes;
  const Inspection inspection = Judge(std::move(before), answers, now, quiet);
  if (!inspection.replan) return;
  FailAttempt(repair_id, attempt,
              WithFault(absl::UnavailableError(inspection.reason), kFaultUnknown));
}

Suspects RepairCoordinator::WhoIsTooSlow(const PartAnswers& answers, const Milestone& now,
                                         Running* running) {
  // What it costs to begin again: planning, handing out, and the path filling up.
  constexpr double kRestartSeconds = 0.3;
  constexpr double kWorthIt = 0.6;              // of the time that is left
  constexpr double kWorthGuessingSeconds = 10;  // that are left
  Suspects suspects;
  const Milestone begin{.at = running->attempt_began, .missing_bytes = running->attempt_bytes};
  const std::optional<Milestone> last = running->milestone;
  SpeedHistory& speed = running->speed;
  const auto look = [&](double best_pace) {
    return WhichIsSlow(now.sent, last ? &last->sent : nullptr,
                       Seconds(now.at - (last ? last->at : begin.at)), best_pace);
  };
  SlowLinks slow = look(speed.best_pace);
  if (slow.telling && AllTell(answers)) running->milestone = now;
  const bool guess = speed.best_pace == 0 || slow.ends.empty();
  if (guess && speed.best_pace > 0) slow = look(0);
  speed.best_pace = std::max(speed.best_pace, slow.pace);
  int& changes = guess ? speed.guessed_changes : speed.known_changes;
  if (slow.ends.empty() || changes >= kMaxChangesForSpeed) return suspects;
  // Large slices come seldom: if none did meanwhile, all that came counts.
  const Milestone& since = last && now.missing_bytes < last->missing_bytes ? *last : begin;
  if (now.missing_bytes >= since.missing_bytes) return suspects;
  const double rest = Seconds(now.at - since.at) * static_cast<double>(now.missing_bytes) /
                      static_cast<double>(since.missing_bytes - now.missing_bytes);
  const double rest_without = rest / slow.speedup + kRestartSeconds;
  if (rest_without > kWorthIt * rest || (guess && rest < kWorthGuessingSeconds)) return suspects;
  // The node that slow links have in common, now and when plans were changed before; of equals a
  // sender.
  for (const auto& [node, count] : slow.ends) speed.slow_ends[node] += count;
  std::string slowest = slow.sender;
  for (const auto& [node, count] : slow.ends) {
    if (speed.slow_ends[node] > speed.slow_ends[slowest]) slowest = node;
  }
  if (answers.contains(slowest)) {
    suspects[slowest] = {
        absl::StrFormat("its links are %.1f times slower than the others", slow.speedup),
        /*certain=*/false, /*other_end=*/"", /*slow=*/true};
    ++changes;
  }
  return suspects;
}

bool RepairCoordinator::CanDoWithout(const Running& running, bool quiet, LeftOut* left_out) {
  const absl::StatusOr<LostBlocks> lost = Locate(running.request);
  if (!lost.ok()) return false;
  if (quiet) {
    PlanAttempt(running.request, *lost, left_out).status().IgnoreError();
  } else {
    // For speed only those are taken back that were left out for speed: links that were slow for a
    // moment, or not the slow ones.
    while (!planner_.Plan(running.request, *lost, left_out->reasons()).ok()) {
      if (!left_out->ReadmitSlow()) return false;
    }
  }
  // Those that are at fault for certain are left out whether or not there are enough others.
  return LeavesOutAHelper(running, *left_out);
}

bool RepairCoordinator::LeavesOutAHelper(const Running& running, const LeftOut& left_out) {
  return std::any_of(running.helpers.begin(), running.helpers.end(),
                     [&](const HelperAddress& helper) { return left_out.Has(helper.node); });
}

}  // namespace ecpipe
