// SPDX-License-Identifier: Apache-2.0
// RepairTracker: whether an attempt that runs is worth going on with.
#include <algorithm>

#include "coordinator/repairs/hosted_left.h"
#include "coordinator/repairs/tracker.h"
#include "model/fault.h"

namespace ecpipe {
namespace {

// Each so many attempts of a hosted repair it is looked at less often.
constexpr uint32_t kAttemptsAtOnce = 4;
constexpr uint32_t kAttemptsLookedAt = 8;
// Of a hosted repair to which bytes come: its hosts alone tell whether they do.
constexpr Duration kAskAllEvery = std::chrono::seconds(1);

}  // namespace

void RepairTracker::Advise(Inspection inspection) {
  if (!hosted()) Emit(action::Advise{std::move(inspection)});
}

void RepairTracker::Hear(event::Inspect& inspect) {
  // A requestor that asks is there, though it may have paused until all parts gave it up.
  if (!hosted()) last_news_ = now_;
  ProgressCheck look;
  look.attempt = inspect.attempt;
  look.quiet = inspect.quiet;
  look.now = {.at = now_, .missing_bytes = inspect.missing_bytes, .sent = {}};
  if (hosted() || !IsOf(look)) return Emit(action::Advise{});
  Emit(
      action::AskParts{Question::kAnyProgress, inspect.attempt, attempt_.helpers, std::move(look)});
}

bool RepairTracker::IsTimeToLook(TimePoint now) const {
  const ForHosts* const hosted = hosts();
  // Of an adopted repair nobody knows the helpers.
  if (hosted == nullptr || attempt_.helpers.empty() || !Is<Running>() || hosted->moving) {
    return false;
  }
  // Where all are too busy, more and more attempts make it no better. The last ones go on for as
  // long as the parts themselves have patience.
  if (record_.attempt >= kAttemptsLookedAt) return false;
  const auto patience = kLookAtHostsEvery * (1 + record_.attempt / kAttemptsAtOnce);
  return hosted->failure.ok() && now - hosted->looked_at >= patience;
}

void RepairTracker::Hear(event::CheckProgress&) {
  if (!IsTimeToLook(now_)) return;
  // Whose part has ended does no more for it, and no harm.
  std::vector<HelperAddress> helpers = attempt_.helpers;
  std::erase_if(helpers, [&](const HelperAddress& helper) {
    return !attempt_.unreported.contains(helper.node);
  });
  Sides sides = SidesOf(helpers);
  if (sides.hosts.empty()) return;
  ProgressCheck look;
  look.attempt = record_.attempt;
  look.now.at = now_;
  // In a recovery links look slow that other repairs of it share.
  look.all_asked = record_.recovery_id == 0 && now_ - hosts()->all_looked_at >= kAskAllEvery;
  look.hosts = std::move(sides.hosts);
  look.others = std::move(sides.others);
  std::vector<HelperAddress> asked = look.all_asked ? std::move(helpers) : look.hosts;
  Emit(
      action::AskParts{Question::kAnyProgress, record_.attempt, std::move(asked), std::move(look)});
}

void RepairTracker::HearLook(ProgressCheck look, PartAnswers answers) {
  if (!IsOf(look)) return Advise({});
  ForHosts* const hosted = hosts();
  if (hosted == nullptr) return Judge(std::move(look), std::move(answers));
  if (!look.from_hosts.empty()) {
    answers.merge(look.from_hosts);
    return Judge(std::move(look), std::move(answers));
  }
  const ComingToHosts coming = WhatComesToHosts(answers, look.hosts);
  look.quiet = coming.waiting && coming.bytes == hosted->received_bytes;
  look.now.missing_bytes = coming.missing_bytes;
  hosted->looked_at = now_;
  hosted->received_bytes = coming.bytes;
  if (look.all_asked) hosted->all_looked_at = look.now.at;
  if (!coming.bytes) return;
  if (look.all_asked) return Judge(std::move(look), std::move(answers));
  if (!look.quiet) return;
  look.now.at = now_;
  look.from_hosts = std::move(answers);
  std::vector<HelperAddress> others = look.others;
  Emit(action::AskParts{Question::kAnyProgress, look.attempt, std::move(others), std::move(look)});
}

void RepairTracker::Judge(ProgressCheck look, PartAnswers answers) {
  look.now.sent = SentBy(answers);
  look.speed = speed_;
  const Suspects suspects =
      look.quiet ? WhoIsStuck(answers, attempt_.quiet ? &*attempt_.quiet : nullptr)
                 : look.speed.WhoIsTooSlow(answers, attempt_.begin, look.now, &attempt_.milestone);
  speed_.TakePace(look.speed);
  attempt_.quiet.reset();
  if (look.quiet) attempt_.quiet = std::move(answers);
  if (suspects.empty()) return Advise({});
  look.left_out = left_out_;
  look.left_out.Suspect(suspects, HostsAtWork());
  Emit(action::TryPlan{attempt_.request, std::move(look)});
}

bool RepairTracker::LeavesOutAHelper(const LeftOut& left_out) const {
  return std::any_of(attempt_.helpers.begin(), attempt_.helpers.end(),
                     [&](const HelperAddress& helper) { return left_out.Has(helper.node); });
}

void RepairTracker::Hear(event::Tried& tried) {
  ProgressCheck& look = tried.look;
  if (!IsOf(look)) return Advise({});
  if (!LeavesOutAHelper(look.left_out)) {
    // Nobody can be done without yet. What is seen again and again will weigh more.
    if (look.quiet) left_out_ = std::move(look.left_out);
    return Advise({});
  }
  if (!tried.possible) return Advise({});
  Inspection inspection{.replan = true, .reason = ""};
  for (const auto& [node, reason] : look.left_out.reasons()) {
    if (left_out_.Has(node)) continue;
    inspection.reason += (inspection.reason.empty() ? "node " : "; node ") + node + ": " + reason;
  }
  speed_ = std::move(look.speed);
  left_out_ = std::move(look.left_out);
  if (hosts() == nullptr) return Advise(std::move(inspection));
  FailAttempt(WithFault(absl::UnavailableError(inspection.reason), kFaultUnknown));
}

}  // namespace ecpipe
