// SPDX-License-Identifier: Apache-2.0
#include "coordinator/repair_coordinator.h"

#include <algorithm>
#include <cstdio>
#include <optional>

#include "common/fault_points.h"
#include "common/log.h"
#include "common/status.h"
#include "coordinator/part_builder.h"
#include "coordinator/random_ids.h"

namespace ecpipe {
namespace {

// Each attempt leaves out the helpers that failed the one before, so this bounds how many dead
// helpers one request may discover.
constexpr uint32_t kMaxHandoutAttempts = 5;

absl::Status Cancelled() { return absl::CancelledError("the repair was cancelled"); }

std::string Short(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", seconds);
  return text;
}

}  // namespace

RepairCoordinator::RepairCoordinator(Catalog* catalog, Journal* journal, HelperGateway* helpers,
                                     const Clock* clock, const Options& options)
    : catalog_(catalog),
      journal_(journal),
      helpers_(helpers),
      clock_(clock),
      options_(options),
      nodes_(clock, options.dead_after, options.racks, options.topology_script),
      links_(clock, options.links),
      busy_(clock),
      planner_(&nodes_, &links_, options.planner) {}

absl::StatusOr<PlannedRepair> RepairCoordinator::Explain(const RepairRequest& request) {
  ECPIPE_ASSIGN_OR_RETURN(const LostBlocks lost, FindLost(catalog_, request.block_ids));
  return planner_.Explain(request, lost);
}

absl::StatusOr<RepairGrant> RepairCoordinator::BeginRepair(const RepairRequest& request,
                                                           uint64_t recovery_id) {
  ECPIPE_ASSIGN_OR_RETURN(const LostBlocks lost, FindLost(catalog_, request.block_ids));
  Refused refused;
  RepairRecord record;
  record.repair_id = RandomRepairId();
  record.block_ids = request.block_ids;
  record.transport = TransportName(request.transport);
  record.requestor = request.requestor;
  record.hosts = request.hosts;
  record.recovery_id = recovery_id;
  record.started_unix_ms = clock_->UnixMillis();
  absl::Status last;
  for (; record.attempt < kMaxHandoutAttempts; ++record.attempt) {
    absl::StatusOr<PlannedRepair> planned = planner_.Plan(request, lost, refused);
    if (!planned.ok()) {
      last = planned.status();
      break;
    }
    record.offset = planned->offset;
    record.bytes = planned->bytes;
    record.scheme = planned->plan.scheme;
    if (record.attempt == 0) {
      ECPIPE_RETURN_IF_ERROR(AddRunning(record, lost.stripe.stripe_id));
    }
    if (last = Annotate(journal_->Record(record), "journal"); !last.ok()) break;
    absl::StatusOr<RepairGrant> grant = HandOut(&record, request, *std::move(planned), &refused);
    if (grant.ok()) return grant;
    last = grant.status();
    if (!Runs(record.repair_id)) break;
  }
  if (TakeRunning(record.repair_id)) {
    End(record, RepairState::kFailed, StatusText(last));
  } else if (!record.scheme.empty()) {
    // Cancelled, and ended so; but this attempt may have gone into the journal after that.
    StoreEnd(&record, RepairState::kFailed, StatusText(last));
  }
  return last;
}

bool RepairCoordinator::Runs(RepairId repair_id) {
  MutexLock lock(&mutex_);
  return running_.contains(repair_id);
}

absl::Status RepairCoordinator::CheckHosts(const RepairRecord& record,
                                           const std::string& stripe_id) {
  for (const auto& [repair_id, running] : running_) {
    if (running.stripe_id != stripe_id) continue;
    for (size_t i = 0; i < running.record.hosts.size(); ++i) {
      const auto has = [](const std::vector<std::string>& ids, const std::string& id) {
        return std::find(ids.begin(), ids.end(), id) != ids.end();
      };
      const std::string& block = running.record.block_ids[i];
      const std::string& host = running.record.hosts[i];
      if (!has(record.block_ids, block) && !has(record.hosts, host)) continue;
      return absl::AbortedError("repair " + RepairIdText(repair_id) + " is storing block " + block +
                                " of the stripe on node " + host);
    }
  }
  return absl::OkStatus();
}

absl::Status RepairCoordinator::AddRunning(const RepairRecord& record,
                                           const std::string& stripe_id) {
  MutexLock lock(&mutex_);
  if (!record.hosts.empty()) ECPIPE_RETURN_IF_ERROR(CheckHosts(record, stripe_id));
  if (running_.size() >= options_.max_running) {
    return absl::ResourceExhaustedError("the coordinator runs its limit of " +
                                        std::to_string(options_.max_running) + " repairs");
  }
  running_[record.repair_id] = Running{
      .record = record, .stripe_id = stripe_id, .last_news = clock_->Now(), .handing_out = true};
  ++counts_.started;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<HelperGateway::Handout>> RepairCoordinator::MakeHandouts(
    const RepairRecord& record, TransportKind transport, const PlannedRepair& planned,
    RepairPart* requestor_part) {
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
  for (size_t i = 0; i < record.hosts.size(); ++i) {
    const auto first_row = static_cast<Row>(i * planned.plan.layout.sub_blocks);
    parts.at(record.hosts[i]).stores = {
        {first_row, record.block_ids[i], planned.stripe.block_bytes}};
  }
  std::vector<HelperGateway::Handout> handouts;
  // In the plan's order, so that a sender tends to know its edges before its receiver dials.
  for (const NodeLoad& load : planned.cost.loads) {
    const auto control = control_addresses.find(load.node);
    RepairPart& part = parts.at(load.node);
    if (control == control_addresses.end()) {
      *requestor_part = std::move(part);
    } else {
      handouts.push_back({{load.node, control->second}, std::move(part)});
    }
  }
  return handouts;
}

absl::StatusOr<RepairGrant> RepairCoordinator::HandOut(RepairRecord* record,
                                                       const RepairRequest& request,
                                                       PlannedRepair planned, Refused* refused) {
  RepairGrant grant;
  ECPIPE_ASSIGN_OR_RETURN(std::vector<HelperGateway::Handout> handouts,
                          MakeHandouts(*record, request.transport, planned, &grant.part));
  std::vector<HelperAddress> helpers;
  std::set<std::string> nodes;
  for (const HelperGateway::Handout& handout : handouts) {
    helpers.push_back(handout.helper);
    nodes.insert(handout.helper.node);
  }
  {
    MutexLock lock(&mutex_);
    const auto found = running_.find(record->repair_id);
    if (found == running_.end()) return Cancelled();
    Running& running = found->second;
    running.record = *record;
    running.helpers = helpers;
    running.unreported = nodes;
    running.last_news = clock_->Now();
    running.busy.reset();  // an attempt does not share nodes with the one before
    running.busy = busy_.Take({nodes.begin(), nodes.end()});
    running.to_move.clear();
    running.failure = absl::OkStatus();
  }
  ECPIPE_RETURN_IF_ERROR(FaultPoint("coordinator.before_handout"));
  const std::vector<absl::Status> outcomes =
      helpers_->StartParts(handouts, options_.handout_timeout);
  absl::Status first_failure;
  for (size_t i = 0; i < outcomes.size(); ++i) {
    if (outcomes[i].ok()) continue;
    if (first_failure.ok()) first_failure = outcomes[i];
    refused->emplace(handouts[i].helper.node, std::string(outcomes[i].message()));
    Log(LogLevel::kWarning, "repair.helper_refused",
        {{"repair", RepairIdText(record->repair_id)},
         {"attempt", std::to_string(record->attempt)},
         {"node", handouts[i].helper.node},
         {"status", StatusText(outcomes[i])}});
  }
  if (!first_failure.ok()) {
    helpers_->CancelRepair(record->repair_id, record->attempt, helpers);
    return first_failure;
  }
  bool cancelled = false;
  {
    MutexLock lock(&mutex_);
    const auto found = running_.find(record->repair_id);
    cancelled = found == running_.end();
    if (!cancelled) found->second.handing_out = false;
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
  grant.planned = std::move(planned);
  Advance(record->repair_id);
  return grant;
}

std::optional<RepairCoordinator::Running> RepairCoordinator::TakeRunning(RepairId repair_id) {
  MutexLock lock(&mutex_);
  const auto found = running_.find(repair_id);
  if (found == running_.end()) return std::nullopt;
  return Take(found);
}

RepairCoordinator::Running RepairCoordinator::Take(std::map<RepairId, Running>::iterator running) {
  const RepairId repair_id = running->first;
  Running taken = std::move(running->second);
  running_.erase(running);
  if (taken.busy != nullptr) {
    taken.busy->Release();
    ended_[repair_id] = {clock_->Now(), taken.busy};
  }
  return taken;
}

void RepairCoordinator::FinishRepair(RepairId repair_id, const absl::Status& status,
                                     uint64_t verified_bytes) {
  bool hosted = false;
  {
    MutexLock lock(&mutex_);
    const auto found = running_.find(repair_id);
    if (found == running_.end()) return;
    const RepairRecord& record = found->second.record;
    hosted = !record.hosts.empty();
    if (hosted && (record.recovery_id != 0 || !absl::IsCancelled(status))) return;
  }
  if (hosted) return EndHosted(repair_id, status);
  const std::optional<Running> ended = TakeRunning(repair_id);
  if (!ended) return;
  if (!status.ok()) {
    helpers_->CancelRepair(repair_id, ended->record.attempt, ended->helpers);
  }
  const bool whole =
      status.ok() && verified_bytes == ended->record.bytes * ended->record.block_ids.size();
  End(ended->record, whole ? RepairState::kDone : RepairState::kFailed,
      status.ok() ? (whole ? "" : "the requestor verified only a part") : StatusText(status));
}

void RepairCoordinator::StoreEnd(RepairRecord* record, RepairState state,
                                 const std::string& detail) {
  record->state = state;
  record->ended_unix_ms = clock_->UnixMillis();
  record->detail = detail;
  if (absl::Status written = journal_->Record(*record); !written.ok()) {
    Log(LogLevel::kError, "journal.failed", {{"status", StatusText(written)}});
  }
}

void RepairCoordinator::End(RepairRecord record, RepairState state, const std::string& detail) {
  StoreEnd(&record, state, detail);
  Log(state == RepairState::kDone ? LogLevel::kInfo : LogLevel::kWarning, "repair.end",
      {{"repair", RepairIdText(record.repair_id)},
       {"state", RepairStateName(state)},
       {"seconds",
        Short(static_cast<double>(record.ended_unix_ms - record.started_unix_ms) / 1000)},
       {"detail", detail}});
  {
    MutexLock lock(&mutex_);
    ++(state == RepairState::kDone ? counts_.done : counts_.failed);
  }
}

absl::Status RepairCoordinator::Register(NodeRecord node) {
  const std::string control_address = node.control_address;
  ECPIPE_RETURN_IF_ERROR(nodes_.Register(std::move(node)));
  helpers_->ForgetConnection(control_address);
  return absl::OkStatus();
}

void RepairCoordinator::ReportPart(const std::string& node, RepairId repair_id, uint32_t attempt,
                                   const absl::Status& status) {
  if (!status.ok() && !absl::IsCancelled(status)) {
    Log(LogLevel::kWarning, "part.failed",
        {{"repair", RepairIdText(repair_id)}, {"node", node}, {"status", StatusText(status)}});
  }
  std::optional<HostedPartEnd> part_end;
  {
    MutexLock lock(&mutex_);
    const auto found = running_.find(repair_id);
    if (found == running_.end() || found->second.record.attempt != attempt) return;
    Running& running = found->second;
    const bool first = running.unreported.erase(node) == 1;
    running.last_news = clock_->Now();
    if (!status.ok() && running.failure.ok()) running.failure = Annotate(status, "node " + node);
    const std::vector<std::string>& hosts = running.record.hosts;
    const auto host = std::find(hosts.begin(), hosts.end(), node);
    if (first && status.ok() && host != hosts.end()) {
      running.to_move.insert(static_cast<Row>(host - hosts.begin()));
    } else if (first && status.ok() && !hosts.empty()) {
      part_end = {running.record.recovery_id, running.record.block_ids[0], node};
    }
  }
  if (part_end) on_hosted_part_end_(*part_end);
  Advance(repair_id);
}

void RepairCoordinator::ReportLinks(const std::string& node, RepairId repair_id,
                                    const std::vector<LinkTiming>& timings) {
  std::shared_ptr<BusyNodes::Hold> busy;
  {
    MutexLock lock(&mutex_);
    if (const auto running = running_.find(repair_id); running != running_.end()) {
      busy = running->second.busy;
    } else if (const auto ended = ended_.find(repair_id); ended != ended_.end()) {
      busy = ended->second.busy;
    }
  }
  if (busy == nullptr || !busy->Has(node)) return;
  for (const LinkTiming& timing : timings) {
    if (!busy->Has(timing.to)) continue;  // a requestor that may never come again, or a lie
    links_.Take(node, timing, !busy->Shared(node) && !busy->Shared(timing.to));
  }
}

absl::StatusOr<RepairRecord> RepairCoordinator::Find(RepairId repair_id) {
  {
    MutexLock lock(&mutex_);
    const auto found = running_.find(repair_id);
    if (found != running_.end()) return found->second.record;
  }
  return journal_->Find(repair_id);
}

RepairCounts RepairCoordinator::counts() {
  MutexLock lock(&mutex_);
  return counts_;
}

}  // namespace ecpipe
