// SPDX-License-Identifier: Apache-2.0
// RepairCoordinator: whether an attempt that runs is worth going on with.
#include <algorithm>

#include "coordinator/repair_coordinator.h"

namespace ecpipe {
namespace {

// For which it is worth to change the plan because a link is slow: bounded, since it may be the
// wrong node that is taken to be the slow one.
constexpr int kMaxChangesForSpeed = 2;
// Helpers answer within milliseconds. Who asks has waited already.
constexpr Duration kAskTimeout = std::chrono::milliseconds(500);

}  // namespace

PartAnswers RepairCoordinator::Ask(const Running& running) {
  PartAnswers answers;
  if (running.helpers.empty()) return answers;
  std::vector<absl::StatusOr<PartProgress>> given = helpers_->AskParts(
      running.record.repair_id, running.record.attempt, running.helpers, kAskTimeout);
  for (size_t i = 0; i < given.size(); ++i) {
    answers.emplace(running.helpers[i].node, std::move(given[i]));
  }
  return answers;
}

absl::StatusOr<Inspection> RepairCoordinator::InspectRepair(RepairId repair_id, uint32_t attempt,
                                                            uint64_t missing_bytes, bool quiet) {
  Running before;
  {
    MutexLock lock(&mutex_);
    const auto found = running_.find(repair_id);
    if (found == running_.end()) return absl::NotFoundError("no such repair runs");
    Running& running = found->second;
    if (running.record.attempt != attempt || running.handing_out) return Inspection{};
    before = running;
  }
  Look look{.at = {}, .missing_bytes = missing_bytes, .quiet = quiet, .answers = Ask(before)};
  look.at = clock_->Now();
  const std::optional<Look>& last = before.last_look;
  const Suspects suspects =
      quiet ? WhoIsStuck(look.answers, last && last->quiet ? &last->answers : nullptr)
            : WhoIsTooSlow(look, &before);
  LeftOut left_out = before.left_out;
  left_out.Suspect(suspects, HostsAtWork(before.record));
  const bool replan = !suspects.empty() && CanDoWithout(before, quiet, &left_out);
  MutexLock lock(&mutex_);
  const auto found = running_.find(repair_id);
  if (found == running_.end() || found->second.record.attempt != attempt) return Inspection{};
  Running& running = found->second;
  running.last_look = std::move(look);
  running.slow_ends = before.slow_ends;
  if (!replan) return Inspection{};
  if (!quiet) ++running.changes_for_speed;
  Inspection inspection{.replan = true, .reason = ""};
  for (const auto& [node, reason] : left_out.reasons()) {
    if (running.left_out.Has(node)) continue;
    inspection.reason += (inspection.reason.empty() ? "node " : "; node ") + node + ": " + reason;
  }
  running.left_out = std::move(left_out);
  return inspection;
}

Suspects RepairCoordinator::WhoIsTooSlow(const Look& look, Running* running) {
  // What it costs to begin again: planning, handing out, and the path filling up.
  constexpr double kRestartSeconds = 0.3;
  constexpr double kWorthIt = 0.6;  // of the time that is left
  Suspects suspects;
  const Look begin{.at = running->attempt_began, .missing_bytes = running->attempt_bytes};
  const std::optional<Look>& last = running->last_look;
  const SlowLinks slow = WhichIsSlow(look.answers, last ? &last->answers : nullptr,
                                     Seconds(look.at - (last ? last->at : begin.at)));
  if (slow.ends.empty() || running->changes_for_speed >= kMaxChangesForSpeed) return suspects;
  // Large slices come seldom: if none did since the last look, all that came counts.
  const Look& since = last && look.missing_bytes < last->missing_bytes ? *last : begin;
  if (look.missing_bytes >= since.missing_bytes) return suspects;
  const double rest = Seconds(look.at - since.at) * static_cast<double>(look.missing_bytes) /
                      static_cast<double>(since.missing_bytes - look.missing_bytes);
  const double rest_without = rest / slow.speedup + kRestartSeconds;
  if (rest_without > kWorthIt * rest) return suspects;
  // The node that slow links have in common, in this attempt and those before; of equals a sender.
  for (const auto& [node, count] : slow.ends) running->slow_ends[node] += count;
  std::string slowest = slow.sender;
  for (const auto& [node, count] : slow.ends) {
    if (running->slow_ends[node] > running->slow_ends[slowest]) slowest = node;
  }
  if (look.answers.contains(slowest)) {
    suspects[slowest] = {"its links are slow: " + std::to_string(slow.speedup).substr(0, 4) +
                             " times slower than the others",
                         /*certain=*/false, /*other_end=*/""};
  }
  return suspects;
}

bool RepairCoordinator::CanDoWithout(const Running& running, bool quiet, LeftOut* left_out) {
  const absl::StatusOr<LostBlocks> lost = Locate(running.request);
  if (!lost.ok()) return false;
  if (quiet) {
    PlanAttempt(running.request, *lost, left_out).status().IgnoreError();
  } else if (!planner_.Plan(running.request, *lost, left_out->reasons()).ok()) {
    return false;  // for speed nobody is taken back who may be at fault
  }
  // Those that are at fault for certain are left out whether or not there are enough others.
  return std::any_of(running.helpers.begin(), running.helpers.end(),
                     [&](const HelperAddress& helper) { return left_out->Has(helper.node); });
}

}  // namespace ecpipe
