// SPDX-License-Identifier: Apache-2.0
#include "coordinator/repair_coordinator.h"

#include <sys/random.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "common/check.h"
#include "common/fault_points.h"
#include "common/log.h"
#include "common/status.h"
#include "common/tcp_socket.h"
#include "coordinator/part_builder.h"

namespace ecpipe {
namespace {

// Each attempt leaves out the helpers that failed the one before, so this bounds how many dead
// helpers one request may discover.
constexpr uint32_t kMaxHandoutAttempts = 5;

void FillRandom(void* bytes, size_t count) {
  ECPIPE_CHECK(::getrandom(bytes, count, 0) == static_cast<ssize_t>(count));
}

EdgeToken RandomToken() {
  EdgeToken token;
  FillRandom(token.data(), token.size());
  return token;
}

RepairId RandomRepairId() {
  RepairId repair_id = 0;
  while (repair_id == 0) FillRandom(&repair_id, sizeof repair_id);
  return repair_id;
}

std::string Short(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", seconds);
  return text;
}

// A requestor that bears a node's name would have its hop run there.
std::string RequestorName(const std::string& name) {
  return "requestor:" + (name.empty() ? std::string("anonymous") : name);
}

}  // namespace

RepairCoordinator::RepairCoordinator(Catalog* catalog, Journal* journal, HelperGateway* helpers,
                                     const Clock* clock, const Options& options)
    : catalog_(catalog),
      journal_(journal),
      helpers_(helpers),
      clock_(clock),
      options_(options),
      nodes_(options.dead_after) {}

absl::StatusOr<SliceGrid> RepairCoordinator::GridFor(const RepairRequest& request,
                                                     uint64_t block_bytes) const {
  if (request.offset >= block_bytes || request.bytes > block_bytes - request.offset) {
    return absl::InvalidArgumentError(
        "bytes [" + std::to_string(request.offset) + ", " +
        (request.bytes == 0
             ? "end"
             : std::to_string(request.offset) + " + " + std::to_string(request.bytes)) +
        ") are not within the block's " + std::to_string(block_bytes) + " bytes");
  }
  SliceGrid grid;
  grid.offset = request.offset;
  grid.bytes = request.bytes == 0 ? block_bytes - request.offset : request.bytes;
  grid.slice_bytes = request.slice_bytes == 0 ? options_.default_slice_bytes : request.slice_bytes;
  ECPIPE_RETURN_IF_ERROR(grid.Validate());
  return grid;
}

std::string RepairCoordinator::Unfit(const std::string& node, TransportKind transport,
                                     const Refused& refused) {
  if (const auto found = refused.find(node); found != refused.end()) return found->second;
  const TimePoint now = clock_->Now();
  MutexLock lock(&mutex_);
  const NodeRecord* record = nodes_.Find(node);
  if (record == nullptr) return "its helper has not registered";
  switch (nodes_.State(node, now)) {
    case NodeState::kDead:
      return "no heartbeat for " + Short(Seconds(now - record->last_heartbeat)) + " s";
    case NodeState::kDraining:
      return "its helper is shutting down";
    case NodeState::kLive:
      break;
  }
  if (transport == TransportKind::kRedis && record->redis_address.empty()) {
    return "its helper offers no redis transport";
  }
  return "";
}

absl::Status RepairCoordinator::FindSurvivors(const RepairRequest& request,
                                              const BlockLocation& location, const Refused& refused,
                                              PlanRequest* plan_request) {
  const std::vector<BlockPlace>& blocks = location.stripe.blocks;
  std::string reasons;
  std::vector<int> survivors;
  const bool direct = request.scheme == "direct";
  for (int i = 0; i < static_cast<int>(blocks.size()); ++i) {
    if ((i == location.block_index) != direct) continue;
    const BlockPlace& place = blocks[static_cast<size_t>(i)];
    const std::string reason = Unfit(place.node, request.transport, refused);
    if (reason.empty()) {
      survivors.push_back(i);
    } else {
      reasons += "; " + place.block_id + " on " + place.node + ": " + reason;
    }
  }
  const auto refuse = [&](const std::string& what) {
    return absl::FailedPreconditionError(what + reasons);
  };
  if (direct) {
    if (survivors.empty()) return refuse("block " + request.block_id + " cannot be read directly");
    plan_request->equation = {{location.block_index}, {{location.block_index, {1}}}};
    return absl::OkStatus();
  }
  {
    // Those who do least come first.
    MutexLock lock(&mutex_);
    const auto load = [&](int block) ABSL_NO_THREAD_SAFETY_ANALYSIS {
      return nodes_.Find(blocks[static_cast<size_t>(block)].node)->active_sessions;
    };
    std::stable_sort(survivors.begin(), survivors.end(),
                     [&](int a, int b) { return load(a) < load(b); });
  }
  const ErasureCode& code = *plan_request->code;
  const int failed[] = {location.block_index};
  absl::StatusOr<RepairEquation> equation = code.Equation(failed, survivors);
  if (absl::IsFailedPrecondition(equation.status())) {
    return refuse(
        "block " + request.block_id + " cannot be repaired now: k = " + std::to_string(code.k()) +
        " blocks are needed, " + std::to_string(survivors.size()) + " survivors can be used");
  }
  ECPIPE_ASSIGN_OR_RETURN(plan_request->equation, std::move(equation));
  plan_request->survivors = std::move(survivors);
  return absl::OkStatus();
}

absl::StatusOr<PlanRequest> RepairCoordinator::MakeRequest(const RepairRequest& request,
                                                           const BlockLocation& location,
                                                           const Refused& refused) {
  const Stripe& stripe = location.stripe;
  ECPIPE_ASSIGN_OR_RETURN(const std::shared_ptr<const ErasureCode> code, codes_.Get(stripe.code));
  if (static_cast<int>(stripe.blocks.size()) != code->n()) {
    return absl::InternalError("stripe " + stripe.stripe_id + " has " +
                               std::to_string(stripe.blocks.size()) + " blocks, its code " +
                               code->name() + " needs " + std::to_string(code->n()));
  }
  PlanRequest plan_request;
  plan_request.scheme = request.scheme.empty() ? options_.default_scheme : request.scheme;
  ECPIPE_ASSIGN_OR_RETURN(plan_request.grid, GridFor(request, stripe.block_bytes));
  plan_request.code = code;
  ECPIPE_RETURN_IF_ERROR(FindSurvivors(request, location, refused, &plan_request));
  plan_request.cluster.default_bytes_per_second = options_.link_bytes_per_second;
  plan_request.cluster.links = options_.links;
  for (const BlockPlace& place : stripe.blocks) plan_request.block_nodes.push_back(place.node);
  plan_request.requestors = {RequestorName(request.requestor)};
  plan_request.cluster.nodes.push_back(
      {.node = plan_request.requestors[0], .rack = request.requestor_rack});
  MutexLock lock(&mutex_);
  for (const BlockPlace& place : stripe.blocks) {
    const NodeRecord* record = nodes_.Find(place.node);
    if (record == nullptr) continue;
    plan_request.cluster.nodes.push_back({.node = place.node, .rack = record->rack});
  }
  return plan_request;
}

absl::StatusOr<PlannedRepair> RepairCoordinator::Plan(const PlanRequest& request,
                                                      const Stripe& stripe) {
  PlannedRepair planned;
  ECPIPE_ASSIGN_OR_RETURN(planned.plan, ChoosePlan(request));
  planned.cost = EstimateCost(planned.plan, request.cluster);
  planned.stripe = stripe;
  for (const PlanNode& node : request.cluster.nodes) planned.racks[node.node] = node.rack;
  return planned;
}

absl::StatusOr<PlannedRepair> RepairCoordinator::Explain(const RepairRequest& request) {
  ECPIPE_ASSIGN_OR_RETURN(const BlockLocation location, catalog_->FindBlock(request.block_id));
  ECPIPE_ASSIGN_OR_RETURN(const PlanRequest plan_request, MakeRequest(request, location, {}));
  ECPIPE_ASSIGN_OR_RETURN(PlannedRepair planned, Plan(plan_request, location.stripe));
  if (planned.plan.scheme != "direct") {
    ECPIPE_ASSIGN_OR_RETURN(planned.predictions, PredictAll(plan_request));
  }
  return planned;
}

absl::StatusOr<RepairGrant> RepairCoordinator::BeginRepair(const RepairRequest& request) {
  ECPIPE_ASSIGN_OR_RETURN(const BlockLocation location, catalog_->FindBlock(request.block_id));
  Refused refused;
  RepairRecord record;
  record.repair_id = RandomRepairId();
  record.block_ids = {request.block_id};
  record.transport = TransportName(request.transport);
  record.requestor = request.requestor;
  record.started_unix_ms = clock_->UnixMillis();
  absl::Status last;
  for (; record.attempt < kMaxHandoutAttempts; ++record.attempt) {
    absl::StatusOr<PlannedRepair> planned;
    absl::StatusOr<PlanRequest> plan_request = MakeRequest(request, location, refused);
    if (plan_request.ok()) {
      planned = Plan(*plan_request, location.stripe);
    } else {
      planned = plan_request.status();
    }
    if (!planned.ok()) {
      last = planned.status();
      break;
    }
    record.offset = planned->plan.grid.offset;
    record.bytes = planned->plan.grid.bytes;
    record.scheme = planned->plan.scheme;
    if (record.attempt == 0) {
      ECPIPE_RETURN_IF_ERROR(AddRunning(record));
      if (last = Annotate(journal_->Record(record), "journal"); !last.ok()) break;
    }
    absl::StatusOr<RepairGrant> grant = HandOut(&record, request, *std::move(planned), &refused);
    if (grant.ok()) return grant;
    last = grant.status();
  }
  if (record.attempt > 0 || !record.scheme.empty()) {
    {
      MutexLock lock(&mutex_);
      running_.erase(record.repair_id);
    }
    End(record, RepairState::kFailed, StatusText(last));
  }
  return last;
}

absl::Status RepairCoordinator::AddRunning(const RepairRecord& record) {
  MutexLock lock(&mutex_);
  if (running_.size() >= options_.max_running) {
    return absl::ResourceExhaustedError("the coordinator runs its limit of " +
                                        std::to_string(options_.max_running) + " repairs");
  }
  running_[record.repair_id] = Running{record, {}, {}, clock_->Now()};
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
  {
    MutexLock lock(&mutex_);
    for (const NodeLoad& load : planned.cost.loads) {
      const NodeRecord* node = nodes_.Find(load.node);
      if (node == nullptr) continue;
      control_addresses[load.node] = node->control_address;
      context.addresses[load.node] =
          transport == TransportKind::kRedis ? node->redis_address : node->data_address;
    }
  }
  ECPIPE_ASSIGN_OR_RETURN(auto parts, BuildParts(planned.plan, context));
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
    running_[record->repair_id] = Running{*record, helpers, nodes, clock_->Now()};
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
  Log(LogLevel::kInfo, "repair.begin",
      {{"repair", RepairIdText(record->repair_id)},
       {"attempt", std::to_string(record->attempt)},
       {"block", request.block_id},
       {"scheme", record->scheme},
       {"transport", record->transport},
       {"bytes", std::to_string(record->bytes)},
       {"helpers", std::to_string(helpers.size())}});
  grant.planned = std::move(planned);
  return grant;
}

void RepairCoordinator::FinishRepair(RepairId repair_id, const absl::Status& status,
                                     uint64_t verified_bytes) {
  std::optional<Running> ended;
  {
    MutexLock lock(&mutex_);
    const auto found = running_.find(repair_id);
    if (found == running_.end()) return;
    ended = std::move(found->second);
    running_.erase(found);
  }
  if (!status.ok()) {
    helpers_->CancelRepair(repair_id, ended->record.attempt, ended->helpers);
  }
  const bool whole = status.ok() && verified_bytes == ended->record.bytes;
  End(ended->record, whole ? RepairState::kDone : RepairState::kFailed,
      status.ok() ? (whole ? "" : "the requestor verified only a part") : StatusText(status));
}

void RepairCoordinator::End(RepairRecord record, RepairState state, const std::string& detail) {
  record.state = state;
  record.ended_unix_ms = clock_->UnixMillis();
  record.detail = detail;
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
  if (absl::Status written = journal_->Record(record); !written.ok()) {
    Log(LogLevel::kError, "journal.failed", {{"status", StatusText(written)}});
  }
}

std::string RepairCoordinator::ConfiguredRack(const NodeRecord& node) const {
  if (const auto by_id = options_.racks.find(node.node_id); by_id != options_.racks.end()) {
    return by_id->second;
  }
  const absl::StatusOr<HostPort> control = ParseHostPort(node.control_address);
  if (!control.ok()) return "";
  const auto by_host = options_.racks.find(control->host);
  return by_host == options_.racks.end() ? "" : by_host->second;
}

absl::Status RepairCoordinator::Register(NodeRecord node) {
  const TimePoint now = clock_->Now();
  if (std::string rack = ConfiguredRack(node); !rack.empty()) node.rack = std::move(rack);
  {
    MutexLock lock(&mutex_);
    ECPIPE_ASSIGN_OR_RETURN(const RegisterOutcome outcome, nodes_.Register(node, now));
    if (outcome == RegisterOutcome::kReplacedLive) {
      Log(LogLevel::kWarning, "node.replaced",
          {{"node", node.node_id}, {"hint", "restarted, or two helpers have one node_id"}});
    }
  }
  helpers_->ForgetConnection(node.control_address);
  Log(LogLevel::kInfo, "node.registered",
      {{"node", node.node_id},
       {"rack", node.rack},
       {"control", node.control_address},
       {"data", node.data_address},
       {"blocks", std::to_string(node.block_count)}});
  return absl::OkStatus();
}

absl::Status RepairCoordinator::Heartbeat(const std::string& node, uint64_t incarnation,
                                          const NodeReport& report) {
  MutexLock lock(&mutex_);
  return nodes_.Heartbeat(node, incarnation, report, clock_->Now());
}

void RepairCoordinator::ReportPart(const std::string& node, RepairId repair_id, uint32_t attempt,
                                   const absl::Status& status) {
  if (!status.ok() && !absl::IsCancelled(status)) {
    Log(LogLevel::kWarning, "part.failed",
        {{"repair", RepairIdText(repair_id)}, {"node", node}, {"status", StatusText(status)}});
  }
  MutexLock lock(&mutex_);
  const auto found = running_.find(repair_id);
  if (found == running_.end() || found->second.record.attempt != attempt) return;
  found->second.unreported.erase(node);
  found->second.last_news = clock_->Now();
}

void RepairCoordinator::Expire() {
  std::vector<RepairRecord> abandoned;
  const TimePoint now = clock_->Now();
  {
    MutexLock lock(&mutex_);
    for (auto it = running_.begin(); it != running_.end();) {
      Running& running = it->second;
      std::erase_if(running.unreported,
                    [&](const std::string& node) ABSL_NO_THREAD_SAFETY_ANALYSIS {
                      return nodes_.State(node, now) == NodeState::kDead;
                    });
      if (running.unreported.empty() && now - running.last_news > options_.abandon_after) {
        abandoned.push_back(running.record);
        it = running_.erase(it);
      } else {
        ++it;
      }
    }
  }
  for (const RepairRecord& record : abandoned) {
    End(record, RepairState::kFailed, "the requestor never said how it ended");
  }
  if (absl::Status trimmed = journal_->Trim(options_.journal_keep); !trimmed.ok()) {
    Log(LogLevel::kError, "journal.failed", {{"status", StatusText(trimmed)}});
  }
}

RepairCounts RepairCoordinator::counts() {
  MutexLock lock(&mutex_);
  return counts_;
}

std::vector<RepairCoordinator::NodeView> RepairCoordinator::Nodes() {
  const TimePoint now = clock_->Now();
  MutexLock lock(&mutex_);
  std::vector<NodeView> views;
  for (const NodeRecord& record : nodes_.All()) {
    views.push_back(
        {record, nodes_.State(record.node_id, now), Seconds(now - record.last_heartbeat)});
  }
  return views;
}

}  // namespace ecpipe
