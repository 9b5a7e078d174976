// SPDX-License-Identifier: Apache-2.0
// RepairCoordinator, its attempts: planning and handing out, the first time and again.
#include <algorithm>

#include "absl/algorithm/container.h"
#include "base/fault_points.h"
#include "base/process/log.h"
#include "base/status.h"
#include "coordinator/repairs/part_builder.h"
#include "coordinator/repairs/random_ids.h"
#include "coordinator/repairs/repair_coordinator.h"
#include "model/fault.h"

namespace ecpipe {
namespace {

// Each handout leaves out the helpers that refused the one before, so this bounds how many dead
// helpers one call may discover.
constexpr uint32_t kMaxHandouts = 5;
// Of a repair, handouts that were refused included.
constexpr uint32_t kMaxAttempts = 16;

absl::Status WaitsForHelpers(const absl::Status& why) {
  return absl::UnavailableError(
      "the coordinator has just started and waits for helpers to register: " +
      std::string(why.message()));
}

absl::Status Cancelled() { return absl::CancelledError("the repair was cancelled"); }

}  // namespace

absl::StatusOr<RepairGrant> RepairCoordinator::BeginRepair(const RepairRequest& request,
                                                           uint64_t recovery_id) {
  ECPIPE_ASSIGN_OR_RETURN(const LostBlocks lost, Locate(request));
  ECPIPE_RETURN_IF_ERROR(CheckGathered(request, lost));
  const bool gathered = Gathered(lost);
  RepairRecord record;
  record.repair_id = RandomRepairId();
  record.block_ids = request.block_ids;
  record.transport = TransportName(request.transport);
  record.requestor = request.requestor;
  record.hosts = request.hosts;
  record.recovery_id = recovery_id;
  record.started_unix_ms = clock_->UnixMillis();
  absl::StatusOr<RepairGrant> grant = RunAttempts(std::move(record), request, lost, {});
  // There were enough, and then one of them would not do.
  if (absl::IsFailedPrecondition(grant.status()) && !gathered) {
    return WaitsForHelpers(grant.status());
  }
  return grant;
}

absl::StatusOr<RepairGrant> RepairCoordinator::ResumeRepair(const RepairRequest& request,
                                                            const ResumePoint& from) {
  if (!request.hosts.empty()) {
    return absl::InvalidArgumentError(
        "a repair that stores blocks on nodes cannot be resumed by a requestor");
  }
  ECPIPE_RETURN_IF_ERROR(from.left.Validate());
  ECPIPE_ASSIGN_OR_RETURN(const LostBlocks lost, Locate(request));
  RepairRequest again = request;
  again.left = from.left;
  again.slice_bytes = from.left.grid.slice_bytes;
  if (!from.scheme.empty()) again.scheme = from.scheme;
  ECPIPE_RETURN_IF_ERROR(CheckGathered(again, lost));
  Running before;
  ECPIPE_RETURN_IF_ERROR(FindForResume(again, from, lost.stripe.stripe_id, &before));
  const PartAnswers answers = Ask(before.record, before.helpers);
  before.record.attempt = std::max(before.record.attempt, from.attempt);
  absl::StatusOr<RepairGrant> grant = NextAttempt(
      before, WhoFailed(answers, from.failure, before.receivers), from.failure, again, lost);
  // Helpers that cannot be reached are not the coordinator that cannot be reached.
  const bool unreachable =
      absl::IsUnavailable(grant.status()) || absl::IsDeadlineExceeded(grant.status());
  if (unreachable && !Runs(from.repair_id)) return absl::AbortedError(grant.status().message());
  return grant;
}

absl::StatusOr<RepairGrant> RepairCoordinator::NextAttempt(const Running& failed,
                                                           const Suspects& suspects,
                                                           const absl::Status& failure,
                                                           const RepairRequest& request,
                                                           const LostBlocks& lost) {
  LeftOut left_out = failed.left_out;
  // Without its hosts there is no repair; whether they can go on has been asked.
  left_out.Suspect(suspects, HostsAtWork(failed.record));
  RepairRecord record = failed.record;
  ++record.attempt;
  Log(LogLevel::kWarning, "repair.resume",
      {{"repair", RepairIdText(record.repair_id)},
       {"attempt", std::to_string(record.attempt)},
       {"missing", std::to_string(request.left->bytes())},
       {"status", StatusText(failure)}});
  if (record.attempt >= kMaxAttempts) {
    const absl::Status given_up =
        absl::AbortedError("given up after " + std::to_string(record.attempt) +
                           " attempts; the last one failed: " + std::string(failure.message()));
    EndFailed(std::move(record), given_up);
    return given_up;
  }
  return RunAttempts(std::move(record), request, lost, std::move(left_out));
}

bool RepairCoordinator::Gathered(const LostBlocks& lost) {
  if (clock_->Now() - started_ >= options_.dead_after) return true;
  return absl::c_all_of(lost.stripe.blocks, [&](const BlockPlace& place) {
    return place.node.empty() || nodes_.HasRegistered(place.node);
  });
}

absl::Status RepairCoordinator::CheckGathered(const RepairRequest& request,
                                              const LostBlocks& lost) {
  if (Gathered(lost)) return absl::OkStatus();
  const absl::Status planned = planner_.Plan(request, lost, {}).status();
  return absl::IsFailedPrecondition(planned) ? WaitsForHelpers(planned) : absl::OkStatus();
}

absl::Status RepairCoordinator::FindForResume(const RepairRequest& request, const ResumePoint& from,
                                              const std::string& stripe_id, Running* before) {
  {
    MutexLock lock(&mutex_);
    if (const auto found = running_.find(from.repair_id); found != running_.end()) {
      Running& running = found->second;
      const RepairRecord& record = running.record;
      if (record.block_ids != request.block_ids || !record.hosts.empty()) {
        return absl::InvalidArgumentError("the repair to resume is for other blocks");
      }
      if (running.handing_out) {
        return absl::AbortedError("another attempt of the repair is being handed out already");
      }
      running.handing_out = true;
      *before = {.record = record,
                 .stripe_id = running.stripe_id,
                 .helpers = running.helpers,
                 .receivers = running.receivers,
                 .left_out = running.left_out};
      left_behind_.push_back({record.repair_id, record.attempt, running.helpers});
      return absl::OkStatus();
    }
  }
  // The coordinator has restarted, and knows nothing of who took part.
  const absl::StatusOr<RepairRecord> known = journal_->Find(from.repair_id);
  if (known.ok() && known->state != RepairState::kInterrupted) {
    return absl::FailedPreconditionError("the repair has ended: " +
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
  *before = {.record = record, .stripe_id = stripe_id};
  const std::string faulty = FaultOf(from.failure);
  if (nodes_.Find(faulty)) {
    before->left_out.Suspect({{faulty, {std::string(from.failure.message()), false, ""}}});
  }
  return AddRunning(record, request, stripe_id);
}

absl::StatusOr<PlannedRepair> RepairCoordinator::PlanAttempt(const RepairRequest& request,
                                                             const LostBlocks& lost,
                                                             LeftOut* left_out) {
  absl::StatusOr<PlannedRepair> planned = planner_.Plan(request, lost, left_out->reasons());
  while (!planned.ok() && left_out->ReadmitOne()) {
    planned = planner_.Plan(request, lost, left_out->reasons());
  }
  return planned;
}

absl::StatusOr<RepairGrant> RepairCoordinator::RunAttempts(RepairRecord record,
                                                           const RepairRequest& request,
                                                           const LostBlocks& lost,
                                                           LeftOut left_out) {
  const uint32_t first = record.attempt;
  const uint32_t end = std::min(first + kMaxHandouts, kMaxAttempts);
  absl::Status last;
  bool gathered = false;
  for (; record.attempt < end; ++record.attempt) {
    // Asked before planning: who registers meanwhile is in no plan.
    gathered = Gathered(lost);
    LeftOut tried = left_out;  // who is taken back for this plan may not be needed for the next
    absl::StatusOr<PlannedRepair> planned = PlanAttempt(request, lost, &tried);
    if (!planned.ok()) {
      last = planned.status();
      break;
    }
    record.offset = planned->offset;
    record.bytes = planned->bytes;
    record.scheme = planned->plan.scheme;
    if (record.attempt == 0) {
      ECPIPE_RETURN_IF_ERROR(AddRunning(record, request, lost.stripe.stripe_id));
    }
    if (last = Annotate(journal_->Record(record), "journal"); !last.ok()) break;
    absl::StatusOr<RepairGrant> grant = HandOut(&record, request, *std::move(planned), &left_out);
    if (grant.ok()) {
      MutexLock lock(&mutex_);
      if (const auto found = running_.find(record.repair_id); found != running_.end()) {
        found->second.left_out = std::move(tried);
      }
      return grant;
    }
    last = grant.status();
    if (!Runs(record.repair_id)) break;
  }
  const bool resumed = request.left && request.hosts.empty();
  const bool may_wait = !gathered && absl::IsFailedPrecondition(last);
  if (resumed && may_wait && Runs(record.repair_id)) {
    --record.attempt;  // which nobody has
    SetAside(record, std::move(left_out));
    return WaitsForHelpers(last);
  }
  EndFailed(std::move(record), last);
  return last;
}

void RepairCoordinator::SetAside(const RepairRecord& record, LeftOut left_out) {
  MutexLock lock(&mutex_);
  const auto found = running_.find(record.repair_id);
  if (found == running_.end()) return;
  Running& running = found->second;
  running.record = record;
  running.helpers.clear();
  running.receivers.clear();
  running.unreported.clear();
  running.busy.reset();
  running.left_out = std::move(left_out);
  running.last_news = clock_->Now();
  running.handing_out = false;
}

void RepairCoordinator::EndFailed(RepairRecord record, const absl::Status& status) {
  bool granted = false;
  {
    MutexLock lock(&mutex_);
    const auto found = running_.find(record.repair_id);
    granted = found != running_.end() && found->second.granted;
  }
  // Whoever ordered it has left, and is told.
  if (granted && !record.hosts.empty()) return EndHosted(record.repair_id, status);
  if (const std::optional<Running> ended = TakeRunning(record.repair_id)) {
    if (!record.hosts.empty()) {  // which may keep what they have for another attempt
      helpers_->CancelRepair(record.repair_id, ended->record.attempt, ended->helpers);
    }
    End(std::move(record), RepairState::kFailed, StatusText(status));
  } else if (!record.scheme.empty()) {
    // Cancelled, and ended so; but this attempt may have gone into the journal after that.
    StoreEnd(&record, RepairState::kFailed, StatusText(status));
  }
}

absl::StatusOr<std::vector<HelperGateway::Handout>> RepairCoordinator::MakeHandouts(
    const RepairRecord& record, const RepairRequest& request, const PlannedRepair& planned,
    RepairPart* requestor_part) {
  const TransportKind transport = request.transport;
  PartContext context;
  context.repair_id = record.repair_id;
  context.attempt = record.attempt;
  context.transport = transport;
  context.stripe = &planned.stripe;
  context.new_token = RandomToken;
  std::map<std::string, std::string> control_addresses;
  for (const NodeLoad& load : planned.cost.loads) {
    const std::optional<NodeView> node = nodes_.Find(load.node);
    if (!node) continue;
    control_addresses[load.node] = node->record.control_address;
    context.addresses[load.node] =
        transport == TransportKind::kRedis ? node->record.redis_address : node->record.data_address;
  }
  ECPIPE_ASSIGN_OR_RETURN(auto parts, BuildParts(planned.plan, context));
  for (size_t i = 0; i < request.hosts.size(); ++i) {
    const auto first_row = static_cast<Row>(i * planned.plan.layout.sub_blocks);
    parts.at(request.hosts[i]).stores = {
        {first_row, request.block_ids[i], planned.block_lengths[i]}};
  }
  std::vector<HelperGateway::Handout> handouts;
  // In the plan's order, so that a sender tends to know its edges before its receiver dials.
  for (const NodeLoad& load : planned.cost.loads) {
    const auto control = control_addresses.find(load.node);
    RepairPart& part = parts.at(load.node);
    part.background = request.background;
    if (control == control_addresses.end()) {
      *requestor_part = std::move(part);
    } else {
      handouts.push_back({{load.node, control->second}, std::move(part)});
    }
  }
  return handouts;
}

// A node has at most one block of a stripe that a plan reads, so this is the one.
void RepairCoordinator::ReportOpened(const HelperGateway::Handout& handout,
                                     const absl::Status& status) {
  for (const HopSpec& hop : handout.part.hops) {
    if (!hop.block) continue;
    return ReportCorrupt(handout.helper.node, handout.part.repair_id, hop.block->block_id,
                         std::string(status.message()));
  }
}

std::map<std::string, uint64_t> RepairCoordinator::IncarnationsOf(
    const std::set<std::string>& nodes) {
  std::map<std::string, uint64_t> incarnations;
  for (const std::string& node : nodes) {
    if (const auto view = nodes_.Find(node)) incarnations[node] = view->record.incarnation;
  }
  return incarnations;
}

absl::StatusOr<RepairGrant> RepairCoordinator::HandOut(RepairRecord* record,
                                                       const RepairRequest& request,
                                                       PlannedRepair planned, LeftOut* left_out) {
  RepairGrant grant;
  ECPIPE_ASSIGN_OR_RETURN(std::vector<HelperGateway::Handout> handouts,
                          MakeHandouts(*record, request, planned, &grant.part));
  std::vector<HelperAddress> helpers;
  std::set<std::string> nodes;
  Receivers receivers;
  for (const HelperGateway::Handout& handout : handouts) {
    helpers.push_back(handout.helper);
    nodes.insert(handout.helper.node);
    for (const HopSpec& hop : handout.part.hops) {
      for (const HopOutput& output : hop.outputs) {
        receivers[handout.helper.node].push_back(output.node);
      }
    }
  }
  std::map<std::string, uint64_t> incarnations = IncarnationsOf(nodes);
  {
    MutexLock lock(&mutex_);
    const auto found = running_.find(record->repair_id);
    if (found == running_.end()) return Cancelled();
    Running& running = found->second;
    running.incarnations = std::move(incarnations);
    running.record = *record;
    running.helpers = helpers;
    running.unreported = nodes;
    running.receivers = std::move(receivers);
    running.last_news = clock_->Now();
    running.busy.reset();  // an attempt does not share nodes with the one before
    running.busy = busy_.Take({nodes.begin(), nodes.end()});
    running.to_move.clear();
    running.failure = absl::OkStatus();
    running.consequence = absl::OkStatus();
    running.handing_out = true;
    running.request = request;
    running.grid = planned.plan.grid;
    if (request.facts) {
      running.places.insert(running.places.end(), planned.stripe.blocks.begin(),
                            planned.stripe.blocks.end());
    }
    running.attempt_bytes = (request.left ? request.left->bytes() : planned.plan.grid.bytes) *
                            planned.plan.layout.sub_blocks;
    running.quiet.reset();
    running.milestone.reset();
  }
  ECPIPE_RETURN_IF_ERROR(FaultPoint("coordinator.before_handout"));
  const std::vector<absl::StatusOr<HelperGateway::Started>> outcomes =
      helpers_->StartParts(handouts, options_.handout_timeout);
  absl::Status first_failure;
  for (size_t i = 0; i < outcomes.size(); ++i) {
    if (outcomes[i].ok()) {
      if (!grant.checksum) grant.checksum = outcomes[i]->checksum;
      continue;
    }
    const absl::Status& status = outcomes[i].status();
    if (first_failure.ok()) first_failure = status;
    left_out->Refuse(handouts[i].helper.node, std::string(status.message()));
    if (absl::IsDataLoss(status)) ReportOpened(handouts[i], status);
    Log(LogLevel::kWarning, "repair.helper_refused",
        {{"repair", RepairIdText(record->repair_id)},
         {"attempt", std::to_string(record->attempt)},
         {"node", handouts[i].helper.node},
         {"status", StatusText(status)}});
  }
  if (!first_failure.ok()) {
    if (!record->hosts.empty() && Runs(record->repair_id)) {
      helpers_->EndAttempt(record->repair_id, record->attempt, helpers);
    } else {
      helpers_->CancelRepair(record->repair_id, record->attempt, helpers);
    }
    return first_failure;
  }
  bool cancelled = false;
  {
    MutexLock lock(&mutex_);
    const auto found = running_.find(record->repair_id);
    cancelled = found == running_.end();
    if (!cancelled) {
      found->second.handing_out = false;
      found->second.granted = true;
      const TimePoint now = clock_->Now();
      found->second.attempt_began = now;
      found->second.host_looks = {.at = now, .all_asked = now, .bytes = std::nullopt};
    }
  }
  if (cancelled) {
    // The word to cancel may have come to a helper before its part.
    helpers_->CancelRepair(record->repair_id, record->attempt, helpers);
    return Cancelled();
  }
  Log(LogLevel::kInfo, "repair.begin",
      {{"repair", RepairIdText(record->repair_id)},
       {"attempt", std::to_string(record->attempt)},
       {"block", request.block_ids[0]},
       {"blocks", std::to_string(request.block_ids.size())},
       {"scheme", record->scheme},
       {"transport", record->transport},
       {"bytes", std::to_string(record->bytes)},
       {"helpers", std::to_string(helpers.size())}});
  grant.repair_id = record->repair_id;
  grant.scheme = planned.plan.scheme;
  grant.stripe_id = planned.stripe.stripe_id;
  grant.block_lengths = std::move(planned.block_lengths);
  grant.cost = std::move(planned.cost);
  Advance(record->repair_id);
  return grant;
}

}  // namespace ecpipe
