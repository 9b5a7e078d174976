// SPDX-License-Identifier: Apache-2.0
// RepairCoordinator: its calls, and the table of repairs.
#include "coordinator/repairs/repair_coordinator.h"

#include <algorithm>
#include <tuple>

#include "absl/algorithm/container.h"
#include "base/process/log.h"
#include "base/status.h"
#include "model/fault.h"
#include "model/plan/random_ids.h"

namespace ecpipe {
namespace {

// After a restart: how long repairs may run that nobody here knows of.
constexpr Duration kDistrust = std::chrono::minutes(1);
constexpr Duration kLateReports = std::chrono::seconds(10);

// See Tracked.
Stripe ToKeep(const RepairRequest& request, const Stripe& stripe) {
  if (!request.facts) return stripe;
  Stripe id_only;
  id_only.stripe_id = stripe.stripe_id;
  return id_only;
}

}  // namespace

RepairCoordinator::RepairCoordinator(Catalog* catalog, Journal* journal, HelperGateway* helpers,
                                     const Clock* clock, const Options& options,
                                     RepairListener* listener)
    : catalog_(catalog),
      journal_(journal),
      helpers_(helpers),
      clock_(clock),
      options_(options),
      listener_(listener),
      started_(clock->Now()),
      nodes_(clock, options.dead_after, options.racks, options.topology_script),
      links_(clock, options.links),
      busy_(clock),
      corrupt_(options.marks),
      planner_(&nodes_, &links_, &corrupt_, options.planner),
      max_running_(options.max_running) {}

bool RepairCoordinator::Gathered(const WantedBlocks& wanted) {
  if (clock_->Now() - started_ >= options_.dead_after) return true;
  return absl::c_all_of(wanted.stripe.blocks, [&](const BlockPlace& place) {
    return place.node.empty() || nodes_.HasRegistered(place.node);
  });
}

absl::Status RepairCoordinator::CheckGathered(const RepairRequest& request,
                                              const WantedBlocks& wanted) {
  if (Gathered(wanted)) return absl::OkStatus();
  const absl::Status planned = planner_.Plan(request, wanted, {}).status();
  return absl::IsFailedPrecondition(planned) ? WaitsForHelpers(planned) : absl::OkStatus();
}

absl::StatusOr<RepairGrant> RepairCoordinator::BeginRepair(const RepairRequest& request,
                                                           uint64_t recovery_id,
                                                           const RepairCaller& caller) {
  RepairRecord record;
  record.repair_id = RandomRepairId();
  record.block_ids = request.block_ids;
  record.transport = TransportName(request.transport);
  record.requestor = request.requestor;
  record.hosts = request.hosts;
  record.recovery_id = recovery_id;
  record.started_unix_ms = clock_->UnixMillis();
  const RepairId repair_id = record.repair_id;
  RepairTracker repair(std::move(record), request, clock_->Now(), options_.abandon_after);
  const Actions first = repair.On(event::Begin{}, clock_->Now());
  event::Planned planned = PlanAttempt(repair_id, std::get<action::Plan>(first.at(0)));
  const bool gathered = planned.gathered;
  if (!planned.plan.ok()) {
    MutexLock lock(&mutex_);
    ++counts_.unplanned[request.cause];
  }
  // A repair without a plan takes no room in the table.
  absl::StatusOr<RepairGrant> grant =
      planned.plan.ok()
          ? Admit(std::move(repair), ToKeep(request, planned.plan->planned.stripe), planned, caller)
          : planned.plan.status();
  // There were enough, or would be, and then one of them would not do.
  if (absl::IsFailedPrecondition(grant.status()) && !gathered) {
    return WaitsForHelpers(grant.status());
  }
  return grant;
}

absl::StatusOr<RepairGrant> RepairCoordinator::ResumeRepair(const RepairRequest& request,
                                                            const ResumePoint& from,
                                                            const RepairCaller& caller) {
  if (!request.hosts.empty()) {
    return absl::InvalidArgumentError(
        "a repair that stores blocks on nodes cannot be resumed by a requestor");
  }
  ECPIPE_RETURN_IF_ERROR(from.left.Validate());
  if (from.failure.ok() || from.attempt >= RepairTracker::kMaxAttempts) {
    return absl::InvalidArgumentError(
        "a repair is resumed after an attempt that has failed, with the error and a number below " +
        std::to_string(RepairTracker::kMaxAttempts));
  }
  ECPIPE_ASSIGN_OR_RETURN(const WantedBlocks wanted, Locate(request));
  if (!request.facts) ECPIPE_RETURN_IF_ERROR(CheckSameStripe(from, wanted.stripe));
  RepairRequest again = request;
  again.left = from.left;
  again.slice_bytes = from.left.grid.slice_bytes;
  again.prefer_direct = false;  // it has failed, or there was no such attempt
  const bool was_preferred = request.prefer_direct && from.scheme == kDirectScheme;
  if (!from.scheme.empty() && !was_preferred) again.scheme = from.scheme;
  ECPIPE_RETURN_IF_ERROR(CheckGathered(again, wanted));
  event::Resume resume{std::move(again), from};
  absl::StatusOr<RepairGrant> grant =
      Runs(from.repair_id) ? Dispatch(from.repair_id, std::move(resume), caller).grant
                           : TakeUp(std::move(resume), ToKeep(request, wanted.stripe), caller);
  // Helpers that cannot be reached are not the coordinator that cannot be reached.
  const bool unreachable =
      absl::IsUnavailable(grant.status()) || absl::IsDeadlineExceeded(grant.status());
  if (unreachable && !Runs(from.repair_id)) return absl::AbortedError(grant.status().message());
  return grant;
}

absl::StatusOr<RepairGrant> RepairCoordinator::TakeUp(event::Resume resume, Stripe stripe,
                                                      const RepairCaller& caller) {
  const RepairRequest& request = resume.request;
  const ResumePoint& from = resume.from;
  const absl::StatusOr<RepairRecord> known = journal_->Find(from.repair_id);
  if (known.ok() && known->state != RepairState::kInterrupted) {
    return absl::AbortedError("the repair has ended: " +
                              std::string(RepairStateName(known->state)));
  }
  if (known.ok() && known->block_ids != request.block_ids) {
    return absl::InvalidArgumentError("the repair to resume is for other blocks");
  }
  RepairRecord record = known.ok() ? *known : RepairRecord{};
  record.repair_id = from.repair_id;
  // Its last words may not have reached the requestor: helpers have parts of an attempt then that
  // the requestor does not know of.
  record.attempt = std::max(record.attempt, from.attempt);
  record.block_ids = request.block_ids;
  record.transport = TransportName(request.transport);
  record.requestor = request.requestor;
  record.state = RepairState::kRunning;
  record.ended_unix_ms = 0;
  if (!known.ok()) record.started_unix_ms = clock_->UnixMillis();
  LeftOut left_out;
  const std::string faulty = FaultOf(from.failure);
  if (nodes_.Find(faulty)) {
    left_out.Suspect({{faulty, {std::string(from.failure.message()), false, ""}}});
  }
  RepairTracker repair = RepairTracker::TakeUp(std::move(record), request, std::move(left_out),
                                               clock_->Now(), options_.abandon_after);
  return Admit(std::move(repair), std::move(stripe), std::move(resume), caller);
}

absl::StatusOr<ProgressAdvice> RepairCoordinator::CheckProgress(RepairId repair_id,
                                                                uint32_t attempt,
                                                                uint64_t missing_bytes,
                                                                bool quiet) {
  return Dispatch(repair_id, event::CheckProgress{attempt, missing_bytes, quiet}).advice;
}

void RepairCoordinator::FinishRepair(RepairId repair_id, const RepairVerdict& verdict) {
  Dispatch(repair_id, event::Finish{verdict});
}

void RepairCoordinator::StartNextAttempt(RepairId repair_id) {
  Dispatch(repair_id, event::NextAttempt{});
}

void RepairCoordinator::CheckHostedProgress(RepairId repair_id) {
  Dispatch(repair_id, event::CheckHostedProgress{});
}

std::vector<RepairId> RepairCoordinator::HostedToCheck() {
  const TimePoint now = clock_->Now();
  std::vector<RepairId> due;
  MutexLock lock(&mutex_);
  for (const auto& [repair_id, tracked] : repairs_) {
    if (tracked.repair.IsCheckDue(now)) due.push_back(repair_id);
  }
  return due;
}

void RepairCoordinator::Adopt(const std::vector<RepairRecord>& interrupted) {
  // Requestors' repairs may go on, too; nobody here knows with which nodes.
  if (!interrupted.empty()) busy_.DistrustUntil(clock_->Now() + kDistrust);
  for (RepairRecord record : interrupted) {
    if (record.hosts.empty()) continue;
    if (record.hosts.size() != record.block_ids.size()) {
      Log(LogLevel::kError, "journal.damaged",
          {{"record", "repair " + RepairIdText(record.repair_id)},
           {"status", "it has not one host for each block; it is not taken up"}});
      continue;
    }
    record.state = RepairState::kRunning;
    record.ended_unix_ms = 0;
    // Nobody has changed the catalog while no coordinator ran.
    Stripe stripe;
    for (const std::string& block_id : record.block_ids) {
      absl::StatusOr<BlockLocation> place = catalog_->FindBlock(block_id);
      if (place.ok()) stripe = std::move(place->stripe);
    }
    // The next coordinator takes it up as well.
    Record(record).IgnoreError();
    const RepairId repair_id = record.repair_id;
    {
      MutexLock lock(&mutex_);
      RepairTracker repair =
          RepairTracker::Adopt(std::move(record), clock_->Now(), options_.abandon_after);
      Count(&repairs_.emplace(repair_id, Tracked{std::move(repair), std::move(stripe)})
                 .first->second);
    }
    Dispatch(repair_id, event::Adopted{});
  }
}

void RepairCoordinator::CancelHosted(uint64_t recovery_id) {
  std::vector<RepairId> ids;
  {
    MutexLock lock(&mutex_);
    for (const auto& [repair_id, tracked] : repairs_) {
      if (tracked.repair.record().recovery_id == recovery_id) ids.push_back(repair_id);
    }
  }
  // Each is told in its turn: it keeps its hosts from other repairs until its helpers are told.
  DispatchAll(ids, event::CancelHosted{absl::CancelledError("the recovery was cancelled")});
}

void RepairCoordinator::CancelHosted(uint64_t recovery_id, const std::set<std::string>& block_ids) {
  std::vector<RepairId> ids;
  {
    MutexLock lock(&mutex_);
    for (const auto& [repair_id, tracked] : repairs_) {
      const RepairRecord& record = tracked.repair.record();
      const bool named = absl::c_any_of(
          record.block_ids, [&](const std::string& id) { return block_ids.contains(id); });
      if (record.recovery_id == recovery_id && named) ids.push_back(repair_id);
    }
  }
  DispatchAll(ids, event::CancelHosted{absl::CancelledError("the node has the block again")});
}

void RepairCoordinator::Expire() {
  const TimePoint now = clock_->Now();
  std::vector<Heard> heard;
  {
    MutexLock lock(&mutex_);
    heard = TickSome();
    TakeLeftBehind(&heard);
    std::erase_if(ended_, [&](const auto& ended) { return now - ended.second.at > kLateReports; });
  }
  FollowAll(std::move(heard));
  ProbeSilent();
  StoreUnwritten();
  if (absl::Status trimmed = journal_->Trim(options_.journal_keep); !trimmed.ok()) {
    Log(LogLevel::kError, "journal.failed", {{"status", StatusText(trimmed)}});
  }
}

std::vector<RepairCoordinator::Heard> RepairCoordinator::TickSome() {
  // Taken after the last plan that the repairs have heard of: else a helper that started again
  // before that plan would seem to have started again after it.
  const NodeLives lives = Lives();
  std::vector<RepairId> ids;
  for (const auto& [repair_id, tracked] : repairs_) ids.push_back(repair_id);
  std::rotate(ids.begin(), std::upper_bound(ids.begin(), ids.end(), last_ticked_), ids.end());
  std::vector<Heard> heard;
  for (const RepairId id : ids) {
    if (heard.size() == kExpiredAtOnce) break;
    last_ticked_ = id;
    Actions actions = HearLocked(id, event::Tick{&lives});
    if (!actions.empty()) heard.push_back({id, std::move(actions)});
  }
  return heard;
}

NodeLives RepairCoordinator::Lives() {
  NodeLives lives;
  for (const NodeView& view : nodes_.All()) {
    const std::string& node = view.record.node_id;
    lives[node] = {nodes_.HasRegistered(node), view.state == NodeState::kDead,
                   view.record.incarnation, !view.silent_because.empty()};
  }
  return lives;
}

absl::Status RepairCoordinator::Register(NodeRecord node) {
  const std::string control_address = node.control_address;
  ECPIPE_RETURN_IF_ERROR(nodes_.Register(std::move(node)));
  helpers_->ForgetConnection(control_address);
  return absl::OkStatus();
}

void RepairCoordinator::ReportPart(const std::string& node, RepairId repair_id, uint32_t attempt,
                                   const absl::Status& status) {
  LogPartEnd(node, repair_id, status);
  Dispatch(repair_id, event::Reported{node, attempt, status});
}

void RepairCoordinator::ReportLinks(const std::string& node, RepairId repair_id,
                                    const std::vector<LinkTiming>& timings) {
  std::shared_ptr<BusyNodes::Hold> busy;
  {
    MutexLock lock(&mutex_);
    if (FindRunning(repair_id) != nullptr) {
      busy = repairs_.at(repair_id).busy;
    } else if (const auto ended = ended_.find(repair_id); ended != ended_.end()) {
      busy = ended->second.busy;
    }
  }
  if (busy == nullptr || !busy->Has(node)) return;
  for (const LinkTiming& timing : timings) {
    if (!busy->Has(timing.to)) continue;  // a requestor that may never come again, or a lie
    links_.Record(node, timing, !busy->Shared(node) && !busy->Shared(timing.to));
  }
}

void RepairCoordinator::ReportCorrupt(const std::string& node, RepairId repair_id,
                                      const std::string& block_id, const std::string& reason) {
  std::string at;
  {
    MutexLock lock(&mutex_);
    if (RepairTracker* const repair = FindRunning(repair_id)) {
      at = repair->NoteCorrupt(block_id, node);
      if (!at.empty()) repair->LeaveOut(at, "it is corrupt: " + reason);
    }
  }
  CorruptBlock found{block_id, at, reason, clock_->UnixMillis(), /*suspect=*/at != node, "", 0};
  if (!at.empty()) {
    return NoteCorrupt(found, "its storage system rebuilds it once it knows; repairs leave it out");
  }
  const absl::StatusOr<BlockLocation> place = catalog_->FindBlock(block_id);
  if (!place.ok()) return;
  const std::string& holder = place->stripe.blocks[static_cast<size_t>(place->block_index)].node;
  bool heard = node == holder;
  if (!heard) {
    MutexLock lock(&mutex_);
    RepairTracker* const repair = FindRunning(repair_id);
    if (repair == nullptr || repairs_.at(repair_id).stripe.stripe_id != place->stripe.stripe_id) {
      return;
    }
    // A requestor has no node, and hosts are the requestors where there are some.
    heard = repair->hosted() ? absl::c_linear_search(repair->record().hosts, node) : node.empty();
    if (heard) repair->LeaveOut(holder, "it is corrupt: " + reason);
  }
  if (!heard) return;
  found.node = holder;
  found.suspect = node != holder;
  NoteCorrupt(found, "ecpipe repair " + block_id + " --to " + holder);
}

std::vector<StripeFacts::Source> RepairCoordinator::CorruptSources(RepairId repair_id) {
  MutexLock lock(&mutex_);
  const RepairTracker* const repair = FindRunning(repair_id);
  if (repair == nullptr || !repair->facts()) return {};
  std::vector<StripeFacts::Source> corrupt;
  for (const StripeFacts::Source& source : repair->facts()->sources) {
    const std::string block_id = repair->facts()->blocks[static_cast<size_t>(source.index)].name;
    const std::vector<std::string> nodes = nodes_.WithStorage(source.storage_id);
    const auto found = [&](const std::string& node) {
      return repair->FoundCorrupt(block_id, node);
    };
    if (absl::c_any_of(nodes, found)) corrupt.push_back(source);
  }
  return corrupt;
}

void RepairCoordinator::NoteCorrupt(const CorruptBlock& block, const std::string& hint) {
  if (!corrupt_.Add(block)) return;
  if (block.suspect) {
    return Log(LogLevel::kWarning, "block.suspect",
               {{"block", block.block_id}, {"node", block.node}, {"reason", block.reason}});
  }
  Log(LogLevel::kError, "block.corrupt",
      {{"block", block.block_id}, {"node", block.node}, {"reason", block.reason}, {"hint", hint}});
}

RepairTracker* RepairCoordinator::FindRunning(RepairId repair_id) {
  const auto found = repairs_.find(repair_id);
  return found == repairs_.end() || found->second.repair.ended() ? nullptr : &found->second.repair;
}

bool RepairCoordinator::Runs(RepairId repair_id) {
  MutexLock lock(&mutex_);
  return FindRunning(repair_id) != nullptr;
}

absl::StatusOr<RepairGrant> RepairCoordinator::Admit(RepairTracker repair, Stripe stripe,
                                                     Event event, const RepairCaller& caller) {
  const RepairId repair_id = repair.record().repair_id;
  Actions actions;
  {
    MutexLock lock(&mutex_);
    if (repairs_.contains(repair_id)) {
      return absl::AbortedError("another call has just taken the repair up, or ended it");
    }
    if (repair.hosted()) ECPIPE_RETURN_IF_ERROR(CheckHosts(repair.record(), stripe.stripe_id));
    if (repairs_.size() >= max_running_) {
      return absl::ResourceExhaustedError("the coordinator is at its limit of " +
                                          std::to_string(max_running_) + " repairs");
    }
    const auto most = std::max<size_t>(1, static_cast<size_t>(kBackgroundShare * max_running_));
    if (repair.background() && background_ >= most) {
      return absl::ResourceExhaustedError("the coordinator is at its limit of " +
                                          std::to_string(most) + " background repairs");
    }
    repairs_.emplace(repair_id, Tracked{std::move(repair), std::move(stripe)});
    ++counts_.started;
    actions = HearLocked(repair_id, std::move(event));
  }
  Reply reply{.caller = caller};
  Follow(repair_id, std::move(actions), &reply);
  return std::move(reply.grant);
}

absl::Status RepairCoordinator::CheckHosts(const RepairRecord& record,
                                           const std::string& stripe_id) {
  for (auto at = storing_.lower_bound({stripe_id, 0});
       at != storing_.end() && at->first == stripe_id; ++at) {
    const RepairRecord& other = repairs_.at(at->second).repair.record();
    for (size_t i = 0; i < other.hosts.size(); ++i) {
      if (!absl::c_linear_search(record.block_ids, other.block_ids[i]) &&
          !absl::c_linear_search(record.hosts, other.hosts[i])) {
        continue;
      }
      return absl::AbortedError("repair " + RepairIdText(at->second) +
                                " is already storing block " + other.block_ids[i] +
                                " of the stripe on node " + other.hosts[i]);
    }
  }
  return absl::OkStatus();
}

std::set<std::string> RepairCoordinator::RunningBlocks() {
  MutexLock lock(&mutex_);
  std::set<std::string> blocks;
  for (const auto& [repair_id, tracked] : repairs_) {
    if (tracked.repair.ended()) continue;
    const RepairRecord& record = tracked.repair.record();
    blocks.insert(record.block_ids.begin(), record.block_ids.end());
  }
  return blocks;
}

void RepairCoordinator::Count(Tracked* tracked) {
  const RepairTracker& repair = tracked->repair;
  const bool background = repair.background() && !repair.gone();
  if (background) ++background_;
  if (std::exchange(tracked->background, background)) --background_;
  const std::pair of_stripe(tracked->stripe.stripe_id, repair.record().repair_id);
  storing_.erase(of_stripe);
  if (repair.hosted() && !repair.ended()) storing_.insert(of_stripe);
  for (const auto& [node, count] : std::exchange(tracked->streams, repair.Streams())) {
    all_streams_ -= count;
    if ((streams_[node] -= count) == 0) streams_.erase(node);
  }
  for (const auto& [node, count] : tracked->streams) {
    all_streams_ += count;
    streams_[node] += count;
  }
}

SendingStreams RepairCoordinator::StreamsOf(const std::string& node) {
  MutexLock lock(&mutex_);
  const auto found = streams_.find(node);
  return {found == streams_.end() ? 0 : found->second, all_streams_};
}

absl::StatusOr<RepairRecord> RepairCoordinator::Find(RepairId repair_id) {
  {
    MutexLock lock(&mutex_);
    if (const RepairTracker* const repair = FindRunning(repair_id)) return repair->record();
    const auto unwritten = unwritten_.find(repair_id);
    if (unwritten != unwritten_.end()) return unwritten->second;
  }
  return journal_->Find(repair_id);
}

RepairCoordinator::RunningRepairs RepairCoordinator::ShowRunning(size_t most) {
  std::vector<std::tuple<bool, int64_t, RepairId, const RepairTracker*>> order;
  MutexLock lock(&mutex_);
  for (const auto& [repair_id, tracked] : repairs_) {
    if (tracked.repair.ended()) continue;
    order.emplace_back(tracked.repair.background(), tracked.repair.record().started_unix_ms,
                       repair_id, &tracked.repair);
  }
  RunningRepairs running{.all = order.size(), .shown = {}};
  const auto end = order.begin() + static_cast<ptrdiff_t>(std::min(most, order.size()));
  std::partial_sort(order.begin(), end, order.end());
  for (auto at = order.begin(); at != end; ++at) running.shown.push_back(std::get<3>(*at)->View());
  return running;
}

}  // namespace ecpipe
