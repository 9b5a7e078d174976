// SPDX-License-Identifier: Apache-2.0
// RepairTracker, its attempts: planned, handed out, and planned again without those at fault.
#include <algorithm>

#include "base/status.h"
#include "coordinator/repairs/tracker.h"
#include "model/fault.h"

namespace ecpipe {
namespace {

// Handouts of a call that fail without news. One that finds a node that must be left out is news,
// and there are but as many as the stripe has nodes: of a wide code many may be dead, or have lost
// their blocks, before anybody knows, and yet k survive.
constexpr uint32_t kMaxHandouts = 5;

// A longer range takes so long that it is not worth while to begin again for a late helper.
constexpr uint64_t kSmallReadBytes = 1 << 20;
// A helper takes a part, or tells of it, within a millisecond or two. Beginning again costs less.
constexpr Duration kStragglerAfter = std::chrono::milliseconds(20);
// Later ones wait for answers: where several helpers in turn are late, the cluster is busy.
constexpr uint32_t kImpatientAttempts = 3;

}  // namespace

absl::Status WaitsForHelpers(const absl::Status& why) {
  return absl::UnavailableError(
      "the coordinator has just started and waits for helpers to register: " +
      std::string(why.message()));
}

void RepairTracker::PlanAttempts(uint32_t first, RepairRequest request, const absl::Status& after) {
  Plan({std::move(request), first, kMaxHandouts}, after);
}

void RepairTracker::Plan(Planning planning, const absl::Status& after) {
  planning.request.seen = seen_;
  Await(action::Plan{planning.attempt, planning.request, left_out_, after});
  phase_ = std::move(planning);
}

void RepairTracker::Hear(event::Begin&) { PlanAttempts(0, attempt_.request, absl::OkStatus()); }

void RepairTracker::Hear(event::Planned& planned) {
  awaiting_ = false;
  auto planning = std::move(PhaseAs<Planning>());
  if (!planned.plan.ok()) {
    return GiveUp(planned.plan.status(), planned.gathered, planning.request);
  }
  record_.attempt = planning.attempt;
  BeginAttempt(*planned.plan, std::move(planning.request));
  phase_ = HandingOut{*std::move(planned.plan), planning.handouts_left, std::move(planned.left_out),
                      planned.gathered};
  Await(action::Journal{record_});
}

void RepairTracker::BeginAttempt(const PlannedAttempt& plan, RepairRequest request) {
  const PlannedRepair& planned = plan.planned;
  record_.offset = planned.offset;
  record_.bytes = planned.bytes;
  record_.scheme = planned.plan.scheme;
  if (request.facts) {
    places_.insert(places_.end(), planned.stripe.blocks.begin(), planned.stripe.blocks.end());
  }
  attempt_ = {.incarnations = plan.incarnations, .grid = planned.plan.grid};
  for (const HelperGateway::Handout& handout : plan.handouts) {
    attempt_.helpers.push_back(handout.helper);
    attempt_.unreported.insert(handout.helper.node);
    for (const HopSpec& hop : handout.part.hops) {
      for (const HopOutput& output : hop.outputs) {
        attempt_.receivers[handout.helper.node].push_back(output.node);
      }
    }
  }
  attempt_.sub_blocks = planned.plan.layout.sub_blocks;
  attempt_.begin.missing_bytes =
      request.left ? request.left->bytes() * attempt_.sub_blocks : attempt_.whole_bytes();
  attempt_.missing_bytes = attempt_.begin.missing_bytes;
  least_left_ = std::min(least_left_, attempt_.begin.missing_bytes);
  least_heard_ = std::min(least_heard_, attempt_.begin.missing_bytes);
  attempt_.small_read = IsSmallRead(planned, request);
  attempt_.request = std::move(request);
  attempt_.lanes = LanesToWatch(planned.plan, planned.cost.seconds);
  last_news_ = now_;
  if (ForHosts* const hosted = hosts()) {
    hosted->to_move.clear();
    hosted->failure = absl::OkStatus();
    hosted->consequence = absl::OkStatus();
  }
}

bool RepairTracker::IsSmallRead(const PlannedRepair& planned, const RepairRequest& request) const {
  const auto longest = std::max_element(planned.block_lengths.begin(), planned.block_lengths.end());
  return longest != planned.block_lengths.end() && planned.bytes < *longest &&
         planned.bytes <= kSmallReadBytes && !hosted() && !request.background &&
         request.transport == TransportKind::kTcp;
}

std::optional<Duration> RepairTracker::PatienceWithOne(const HandingOut& handing_out) const {
  const bool next = handing_out.handouts_left > 1;
  // One is enough: each costs a handout, and refusals need the others.
  const bool may_lack_one =
      attempt_.small_read && next && !had_late_ && attempt_.helpers.size() > 1;
  return may_lack_one ? std::optional(kStragglerAfter) : std::nullopt;
}

std::optional<Duration> RepairTracker::PatienceWithAnAnswer() const {
  const bool may_lack_one = attempt_.small_read && record_.attempt < kImpatientAttempts;
  return may_lack_one ? std::optional(kStragglerAfter) : std::nullopt;
}

bool RepairTracker::HearRefused(const std::map<std::string, absl::Status>& refused) {
  bool news = false;
  for (const auto& [node, status] : refused) {
    const std::string reason(status.message());
    const bool late = absl::IsDeadlineExceeded(status);
    const auto life = attempt_.incarnations.find(node);
    if (absl::IsResourceExhausted(status)) {
      news |= left_out_.RefuseAtLimit(node, reason);
    } else if ((late || absl::IsUnavailable(status)) && life != attempt_.incarnations.end()) {
      news |= left_out_.RefuseWhileAway(node, reason, {life->second, late});
    } else {
      news |= left_out_.Refuse(node, reason);
    }
  }
  return news;
}

// It is not known to be at fault: it helps again where there are too few others. It may have its
// part by now, or get it, and nobody waits for its answer.
void RepairTracker::HearLate(const std::set<std::string>& late) {
  if (late.empty()) return;
  Suspects suspects;
  for (const std::string& node : late) {
    suspects[node] = {"it took its part of a small read much later than the other helpers",
                      /*certain=*/false, /*other_end=*/""};
  }
  left_out_.Suspect(suspects);
  had_late_ = true;
  const auto first_late = std::stable_partition(
      attempt_.helpers.begin(), attempt_.helpers.end(),
      [&](const HelperAddress& helper) { return !late.contains(helper.node); });
  Emit(action::CancelLater{record_.attempt, {first_late, attempt_.helpers.end()}});
  attempt_.helpers.erase(first_late, attempt_.helpers.end());
}

void RepairTracker::Hear(event::Started& started) {
  awaiting_ = false;
  auto handed = std::move(PhaseAs<HandingOut>());
  if (!started.failure.ok() && !AllAreStored()) {
    const bool news = HearRefused(started.refused);
    HearLate(started.late);
    if (hosted()) {
      Emit(action::EndParts{record_.attempt, attempt_.helpers});
    } else {
      CancelParts();
    }
    const uint32_t next = record_.attempt + 1;
    const uint32_t left = handed.handouts_left - (news ? 0u : 1u);
    if (left > 0 && next < kMaxAttempts) {
      return Plan({attempt_.request, next, left}, absl::OkStatus());
    }
    return GiveUp(started.failure, handed.gathered, attempt_.request);
  }
  phase_ = Running{};
  granted_ = true;
  left_out_ = std::move(handed.tried);
  attempt_.begin.at = now_;
  attempt_.heard_at = now_;
  if (ForHosts* const hosted = hosts()) {
    hosted->checked_at = now_;
    hosted->all_checked_at = now_;
    hosted->received_bytes.reset();
  }
  PlannedRepair& planned = handed.plan.planned;
  Emit(action::Grant{record_.attempt, attempt_.request, record_.bytes,
                     RepairGrant{.repair_id = record_.repair_id,
                                 .part = std::move(handed.plan.requestor_part),
                                 .scheme = std::move(planned.plan.scheme),
                                 .stripe_id = std::move(planned.stripe.stripe_id),
                                 .stripe_digest = std::move(handed.plan.stripe_digest),
                                 .block_lengths = std::move(planned.block_lengths),
                                 .cost = std::move(planned.cost),
                                 .checksum = started.checksum}});
  Advance();
}

void RepairTracker::GiveUp(const absl::Status& status, bool gathered,
                           const RepairRequest& request) {
  const bool resumed = request.left && !hosted();
  if (!resumed || gathered || !absl::IsFailedPrecondition(status)) return EndFailed(status);
  // Helpers that have not registered yet may help when the requestor asks again.
  attempt_.helpers.clear();
  attempt_.receivers.clear();
  attempt_.unreported.clear();
  last_news_ = now_;
  phase_ = SetAside{};
  Emit(action::Refuse{WaitsForHelpers(status)});
}

void RepairTracker::Hear(event::Resume& resume) {
  if (record_.block_ids != resume.request.block_ids || hosted()) {
    return Emit(
        action::Refuse{absl::InvalidArgumentError("the repair to resume is for other blocks")});
  }
  if (!Is<Running>() && !Is<SetAside>()) {
    return Emit(action::Refuse{
        absl::AbortedError("another attempt of the repair is being handed out already")});
  }
  if (!attempt_.helpers.empty()) Emit(action::CancelLater{record_.attempt, attempt_.helpers});
  // One that is set aside has been counted, and its requestor may have to ask often.
  if (Is<Running>()) CountFailed(*resume.request.left);
  const uint32_t asked = record_.attempt;
  record_.attempt = std::max(record_.attempt, resume.from.attempt);
  phase_ = Resuming{std::move(resume.request), resume.from.failure, {}};
  // Whoever is left out by now may be one who does not answer.
  std::vector<HelperAddress> helpers = attempt_.helpers;
  std::erase_if(helpers, [&](const HelperAddress& helper) { return left_out_.Has(helper.node); });
  Await(action::AskParts{Question::kWhoFailed, asked, std::move(helpers), {}});
}

void RepairTracker::CountFailed(const SlicesLeft& missing) {
  ++failed_attempts_;
  const uint64_t left = missing.bytes() * attempt_.sub_blocks;
  bound_.Failed(left < least_left_ || attempt_.missing_bytes < least_heard_);
  least_heard_ = std::min(least_heard_, attempt_.missing_bytes);
}

void RepairTracker::PlanNextAttempt(RepairRequest request, const Suspects& suspects,
                                    const absl::Status& failure) {
  // Without its hosts there is no repair; whether they can go on has been asked.
  left_out_.Suspect(suspects, HostsAtWork(), attempt_.incarnations);
  const uint32_t next = record_.attempt + 1;
  if (bound_.reached()) return EndFailed(bound_.GivenUp(failure));
  if (next < kMaxAttempts) return PlanAttempts(next, std::move(request), failure);
  EndFailed(
      absl::AbortedError("given up after " + std::to_string(next) +
                         " attempts; the last one failed: " + std::string(failure.message())));
}

void RepairTracker::EndFailed(const absl::Status& status) {
  // Whoever ordered it has left with the grant, and is told.
  if (granted_ && hosted()) return EndHosted(status);
  if (hosted()) CancelParts();  // which may keep what they have for another attempt
  End(StateAfter(status), StatusText(status));
  Emit(action::Refuse{status});
}

void RepairTracker::EndForRequestor(const RepairVerdict& verdict) {
  const absl::Status& status = verdict.status;
  if (!status.ok()) CancelParts();
  DoubtSurvivors(status);
  record_.first_byte_seconds = verdict.first_byte_seconds;
  const bool whole =
      status.ok() && verdict.verified_bytes == record_.bytes * record_.block_ids.size();
  const std::string why =
      status.ok() ? "the requestor verified only part of the bytes" : StatusText(status);
  End(status.ok() && !whole ? RepairState::kFailed : StateAfter(status), whole ? "" : why);
}

void RepairTracker::DoubtSurvivors(const absl::Status& status) {
  if (!absl::IsDataLoss(status) || !FaultOf(status).empty()) return;
  if (LeavesOutAHelper(left_out_)) return;
  action::Doubt doubt{record_.block_ids, {}, std::string(status.message())};
  for (const HelperAddress& helper : attempt_.helpers) {
    if (!RowToStore(helper.node)) doubt.nodes.insert(helper.node);
  }
  if (!doubt.nodes.empty()) Emit(std::move(doubt));
}

void RepairTracker::EndIfAbandoned(const NodeLives& nodes) {
  if (!Is<Running>() && !Is<SetAside>()) return;
  std::erase_if(attempt_.unreported,
                [&](const std::string& node) { return !GoneBecause(node, nodes).empty(); });
  if (!attempt_.unreported.empty() || now_ - last_news_ <= abandon_after_) return;
  End(RepairState::kFailed, "the requestor fell silent and never reported how the repair ended");
}

void RepairTracker::End(RepairState state, const std::string& detail) {
  record_.state = state;
  record_.detail = detail;
  phase_ = Ended{};
  Emit(action::End{record_});
}

}  // namespace ecpipe
