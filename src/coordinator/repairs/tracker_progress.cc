// SPDX-License-Identifier: Apache-2.0
// RepairTracker: whether an attempt that runs is worth going on with.
#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "coordinator/repairs/hosted_left.h"
#include "coordinator/repairs/tracker.h"
#include "model/fault.h"

namespace ecpipe {
namespace {

// After each so many attempts that failed the progress of a hosted repair is checked less often.
constexpr uint32_t kAttemptsAtOnce = 4;
constexpr uint32_t kAttemptsChecked = 8;
// Of a hosted repair to which bytes come: its hosts alone tell whether they do.
constexpr Duration kAskAllEvery = std::chrono::seconds(1);

// What has not moved for so long is stuck. The first checks of a small read follow each other
// faster; they find out who does not answer.
Duration StuckAfter(const SliceGrid& grid, uint32_t sub_blocks) {
  constexpr Duration kLeast = std::chrono::milliseconds(200);
  // Before a node passes on a byte it may have to read and sum a whole slice, and a redis-server to
  // store one: that took redis a second for 64 MiB.
  constexpr double kBytesPerSecond = 30e6;
  const double slice_bytes = static_cast<double>(uint64_t{sub_blocks} * grid.SliceBytes(0));
  return std::max(kLeast, FromSeconds(slice_bytes / kBytesPerSecond));
}

std::vector<StreamPassed> PassedSince(const Sent& before, const Sent& now) {
  std::vector<StreamPassed> streams;
  for (const auto& [stream, sent] : now) {
    const auto& [from, lane, hop, to] = stream;
    const auto found = before.find(stream);
    const Passed earlier = found == before.end() ? Passed{} : found->second;
    streams.push_back({.lane = lane,
                       .from = from,
                       .to = to,
                       .bytes = sent.bytes,
                       .since_look = sent.bytes - std::min(sent.bytes, earlier.bytes),
                       .held_seconds = sent.network_seconds - earlier.network_seconds});
  }
  return streams;
}

// The only one that has not answered in time; empty if there is none, or if there are several.
std::string LateOne(const PartAnswers& answers) {
  std::string late;
  for (const auto& [node, answer] : answers) {
    if (!absl::IsDeadlineExceeded(answer.status())) continue;
    if (!late.empty()) return "";
    late = node;
  }
  return late;
}

std::string InWords(const SeenLinks& seen) {
  std::vector<std::string> links;
  const auto add = [&](const std::string& link, double rate) {
    links.push_back(absl::StrFormat("%s passes %.1f Mb/s", link, rate * 8 / 1e6));
  };
  for (const auto& [node, rate] : seen.up) add("what " + node + " sends", rate);
  for (const auto& [node, rate] : seen.down) add("what " + node + " receives", rate);
  for (const auto& [ends, rate] : seen.pairs) add(ends.first + " to " + ends.second, rate);
  constexpr size_t kMostNamed = 5;
  const size_t more = links.size() - std::min(links.size(), kMostNamed);
  links.resize(links.size() - more);
  return absl::StrJoin(links, ", ") + (more > 0 ? absl::StrFormat(" and %d more", more) : "");
}

}  // namespace

void RepairTracker::Advise(ProgressAdvice advice) {
  if (!hosted()) Emit(action::Advise{std::move(advice)});
}

void RepairTracker::NoteMissing(uint64_t bytes) {
  attempt_.heard_at = now_;
  attempt_.missing_bytes = std::min(bytes, attempt_.whole_bytes());
}

void RepairTracker::Hear(event::CheckProgress& asked) {
  // A requestor that asks is there, though it may have paused until all parts gave it up.
  if (!hosted()) last_news_ = now_;
  ProgressCheck check;
  check.attempt = asked.attempt;
  check.quiet = asked.quiet;
  check.now = {.at = now_, .missing_bytes = asked.missing_bytes, .sent = {}};
  if (hosted() || !IsOf(check)) return Emit(action::Advise{});
  NoteMissing(asked.missing_bytes);
  Emit(action::AskParts{Question::kAnyProgress, asked.attempt, attempt_.helpers, std::move(check),
                        asked.quiet ? PatienceWithAnAnswer() : std::nullopt});
}

bool RepairTracker::IsCheckDue(TimePoint now) const {
  const ForHosts* const hosted = hosts();
  // Of an adopted repair nobody knows the helpers.
  if (hosted == nullptr || attempt_.helpers.empty() || !Is<Running>() || hosted->moving) {
    return false;
  }
  // Where all are too busy, more and more attempts make it no better. The last ones go on for as
  // long as the parts themselves have patience.
  if (failed_attempts_ >= kAttemptsChecked) return false;
  const auto patience = kCheckHostsEvery * (1 + failed_attempts_ / kAttemptsAtOnce);
  return hosted->failure.ok() && now - hosted->checked_at >= patience;
}

void RepairTracker::Hear(event::CheckHostedProgress&) {
  if (!IsCheckDue(now_)) return;
  // Whose part has ended does no more for it, and no harm.
  std::vector<HelperAddress> helpers = attempt_.helpers;
  std::erase_if(helpers, [&](const HelperAddress& helper) {
    return !attempt_.unreported.contains(helper.node);
  });
  Sides sides = SidesOf(helpers);
  if (sides.hosts.empty()) return;
  ProgressCheck check;
  check.attempt = record_.attempt;
  check.now.at = now_;
  // In a recovery links look slow that other repairs of it share.
  check.all_asked = record_.recovery_id == 0 && now_ - hosts()->all_checked_at >= kAskAllEvery;
  check.hosts = std::move(sides.hosts);
  check.others = std::move(sides.others);
  std::vector<HelperAddress> asked = check.all_asked ? std::move(helpers) : check.hosts;
  Emit(action::AskParts{Question::kAnyProgress, record_.attempt, std::move(asked),
                        std::move(check)});
}

void RepairTracker::HearCheck(ProgressCheck check, PartAnswers answers) {
  if (!IsOf(check)) return Advise({});
  ForHosts* const hosted = hosts();
  if (hosted == nullptr && check.quiet && PatienceWithAnAnswer()) {
    return LookAgain(std::move(check), std::move(answers));
  }
  if (hosted == nullptr) return FindSuspects(std::move(check), std::move(answers));
  if (!check.from_hosts.empty()) {
    answers.merge(check.from_hosts);
    return FindSuspects(std::move(check), std::move(answers));
  }
  const ComingToHosts coming = WhatComesToHosts(answers, check.hosts);
  check.quiet = coming.waiting && coming.bytes == hosted->received_bytes;
  check.now.missing_bytes = coming.missing_bytes;
  hosted->checked_at = now_;
  hosted->received_bytes = coming.bytes;
  if (check.all_asked) hosted->all_checked_at = check.now.at;
  if (!coming.bytes) return;
  NoteMissing(coming.missing_bytes);
  if (check.all_asked) return FindSuspects(std::move(check), std::move(answers));
  if (!check.quiet) return;
  check.from_hosts = std::move(answers);
  std::vector<HelperAddress> others = check.others;
  Emit(
      action::AskParts{Question::kAnyProgress, check.attempt, std::move(others), std::move(check)});
}

// Its answer may be behind its own bytes on a slow link. Then these go on while it is waited for.
void RepairTracker::LookAgain(ProgressCheck check, PartAnswers answers) {
  const bool again = !check.first_look.empty();
  const std::string late = LateOne(again ? check.first_look : answers);
  if (late.empty()) return FindSuspects(std::move(check), std::move(answers));
  if (again) {
    const bool moves = BytesFrom(late, answers) != BytesFrom(late, check.first_look);
    // Several that are late are waited for: the cluster is busy.
    if (moves || !LateOne(answers).empty()) return Advise({});
    answers.emplace(late, check.first_look.at(late));
    return FindSuspects(std::move(check), std::move(answers));
  }
  check.first_look = std::move(answers);
  std::vector<HelperAddress> others = attempt_.helpers;
  std::erase_if(others, [&](const HelperAddress& helper) { return helper.node == late; });
  Emit(action::AskParts{Question::kAnyProgress, check.attempt, std::move(others), std::move(check),
                        PatienceWithAnAnswer()});
}

void RepairTracker::FindSuspects(ProgressCheck check, PartAnswers answers) {
  check.now.sent = SentBy(answers);
  if (!check.quiet && !attempt_.lanes.lanes.empty()) {
    return LookForSlowerLinks(std::move(check), answers);
  }
  check.speed = speed_;
  const bool second =
      attempt_.quiet && now_ - attempt_.quiet_at >= StuckAfter(attempt_.grid, attempt_.sub_blocks);
  const Suspects suspects = check.quiet ? WhoIsStuck(answers, second ? &*attempt_.quiet : nullptr)
                                        : check.speed.WhoIsTooSlow(answers, attempt_.begin,
                                                                   check.now, &attempt_.milestone);
  speed_.TakePace(check.speed);
  if (!check.quiet) {
    attempt_.quiet.reset();
  } else if (!attempt_.quiet || second) {
    attempt_.quiet = std::move(answers);
    attempt_.quiet_at = now_;
  }
  if (suspects.empty()) return Advise({});
  check.left_out = left_out_;
  check.left_out.Suspect(suspects, HostsAtWork(), attempt_.incarnations);
  Emit(action::TryPlan{attempt_.request, std::move(check)});
}

void RepairTracker::LookForSlowerLinks(ProgressCheck check, const PartAnswers& answers) {
  attempt_.quiet.reset();
  const bool all_tell = AllTell(answers);
  const std::optional<Milestone> last = attempt_.milestone;
  if (all_tell) attempt_.milestone = check.now;
  if (!all_tell) return Advise({});
  const Milestone& since = last ? *last : attempt_.begin;
  LaneLook look = LookAtLanes(attempt_.lanes, PassedSince(since.sent, check.now.sent),
                              Seconds(check.now.at - since.at));
  if (look.slower.empty()) return Advise({});
  check.seconds_left = look.seconds_left;
  check.seen = seen_;
  check.seen.Add(look.slower);
  check.left_out = left_out_;
  RepairRequest request = attempt_.request;
  request.seen = check.seen;
  Emit(action::TryPlan{std::move(request), std::move(check)});
}

void RepairTracker::HearTriedAnew(event::Tried& tried) {
  const ProgressCheck& check = tried.check;
  if (!tried.possible || attempt_.begin.missing_bytes == 0) return Advise({});
  // The plan is for all that was missing when the attempt began.
  const double seconds = tried.seconds * static_cast<double>(check.now.missing_bytes) /
                         static_cast<double>(attempt_.begin.missing_bytes);
  if (!speed_.IsWorthPlanningAnew(check.now.at, check.seconds_left, seconds)) return Advise({});
  seen_ = check.seen;
  GiveWay(absl::StrFormat("%s; the rest would take %.1f s, and %.1f s if divided anew",
                          InWords(seen_), check.seconds_left, seconds));
}

bool RepairTracker::LeavesOutAHelper(const LeftOut& left_out) const {
  return std::any_of(attempt_.helpers.begin(), attempt_.helpers.end(),
                     [&](const HelperAddress& helper) { return left_out.Has(helper.node); });
}

void RepairTracker::Hear(event::Tried& tried) {
  ProgressCheck& check = tried.check;
  if (!IsOf(check)) return Advise({});
  if (!check.seen.empty()) return HearTriedAnew(tried);
  if (!LeavesOutAHelper(check.left_out)) {
    // Nobody can be done without yet. What is seen again and again will weigh more.
    if (check.quiet) left_out_ = std::move(check.left_out);
    return Advise({});
  }
  if (!tried.possible) return Advise({});
  std::string reasons;
  for (const auto& [node, reason] : check.left_out.reasons()) {
    if (left_out_.Has(node)) continue;
    reasons += (reasons.empty() ? "node " : "; node ") + node + ": " + reason;
  }
  speed_ = std::move(check.speed);
  left_out_ = std::move(check.left_out);
  GiveWay(std::move(reasons));
}

void RepairTracker::GiveWay(std::string reason) {
  if (hosts() == nullptr) return Advise({.replan = true, .reason = std::move(reason)});
  FailAttempt(WithFault(absl::UnavailableError(reason), kFaultUnknown));
}

}  // namespace ecpipe
