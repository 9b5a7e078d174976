// SPDX-License-Identifier: Apache-2.0
// RecoveryManager, how repairs of blocks begin: the thread decides, and others wait for helpers.
#include <algorithm>

#include "coordinator/recovery/recovery_manager.h"

namespace ecpipe {
namespace {

constexpr size_t kWindow = 32;  // blocks that a policy chooses among
// Nodes that do not answer such questions hold starts up for so long at most a time.
constexpr Duration kQuestionsRest = std::chrono::seconds(10);

// A drain that copies rebuilds what it cannot copy by the default scheme.
std::string SchemeThatRebuilds(const RecoveryRequest& request) {
  return request.scheme == kDirectScheme ? "" : request.scheme;
}

}  // namespace

bool RecoveryManager::StartSome(const std::vector<RecoveryId>& running) {
  // Those that come after the one that began last have their turn before it.
  const auto next = std::upper_bound(running.begin(), running.end(), began_last_);
  std::vector<RecoveryId> in_turn(next, running.end());
  in_turn.insert(in_turn.end(), running.begin(), next);
  bool worked = false;
  for (const RecoveryId id : in_turn) {
    if (!threads_for_starts_.HasRoom()) break;
    const std::optional<Choice> choice = Choose(id);
    if (!choice) continue;
    worked = true;
    std::optional<Start> start = Prepare(id, *choice);
    if (!start) continue;
    began_last_ = id;
    threads_for_starts_.Run([this, start = *std::move(start)] { BeginRepair(start); });
  }
  return worked;
}

std::optional<RecoveryManager::Choice> RecoveryManager::Choose(RecoveryId id) {
  MutexLock lock(&mutex_);
  Recovery* const found = Find(id);
  if (found == nullptr || Ended(found->record.state) || WhyIdle(*found)) return std::nullopt;
  Recovery& recovery = *found;
  const TimePoint now = clock_->Now();
  const size_t cleared =
      std::erase_if(recovery.suspects, [&](const auto& suspect) { return suspect.second <= now; });
  if (cleared > 0) recovery.nodes.reset();
  const Nodes& nodes = LookUpNodes(&recovery);
  const std::vector<const LostBlock*> window = recovery.queue.Next(now, kWindow);
  PolicyInput input = nodes.InputFor(window);
  const RecoveryRequest& request = recovery.record.request;
  // Other schemes choose their paths themselves.
  std::string scheme = SchemeThatRebuilds(request);
  if (scheme.empty()) scheme = options_.default_scheme;
  if (!recovery.list_after && (scheme == "auto" || scheme == "rp")) {
    const RecoveryQueue::Counts counts = recovery.queue.counts();
    input.blocks_left = counts.waiting + counts.running;
  }
  std::optional<Placement> placement = request.kind == RecoveryKind::kMove
                                           ? PlaceMove(recovery, input)
                                           : Place(request.policy, input, loads_);
  if (!placement) return std::nullopt;
  const auto chosen = std::find_if(window.begin(), window.end(), [&](const LostBlock* block) {
    return block->block_id == placement->block_id;
  });
  return Choice{*std::move(placement), (*chosen)->needed, (*chosen)->bytes, (*chosen)->uncertain};
}

std::optional<RecoveryManager::Start> RecoveryManager::Prepare(RecoveryId id,
                                                               const Choice& choice) {
  const Placement& placement = choice.placement;
  const std::string& block_id = placement.block_id;
  const absl::StatusOr<BlockLocation> location = catalog_->FindBlock(block_id);
  MutexLock lock(&mutex_);
  Recovery* const found = Find(id);
  if (found == nullptr || Ended(found->record.state) || WhyIdle(*found)) return std::nullopt;
  Recovery& recovery = *found;
  const RecoveryRequest& request = recovery.record.request;
  // Other blocks of the stripe may have been repaired since the listing: their nodes are not what
  // the choice took them for.
  if (location.ok() &&
      recovery.queue.SetHolders(block_id, LossFinder::HoldersOf(location->stripe, block_id))) {
    return std::nullopt;
  }
  loads_.Selected(placement, choice.needed);
  recovery.queue.Start(block_id);
  Recovery::InFlight& repair = recovery.in_flight[block_id];
  repair = {.host = placement.host, .copy = placement.copy};
  // The listing may be older than the end of a repair that was under way at the time.
  if (location.ok() &&
      location->stripe.blocks[static_cast<size_t>(location->block_index)].node != request.node) {
    RecordEnd(&recovery, block_id, absl::OkStatus(), RepairStage::kPlanned);
    return std::nullopt;
  }
  if (placement.host.empty()) {
    recovery.in_flight.erase(block_id);
    recovery.queue.Wait(block_id, WaitKind::kTarget,
                        absl::FailedPreconditionError(placement.impossible), clock_->Now());
    return std::nullopt;
  }
  Start start{.id = id, .number = ++last_start_};
  if (request.kind == RecoveryKind::kMove) start.own_node = LossFinder::OwnNode::kIsAsked;
  start.request.block_ids = {block_id};
  start.request.scheme = placement.copy ? kDirectScheme : SchemeThatRebuilds(request);
  start.request.copy = placement.copy;
  start.request.slice_bytes = request.slice_bytes;
  start.request.transport = request.transport.value_or(TransportKind::kTcp);
  start.request.requestor = "recovery " + std::to_string(id);
  start.request.hosts = {placement.host};
  start.request.helper_order = placement.helpers;
  start.request.paths = placement.paths;
  std::vector<std::string> at_work = placement.helpers;
  at_work.push_back(placement.host);
  if (placement.copy) at_work.push_back(request.node);
  start.request.link_shares = loads_.LeftOfLinks(at_work);
  repair.starting = start.number;
  repair.loads = ExpectedLoads(placement, request.node, choice.needed, choice.bytes);
  loads_.Begin(repair.loads);
  start.request.background = true;
  start.request.cause = CauseOf(request.kind);
  if (choice.uncertain && !placement.copy) start.request.verify = Verification::kLocate;
  return start;
}

void RecoveryManager::BeginRepair(const Start& start) {
  const std::string& block_id = start.request.block_ids[0];
  if (!MayBegin(start)) return;
  const absl::StatusOr<RepairGrant> grant = repairs_->BeginRepair(start.request, start.id);
  const absl::Status failure = grant.ok() ? absl::OkStatus() : AskIfLost(start, grant.status());
  bool cancelled = false;
  bool unwanted = false;
  {
    MutexLock lock(&mutex_);
    Recovery* const recovery = Find(start.id);
    Recovery::InFlight* const repair =
        recovery == nullptr ? nullptr : FindStarting(recovery, start);
    if (repair != nullptr) {
      if (!grant.ok()) return RecordEnd(recovery, block_id, failure, RepairStage::kPlanned);
      repair->EndStart(grant->cost.loads, &loads_);
    }
    if (!grant.ok()) return;
    // While this repair was not there yet Cancel() came, or the node has the block again. Or it has
    // ended already: then there is nothing to cancel.
    cancelled = recovery == nullptr || recovery->record.state == RecoveryState::kCancelled;
    unwanted = !cancelled && !recovery->in_flight.contains(block_id);
  }
  if (cancelled) return repairs_->CancelHosted(start.id);
  if (unwanted) repairs_->CancelHosted(start.id, {block_id});
}

bool RecoveryManager::MayBegin(const Start& start) {
  MutexLock lock(&mutex_);
  Recovery* const recovery = Find(start.id);
  Recovery::InFlight* const repair = recovery == nullptr ? nullptr : FindStarting(recovery, start);
  if (repair == nullptr) return false;
  if (!stopping_ && !Ended(recovery->record.state) && !WhyIdle(*recovery)) return true;
  const std::string& block_id = start.request.block_ids[0];
  repair->EndLoads(&loads_);
  recovery->queue.NotBegun(block_id);
  recovery->in_flight.erase(block_id);
  ForgetQueue(recovery);
  return false;
}

RecoveryManager::Recovery::InFlight* RecoveryManager::FindStarting(Recovery* recovery,
                                                                   const Start& start) {
  const auto found = recovery->in_flight.find(start.request.block_ids[0]);
  if (found == recovery->in_flight.end() || found->second.starting != start.number) return nullptr;
  return &found->second;
}

void RecoveryManager::Recovery::InFlight::EndStart(const std::vector<NodeLoad>& planned,
                                                   RecoveryLoads* all) {
  all->Withdraw(loads);
  loads = planned;
  all->Begin(loads);
  starting = 0;
  for (const std::string& node : std::exchange(ended_parts, {})) EndPart(node, all);
}

void RecoveryManager::Recovery::InFlight::EndPart(const std::string& node, RecoveryLoads* all) {
  if (starting != 0) {
    ended_parts.insert(node);
    return;
  }
  const auto done = std::find_if(loads.begin(), loads.end(),
                                 [&](const NodeLoad& load) { return load.node == node; });
  if (done == loads.end()) return;
  all->End({*done});
  loads.erase(done);
}

void RecoveryManager::Recovery::InFlight::EndLoads(RecoveryLoads* all) const {
  if (starting != 0) return all->Withdraw(loads);
  all->End(loads);
}

absl::Status RecoveryManager::AskIfLost(const Start& start, const absl::Status& why) {
  const bool survivors =
      absl::IsFailedPrecondition(why) && KindOf(why) == WaitKind::kSurvivors && !start.request.copy;
  const TimePoint asked = clock_->Now();
  if (!survivors) return why;
  {
    MutexLock lock(&mutex_);
    if (asked < questions_rest_till_) return why;
  }
  const std::optional<std::string> lost =
      finder_.LostForGood(start.request.block_ids[0], start.own_node);
  const TimePoint answered = clock_->Now();
  if (answered - asked > LossFinder::kPatience / 2) {
    MutexLock lock(&mutex_);
    questions_rest_till_ = answered + kQuestionsRest;
  }
  return lost ? absl::NotFoundError(*lost) : why;
}

}  // namespace ecpipe
