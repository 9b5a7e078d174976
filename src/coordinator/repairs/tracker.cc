// SPDX-License-Identifier: Apache-2.0
// RepairTracker: what each event means; the other files have what follows from it.
#include "coordinator/repairs/tracker.h"

#include <algorithm>
#include <iterator>

#include "base/status.h"
#include "model/fault.h"

namespace ecpipe {

RepairTracker::RepairTracker(RepairRecord record, RepairRequest request, TimePoint now,
                             Duration abandon_after)
    : record_(std::move(record)),
      abandon_after_(abandon_after),
      phase_(Planning{}),
      last_news_(now) {
  if (!record_.hosts.empty()) kind_ = ForHosts{};
  record_.cause = request.cause;
  attempt_.request = std::move(request);
}

RepairTracker RepairTracker::Adopt(RepairRecord record, TimePoint now, Duration abandon_after) {
  RepairRequest request;
  request.background = record.recovery_id != 0;
  request.cause = record.cause;
  RepairTracker repair(std::move(record), request, now, abandon_after);
  repair.phase_ = Running{};
  repair.granted_ = true;
  repair.hosts()->may_go_on = false;  // nobody can say who failed
  repair.attempt_.unreported = repair.HostsAtWork();
  return repair;
}

RepairTracker RepairTracker::TakeUp(RepairRecord record, RepairRequest request, LeftOut left_out,
                                    TimePoint now, Duration abandon_after) {
  RepairTracker repair(std::move(record), std::move(request), now, abandon_after);
  repair.phase_ = SetAside{};
  repair.left_out_ = std::move(left_out);
  return repair;
}

Actions RepairTracker::On(Event event, TimePoint now) {
  now_ = now;
  if (ended()) {
    HearTooLate(event);
  } else {
    std::visit([this](auto& heard) { Hear(heard); }, event);
  }
  return std::exchange(out_, {});
}

RunningRepair RepairTracker::View() const {
  constexpr const char* kPhases[] = {"planning", "starting",  "running", "failed",
                                     "resuming", "set-aside", "ended"};
  static_assert(std::size(kPhases) == std::variant_size_v<decltype(phase_)>);
  return {.record = record_,
          .phase = kPhases[phase_.index()],
          .background = background(),
          .whole_bytes = attempt_.whole_bytes(),
          .missing_bytes = attempt_.missing_bytes,
          .heard_at = attempt_.heard_at,
          .begin_missing_bytes = attempt_.begin.missing_bytes,
          .begin_at = attempt_.begin.at,
          .helpers = attempt_.helpers,
          .receivers = attempt_.receivers};
}

void RepairTracker::Await(Action action) {
  awaiting_ = true;
  Emit(std::move(action));
}

void RepairTracker::HearTooLate(const Event& event) {
  const auto* const answered = std::get_if<event::Answered>(&event);
  if (std::holds_alternative<event::Resume>(event)) {
    return Emit(action::Refuse{absl::AbortedError("the repair has ended: " +
                                                  std::string(RepairStateName(record_.state)))});
  }
  const bool started = std::holds_alternative<event::Started>(event);
  const bool journaled = std::holds_alternative<event::Journaled>(event);
  const bool other = std::holds_alternative<event::Planned>(event) ||
                     (answered != nullptr && (answered->question == Question::kWhoFailed ||
                                              answered->question == Question::kWhatIsLeft));
  if (!started && !journaled && !other) return;
  awaiting_ = false;
  // The word to cancel may have come to a helper before its part, and the end to the journal before
  // the attempt.
  if (started) CancelParts();
  if (journaled) Emit(action::End{record_, /*again=*/true});
  // The grant of a hosted repair was its caller's answer; a requestor waits for each attempt.
  if (granted_ && hosted()) return;
  Emit(action::Refuse{absl::CancelledError("the repair was cancelled")});
}

void RepairTracker::Hear(event::Journaled& journaled) {
  if (hosts() != nullptr && hosts()->moving) return AdvanceAfter(journaled.status);
  awaiting_ = false;
  HandingOut& handing_out = PhaseAs<HandingOut>();
  // Of a requestor's repair it is history: a coordinator that does not find it after a restart
  // takes the repair up all the same, by what the requestor says.
  if (!journaled.status.ok() && hosted()) {
    return EndFailed(absl::Status(
        journaled.status.code(),
        "no block is stored, for the journal did not take the repair: " +
            std::string(journaled.status.message()) +
            "; see to the disk of [coordinator] data_directory, then ask again"));
  }
  const auto patience = PatienceWithOne(handing_out);
  Await(action::StartParts{std::exchange(handing_out.plan.handouts, {}), patience});
}

void RepairTracker::Hear(event::Reported& reported) {
  if (reported.attempt != record_.attempt) return;
  const bool first = attempt_.unreported.erase(reported.node) == 1;
  last_news_ = now_;
  ForHosts* const hosted = hosts();
  if (hosted == nullptr) return;
  const std::optional<Row> row = RowToStore(reported.node);
  // Whose receiver has gone can only say so. Why it went others know, and will say.
  const bool knows_why = row || !FaultOf(reported.status).empty();
  absl::Status& failure = knows_why ? hosted->failure : hosted->consequence;
  if (failure.ok()) {
    failure = Annotate(FromPeer(reported.status, reported.node), "node " + reported.node);
  }
  if (first && reported.status.ok()) {
    if (row) {
      hosted->to_move.insert(*row);
    } else {
      Emit(action::TellPartEnd{{record_.recovery_id, record_.block_ids[0], reported.node}});
    }
  }
  Advance();
}

void RepairTracker::Hear(event::Answered& answered) {
  switch (answered.question) {
    case Question::kAnyProgress:
      return HearCheck(std::move(answered.check), std::move(answered.answers));
    case Question::kStillThere:
      if (Is<Running>() && answered.attempt == record_.attempt) HearSilentHosts(answered.answers);
      return;
    case Question::kWhoFailed:
    case Question::kWhatIsLeft:
      break;
  }
  awaiting_ = false;
  auto& resuming = PhaseAs<Resuming>();
  if (answered.question == Question::kWhatIsLeft) return ContinueFrom(answered.answers);
  resuming.suspects = WhoFailed(answered.answers, resuming.failure, attempt_.receivers);
  if (!hosted()) {
    return PlanNextAttempt(std::move(resuming.request), resuming.suspects, resuming.failure);
  }
  const Sides sides = SidesOf(attempt_.helpers);
  Emit(action::EndParts{record_.attempt, sides.hosts});
  Await(action::AskParts{Question::kWhatIsLeft, record_.attempt, sides.hosts, {}});
}

void RepairTracker::Hear(event::Finish& finish) {
  const RepairVerdict& verdict = finish.verdict;
  if (!hosted()) return EndForRequestor(verdict);
  if (record_.recovery_id == 0 && absl::IsCancelled(verdict.status)) EndHosted(verdict.status);
}

void RepairTracker::Hear(event::CancelHosted& cancel) {
  if (hosted()) EndHosted(cancel.status);
}

void RepairTracker::Hear(event::Tick& tick) {
  if (hosted()) {
    EndIfHopeless(*tick.nodes);
  } else {
    EndIfAbandoned(*tick.nodes);
  }
}

std::string RepairTracker::GoneBecause(const std::string& node, const NodeLives& nodes) const {
  const auto life = nodes.find(node);
  if (life == nodes.end()) return "is not registered";
  if (life->second.dead) return "died";
  // A helper that starts again knows nothing of the parts that it ran.
  const auto then = attempt_.incarnations.find(node);
  const bool same = then == attempt_.incarnations.end() || then->second == life->second.incarnation;
  return same ? "" : "restarted";
}

std::map<std::string, uint64_t> RepairTracker::Streams() const {
  std::map<std::string, uint64_t> streams;
  if (ended()) return streams;
  for (const auto& [sender, receivers] : attempt_.receivers) {
    if (attempt_.unreported.contains(sender)) streams[sender] = receivers.size();
  }
  return streams;
}

std::string RepairTracker::NoteCorrupt(const std::string& block_id, const std::string& node) {
  const auto place = std::find_if(places_.rbegin(), places_.rend(), [&](const BlockPlace& known) {
    return known.block_id == block_id && (node.empty() || known.node == node);
  });
  if (place == places_.rend()) return "";
  if (!node.empty()) found_corrupt_.insert({block_id, node});
  return place->node;
}

bool RepairTracker::FoundCorrupt(const std::string& block_id, const std::string& node) const {
  return found_corrupt_.contains({block_id, node});
}

}  // namespace ecpipe
