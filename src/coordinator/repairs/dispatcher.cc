// SPDX-License-Identifier: Apache-2.0
// RepairCoordinator: does what the trackers of repairs want done.
#include <algorithm>
#include <deque>
#include <functional>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/fault_points.h"
#include "base/process/log.h"
#include "base/side_by_side.h"
#include "base/status.h"
#include "coordinator/repairs/repair_coordinator.h"

namespace ecpipe {
namespace {

// Helpers answer within milliseconds. Who asks has waited already.
constexpr Duration kAskTimeout = std::chrono::milliseconds(500);
constexpr Duration kShortestHandout = std::chrono::milliseconds(200);
// They wait nearly all of their time.
constexpr size_t kRepairsAtOnce = 8;

constexpr Duration kSayAgain = std::chrono::minutes(1);

}  // namespace

Actions RepairCoordinator::Hear(RepairId repair_id, Event event) {
  MutexLock lock(&mutex_);
  return HearLocked(repair_id, std::move(event));
}

Actions RepairCoordinator::HearLocked(RepairId repair_id, Event event) {
  const auto found = repairs_.find(repair_id);
  if (found == repairs_.end()) return {};
  Tracked& tracked = found->second;
  Actions actions = tracked.repair.On(std::move(event), clock_->Now());
  Count(&tracked);
  if (tracked.repair.set_aside()) tracked.busy.reset();
  if (tracked.repair.ended() && tracked.busy != nullptr) {
    tracked.busy->Release();
    ended_[repair_id] = {clock_->Now(), std::exchange(tracked.busy, nullptr)};
  }
  if (tracked.repair.gone()) repairs_.erase(found);
  return actions;
}

RepairCoordinator::Reply RepairCoordinator::Dispatch(RepairId repair_id, Event event,
                                                     const RepairCaller& caller) {
  Reply reply{.caller = caller};
  Follow(repair_id, Hear(repair_id, std::move(event)), &reply);
  return reply;
}

void RepairCoordinator::Follow(RepairId repair_id, Actions actions, Reply* reply) {
  std::deque<Action> left(std::make_move_iterator(actions.begin()),
                          std::make_move_iterator(actions.end()));
  const auto hear = [&](Event event) {
    for (Action& next : Hear(repair_id, std::move(event))) left.push_back(std::move(next));
  };
  while (!left.empty()) {
    if (reply->caller.gone && reply->caller.gone()) {
      reply->caller.gone = nullptr;
      hear(event::Finish{{absl::CancelledError("the requestor gave up")}});
    }
    std::optional<Event> answer =
        std::visit([&](auto& action) { return Perform(repair_id, action, reply); }, left.front());
    left.pop_front();
    if (answer) hear(*std::move(answer));
  }
}

void RepairCoordinator::DispatchAll(const std::vector<RepairId>& repair_ids, const Event& event) {
  SideBySide(repair_ids.size(), kRepairsAtOnce, [&](size_t i) { Dispatch(repair_ids[i], event); });
}

void RepairCoordinator::FollowAll(std::vector<Heard> heard) {
  SideBySide(heard.size(), kRepairsAtOnce, [&](size_t i) {
    Reply reply;
    Follow(heard[i].repair_id, std::move(heard[i].actions), &reply);
  });
}

std::optional<Event> RepairCoordinator::Perform(RepairId repair_id, action::Plan& plan, Reply*) {
  if (!plan.after.ok()) {
    Log(LogLevel::kWarning, "repair.resume",
        {{"repair", RepairIdText(repair_id)},
         {"attempt", std::to_string(plan.attempt)},
         {"missing", std::to_string(plan.request.left->bytes())},
         {"status", StatusText(plan.after)}});
  }
  return PlanAttempt(repair_id, plan);
}

std::optional<Event> RepairCoordinator::Perform(RepairId, action::Journal& journal, Reply*) {
  return event::Journaled{Record(journal.record)};
}

std::optional<Event> RepairCoordinator::Perform(RepairId repair_id, action::StartParts& start,
                                                Reply* reply) {
  std::vector<std::string> nodes;
  for (const auto& handout : start.handouts) nodes.push_back(handout.helper.node);
  {
    MutexLock lock(&mutex_);
    if (FindRunning(repair_id) == nullptr) {
      return event::Started{.failure = absl::CancelledError("the repair has ended")};
    }
    std::shared_ptr<BusyNodes::Hold>& busy = repairs_.at(repair_id).busy;
    busy.reset();  // an attempt does not share nodes with the one before
    busy = busy_.Reserve(nodes);
  }
  event::Started started{.failure = FaultPoint("coordinator.before_handout")};
  if (!started.failure.ok()) return started;
  const Duration left = reply->caller.answer_by - clock_->Now();
  const Duration timeout =
      std::min(options_.handout_timeout, std::max<Duration>(left / 2, kShortestHandout));
  const auto outcomes = helpers_->StartParts(start.handouts, timeout, start.straggler_after);
  for (size_t i = 0; i < outcomes.size(); ++i) {
    if (outcomes[i].ok()) {
      if (!started.checksum) started.checksum = outcomes[i]->checksum;
      continue;
    }
    const absl::Status& status = outcomes[i].status();
    if (started.failure.ok()) started.failure = status;
    if (start.straggler_after && absl::IsCancelled(status)) {
      started.late.insert(nodes[i]);
      Log(LogLevel::kInfo, "repair.helper_late",
          {{"repair", RepairIdText(repair_id)}, {"node", nodes[i]}});
      continue;
    }
    started.refused.emplace(nodes[i], status);
    if (IsCorruptWhenOpened(repair_id, status)) ReportOpened(start.handouts[i], status);
    // What is asked in less time than that may only be late.
    if (absl::IsDeadlineExceeded(status) && timeout >= kAskTimeout) {
      nodes_.NoAnswer(nodes[i], std::string(status.message()));
    }
    Log(LogLevel::kWarning, "repair.helper_refused",
        {{"repair", RepairIdText(repair_id)},
         {"attempt", std::to_string(start.handouts[i].part.attempt)},
         {"node", nodes[i]},
         {"status", StatusText(status)}});
  }
  return started;
}

bool RepairCoordinator::IsCorruptWhenOpened(RepairId repair_id, const absl::Status& status) {
  if (absl::IsDataLoss(status)) return true;
  if (!absl::IsOutOfRange(status)) return false;
  // It has another length than the catalog says. Lengths in facts are their requestor's word.
  MutexLock lock(&mutex_);
  const RepairTracker* const repair = FindRunning(repair_id);
  return repair != nullptr && !repair->facts();
}

bool RepairCoordinator::IsLoadedAnew(const LocalBlock& block) {
  if (block.sha256.empty()) return false;
  const absl::StatusOr<BlockLocation> now = catalog_->FindBlock(block.block_id);
  return now.ok() &&
         now->stripe.blocks[static_cast<size_t>(now->block_index)].sha256 != block.sha256;
}

void RepairCoordinator::ReportOpened(const HelperGateway::Handout& handout,
                                     const absl::Status& status) {
  std::set<std::string> block_ids;
  for (const HopSpec& hop : handout.part.hops) {
    if (!hop.block) continue;
    if (IsLoadedAnew(*hop.block)) return;
    block_ids.insert(hop.block->block_id);
  }
  for (const std::string& block_id : block_ids) {
    // The answer names no block. Of two, both are suspects until they have been read.
    if (block_ids.size() == 1) {
      ReportCorrupt(handout.helper.node, handout.part.repair_id, block_id,
                    std::string(status.message()));
    } else {
      NoteCorrupt({block_id, handout.helper.node, std::string(status.message()),
                   clock_->UnixMillis(), /*suspect=*/true, "", 0},
                  "");
    }
  }
}

std::optional<Event> RepairCoordinator::Perform(RepairId repair_id, action::AskParts& ask, Reply*) {
  event::Answered answered{ask.question, ask.attempt, {}, std::move(ask.check)};
  std::vector<HelperAddress> helpers = Addressed(ask.helpers);
  // That hosts do not answer ends a repair, so they are asked themselves.
  const bool may_guess =
      ask.question == Question::kWhoFailed || ask.question == Question::kAnyProgress;
  if (may_guess) {
    for (const HelperAddress& silent : TakeSilent(nodes_.Silent(), &helpers)) {
      answered.answers.emplace(silent.node,
                               absl::DeadlineExceededError("it has answered no calls lately"));
      // With a second one that does not answer it is no longer one straggler.
      ask.straggler_after.reset();
    }
  }
  if (helpers.empty()) return answered;
  auto answers =
      helpers_->AskParts(repair_id, ask.attempt, helpers, kAskTimeout, ask.straggler_after);
  for (size_t i = 0; i < answers.size(); ++i) {
    // Only those are asked this that have not reported.
    if (ask.question == Question::kStillThere && answers[i].ok() && !answers[i]->running) {
      LogPartEnd(helpers[i].node, repair_id, answers[i]->ended);
    }
    answered.answers.emplace(helpers[i].node, std::move(answers[i]));
  }
  return answered;
}

void RepairCoordinator::LogPartEnd(const std::string& node, RepairId repair_id,
                                   const absl::Status& status) {
  if (status.ok() || absl::IsCancelled(status)) return;
  Log(LogLevel::kWarning, "part.failed",
      {{"repair", RepairIdText(repair_id)}, {"node", node}, {"status", StatusText(status)}});
}

std::vector<HelperAddress> RepairCoordinator::Addressed(std::vector<HelperAddress> helpers) {
  for (HelperAddress& helper : helpers) {
    if (!helper.control_address.empty()) continue;
    const std::optional<NodeView> view = nodes_.Find(helper.node);
    if (view) helper.control_address = view->record.control_address;
  }
  std::erase_if(helpers,
                [](const HelperAddress& helper) { return helper.control_address.empty(); });
  return helpers;
}

std::optional<Event> RepairCoordinator::Perform(RepairId repair_id, action::EndParts& end, Reply*) {
  CancelAt(repair_id, end.attempt, end.helpers, [&](const std::vector<HelperAddress>& helpers) {
    return helpers_->EndAttempt(repair_id, end.attempt, helpers);
  });
  return std::nullopt;
}

std::optional<Event> RepairCoordinator::Perform(RepairId repair_id, action::Cancel& cancel,
                                                Reply*) {
  CancelAt(repair_id, cancel.attempt, Addressed(std::move(cancel.helpers)),
           [&](const std::vector<HelperAddress>& helpers) {
             return helpers_->CancelRepair(repair_id, cancel.attempt, helpers);
           });
  return std::nullopt;
}

std::optional<Event> RepairCoordinator::Perform(RepairId repair_id, action::CancelLater& cancel,
                                                Reply*) {
  MutexLock lock(&mutex_);
  left_behind_.push_back({repair_id, std::move(cancel)});
  if (left_behind_.size() > kMaxLeftBehind) left_behind_.pop_front();
  return std::nullopt;
}

std::vector<HelperAddress> RepairCoordinator::TakeSilent(const SilentOnes& silent,
                                                         std::vector<HelperAddress>* helpers) {
  const auto first = std::stable_partition(
      helpers->begin(), helpers->end(),
      [&](const HelperAddress& helper) { return !silent.contains(helper.node); });
  std::vector<HelperAddress> taken(first, helpers->end());
  helpers->erase(first, helpers->end());
  return taken;
}

void RepairCoordinator::NoteAnswers(const std::vector<HelperAddress>& helpers,
                                    const std::vector<absl::Status>& answers) {
  for (size_t i = 0; i < answers.size(); ++i) {
    if (!absl::IsDeadlineExceeded(answers[i])) continue;
    nodes_.NoAnswer(helpers[i].node, std::string(answers[i].message()));
  }
}

void RepairCoordinator::CancelAt(RepairId repair_id, uint32_t attempt,
                                 std::vector<HelperAddress> helpers, const CancelCall& call) {
  std::vector<HelperAddress> silent = TakeSilent(nodes_.Silent(), &helpers);
  if (!silent.empty()) {
    action::CancelLater later{attempt, std::move(silent)};
    Perform(repair_id, later, nullptr);
    if (helpers.empty()) return;
  }
  NoteAnswers(helpers, call(helpers));
}

void RepairCoordinator::TakeLeftBehind(std::vector<Heard>* heard) {
  const SilentOnes silent = nodes_.Silent();
  const size_t most = heard->size() + kExpiredAtOnce;
  for (size_t left = left_behind_.size(); left > 0 && heard->size() < most; --left) {
    LeftBehind attempt = std::move(left_behind_.front());
    left_behind_.pop_front();
    action::Cancel cancel{attempt.parts.attempt, std::move(attempt.parts.helpers)};
    attempt.parts.helpers = TakeSilent(silent, &cancel.helpers);
    const RepairId repair_id = attempt.repair_id;
    if (!attempt.parts.helpers.empty()) left_behind_.push_back(std::move(attempt));
    if (!cancel.helpers.empty()) heard->push_back({repair_id, {std::move(cancel)}});
  }
}

void RepairCoordinator::ProbeSilent() {
  std::vector<HelperAddress> silent;
  for (const std::string& node : nodes_.SilentToProbe()) silent.push_back({node, ""});
  silent = Addressed(std::move(silent));
  if (silent.empty()) return;
  // No repair has this id, so whoever answers says that.
  const auto answers = helpers_->AskParts(0, 0, silent, kAskTimeout, std::nullopt);
  for (size_t i = 0; i < answers.size(); ++i) {
    const absl::Status& status = answers[i].status();
    const bool reached = !absl::IsDeadlineExceeded(status) && !absl::IsUnavailable(status);
    if (reached) nodes_.Answered(silent[i].node);
  }
}

std::optional<Event> RepairCoordinator::Perform(RepairId repair_id, action::MoveBlock& move,
                                                Reply*) {
  Stripe was;
  {
    MutexLock lock(&mutex_);
    const auto found = repairs_.find(repair_id);
    if (found != repairs_.end()) was = found->second.stripe;
  }
  absl::Status status = catalog_->MoveBlock(move.block_id, move.host, was);
  if (status.ok()) corrupt_.Forget(move.block_id);
  return event::Moved{move.row, std::move(status)};
}

std::optional<Event> RepairCoordinator::Perform(RepairId, action::TryPlan& attempt, Reply*) {
  event::Tried tried{std::move(attempt.check), false};
  const absl::StatusOr<WantedBlocks> wanted = Locate(attempt.request);
  if (!wanted.ok()) return tried;
  LeftOut& left_out = tried.check.left_out;
  tried.possible = true;
  absl::StatusOr<PlannedRepair> planned;
  while (!(planned = PlanWithout(attempt.request, *wanted, left_out.reasons())).ok()) {
    // Those that are at fault for certain are left out whether or not there are enough others. For
    // speed only those are taken back that were left out for speed: links that were slow for a
    // moment, or not the slow ones.
    if (tried.check.quiet ? left_out.ReadmitOne() : left_out.ReadmitSlow()) continue;
    tried.possible = tried.check.quiet;
    break;
  }
  if (planned.ok()) tried.seconds = planned->cost.seconds;
  return tried;
}

std::optional<Event> RepairCoordinator::Perform(RepairId repair_id, action::Grant& granted,
                                                Reply* reply) {
  RepairGrant& grant = granted.grant;
  const bool has_requestor = !grant.part.hops.empty();
  Log(LogLevel::kInfo, "repair.begin",
      {{"repair", RepairIdText(repair_id)},
       {"attempt", std::to_string(granted.attempt)},
       {"block", absl::StrJoin(granted.request.block_ids, ",")},
       {"scheme", grant.scheme},
       {"transport", TransportName(granted.request.transport)},
       {"bytes", std::to_string(granted.bytes)},
       {"helpers", std::to_string(grant.cost.loads.size() - (has_requestor ? 1 : 0))}});
  reply->grant = std::move(grant);
  return std::nullopt;
}

std::optional<Event> RepairCoordinator::Perform(RepairId, action::Refuse& refuse, Reply* reply) {
  reply->grant = std::move(refuse.status);
  return std::nullopt;
}

std::optional<Event> RepairCoordinator::Perform(RepairId, action::Advise& advise, Reply* reply) {
  reply->advice = std::move(advise.advice);
  return std::nullopt;
}

std::optional<Event> RepairCoordinator::Perform(RepairId repair_id, action::Fault&, Reply*) {
  if (listener_ != nullptr && listener_->OnHostedFault(repair_id)) return std::nullopt;
  return event::NextAttempt{};
}

std::optional<Event> RepairCoordinator::Perform(RepairId, action::Doubt& doubt, Reply*) {
  // Of facts their storage system checks its blocks.
  const absl::StatusOr<BlockLocation> place = catalog_->FindBlock(doubt.block_ids[0]);
  if (!place.ok()) return std::nullopt;
  for (const BlockPlace& block : place->stripe.blocks) {
    const bool wanted = absl::c_linear_search(doubt.block_ids, block.block_id);
    // Without a SHA-256 a check would decide nothing that reading has not: its checksums fit.
    if (wanted || block.sha256.empty() || !doubt.nodes.contains(block.node)) continue;
    NoteCorrupt({block.block_id, block.node,
                 "one of the blocks is wrong that were read for this: " + doubt.reason,
                 clock_->UnixMillis(), /*suspect=*/true, "", 0},
                "");
  }
  return std::nullopt;
}

std::optional<Event> RepairCoordinator::Perform(RepairId, action::End& end, Reply*) {
  RepairRecord& record = end.record;
  record.ended_unix_ms = clock_->UnixMillis();
  StoreEnd(record);
  if (end.again) return std::nullopt;
  const bool well = record.state == RepairState::kDone || record.state == RepairState::kCancelled;
  Log(well ? LogLevel::kInfo : LogLevel::kWarning, "repair.end",
      {{"repair", RepairIdText(record.repair_id)},
       {"state", RepairStateName(record.state)},
       {"seconds", absl::StrFormat("%.3f", 1e-3 * (record.ended_unix_ms - record.started_unix_ms))},
       {"attempts", std::to_string(record.attempt + 1)},
       {"block", absl::StrJoin(record.block_ids, ",")},
       {"scheme", record.scheme},
       {"bytes", std::to_string(record.bytes)},
       {"requestor", record.hosts.empty() ? record.requestor : absl::StrJoin(record.hosts, ",")},
       {"detail", record.detail}});
  MutexLock lock(&mutex_);
  counts_.AddEnded(record);
  return std::nullopt;
}

std::optional<Event> RepairCoordinator::Perform(RepairId, action::TellEnd& tell, Reply*) {
  if (listener_ != nullptr) listener_->OnHostedEnd(tell.end);
  return std::nullopt;
}

std::optional<Event> RepairCoordinator::Perform(RepairId, action::TellPartEnd& tell, Reply*) {
  if (listener_ != nullptr) listener_->OnHostedPartEnd(tell.end);
  return std::nullopt;
}

absl::Status RepairCoordinator::Record(const RepairRecord& record) {
  absl::Status written = journal_->Record(record);
  if (written.ok()) return written;
  {
    MutexLock lock(&mutex_);
    ++counts_.unjournaled;
    const TimePoint now = clock_->Now();
    // Each read would say it.
    if (journal_failed_ && now - *journal_failed_ < kSayAgain) return written;
    journal_failed_ = now;
  }
  Log(LogLevel::kError, "journal.failed",
      {{"status", StatusText(written)},
       {"hint", "reads go on without a record; what stores blocks is refused"}});
  return written;
}

void RepairCoordinator::StoreEnd(const RepairRecord& record) {
  if (Record(record).ok()) return;
  MutexLock lock(&mutex_);
  if (unwritten_.size() < options_.max_running) unwritten_[record.repair_id] = record;
}

void RepairCoordinator::StoreUnwritten() {
  std::map<RepairId, RepairRecord> unwritten;
  {
    MutexLock lock(&mutex_);
    unwritten = unwritten_;
  }
  for (const auto& [repair_id, record] : unwritten) {
    // The next ones would fail as well.
    if (!Record(record).ok()) return;
    MutexLock lock(&mutex_);
    unwritten_.erase(repair_id);
  }
}

}  // namespace ecpipe
