// SPDX-License-Identifier: Apache-2.0
#include "coordinator/repair_coordinator.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
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
    record.offset = planned->plan.grid.offset;
    record.bytes = planned->plan.grid.bytes;
    record.scheme = planned->plan.scheme;
    if (record.attempt == 0) ECPIPE_RETURN_IF_ERROR(AddRunning(record));
    if (last = Annotate(journal_->Record(record), "journal"); !last.ok()) break;
    absl::StatusOr<RepairGrant> grant = HandOut(&record, request, *std::move(planned), &refused);
    if (grant.ok()) return grant;
    last = grant.status();
  }
  if (record.attempt > 0 || !record.scheme.empty()) {
    TakeRunning(record.repair_id);
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
  running_[record.repair_id] = Running{.record = record, .last_news = clock_->Now()};
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
  for (Row row = 0; row < record.hosts.size(); ++row) {
    parts.at(record.hosts[row]).stores = {
        {row, record.block_ids[row], planned.stripe.block_bytes}};
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
    running_[record->repair_id] = Running{.record = *record,
                                          .helpers = helpers,
                                          .unreported = nodes,
                                          .last_news = clock_->Now(),
                                          .busy = busy_.Take({nodes.begin(), nodes.end()}),
                                          .handing_out = true};
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
       {"block", request.block_ids[0]},
       {"blocks", std::to_string(request.block_ids.size())},
       {"scheme", record->scheme},
       {"transport", record->transport},
       {"bytes", std::to_string(record->bytes)},
       {"helpers", std::to_string(helpers.size())}});
  grant.repair_id = record->repair_id;
  grant.planned = std::move(planned);
  {
    MutexLock lock(&mutex_);
    const auto found = running_.find(record->repair_id);
    if (found != running_.end()) found->second.handing_out = false;
  }
  Advance(record->repair_id);
  return grant;
}

std::optional<RepairCoordinator::Running> RepairCoordinator::TakeRunning(RepairId repair_id) {
  MutexLock lock(&mutex_);
  const auto found = running_.find(repair_id);
  if (found == running_.end()) return std::nullopt;
  std::optional<Running> taken = std::move(found->second);
  running_.erase(found);
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
  {
    MutexLock lock(&mutex_);
    const auto found = running_.find(repair_id);
    if (found == running_.end() || found->second.record.attempt != attempt) return;
    Running& running = found->second;
    running.unreported.erase(node);
    running.last_news = clock_->Now();
    if (!status.ok() && running.failure.ok()) running.failure = Annotate(status, "node " + node);
    const std::vector<std::string>& hosts = running.record.hosts;
    const auto host = std::find(hosts.begin(), hosts.end(), node);
    if (status.ok() && host != hosts.end()) {
      running.stored.insert(static_cast<Row>(host - hosts.begin()));
    }
  }
  Advance(repair_id);
}

void RepairCoordinator::ReportLinks(const std::string& node, Duration part_took,
                                    const std::vector<LinkTiming>& timings) {
  // The report took a while, too.
  const TimePoint begun = clock_->Now() - part_took - std::chrono::seconds(1);
  for (const LinkTiming& timing : timings) {
    if (!nodes_.Find(timing.to)) continue;  // a requestor that may never come again
    const bool shared = busy_.SharedSince(node, begun) || busy_.SharedSince(timing.to, begun);
    links_.Take(node, timing, !shared);
  }
}

// ---- Hosted repairs --------------------------------------------------------------------------

void RepairCoordinator::Advance(RepairId repair_id) {
  RepairRecord record;
  std::set<Row> to_move;
  absl::Status failure;
  {
    MutexLock lock(&mutex_);
    const auto found = running_.find(repair_id);
    if (found == running_.end()) return;
    const Running& running = found->second;
    if (running.record.hosts.empty() || running.handing_out) return;
    record = running.record;
    failure = running.failure;
    std::set_difference(running.stored.begin(), running.stored.end(), running.moved.begin(),
                        running.moved.end(), std::inserter(to_move, to_move.end()));
  }
  std::set<Row> moved;
  for (const Row row : to_move) {
    const absl::Status status = catalog_->MoveBlock(record.block_ids[row], record.hosts[row]);
    if (status.ok()) moved.insert(row);
    if (failure.ok()) failure = status;
  }
  bool all = false;
  {
    MutexLock lock(&mutex_);
    const auto found = running_.find(repair_id);
    if (found == running_.end()) return;
    found->second.moved.merge(moved);
    all = found->second.moved.size() == record.hosts.size();
  }
  if (all || !failure.ok()) EndHosted(repair_id, all ? absl::OkStatus() : failure);
}

void RepairCoordinator::EndHosted(RepairId repair_id, const absl::Status& status) {
  const std::optional<Running> ended = TakeRunning(repair_id);
  if (!ended) return;
  const RepairRecord& record = ended->record;
  std::string detail;
  if (!status.ok()) {
    std::vector<HelperAddress> helpers = ended->helpers;
    // Of an adopted repair only the hosts are known; the others end when these close their streams.
    for (const std::string& host : record.hosts) {
      const std::optional<NodeView> view = nodes_.Find(host);
      if (ended->helpers.empty() && view) helpers.push_back({host, view->record.control_address});
    }
    helpers_->CancelRepair(repair_id, record.attempt, helpers);
    detail = StatusText(status);
    if (!ended->moved.empty()) {
      detail += "; stored " + std::to_string(ended->moved.size()) + " of " +
                std::to_string(record.hosts.size()) + " blocks";
    }
  }
  End(record, status.ok() ? RepairState::kDone : RepairState::kFailed, detail);
  for (Row row = 0; row < record.hosts.size(); ++row) {
    const bool moved = ended->moved.contains(row);
    on_hosted_end_({record.recovery_id, record.block_ids[row], moved ? absl::OkStatus() : status});
  }
}

void RepairCoordinator::Adopt(const std::vector<RepairRecord>& interrupted) {
  for (RepairRecord record : interrupted) {
    if (record.hosts.empty()) continue;
    record.state = RepairState::kRunning;
    record.ended_unix_ms = 0;
    Running running{.record = record, .last_news = clock_->Now()};
    for (Row row = 0; row < record.hosts.size(); ++row) {
      const absl::StatusOr<BlockLocation> place = catalog_->FindBlock(record.block_ids[row]);
      const bool moved =
          place.ok() && place->stripe.blocks[static_cast<size_t>(place->block_index)].node ==
                            record.hosts[row];
      if (moved) {
        running.moved.insert(row);
      } else {
        running.unreported.insert(record.hosts[row]);
      }
    }
    {
      MutexLock lock(&mutex_);
      running_[record.repair_id] = std::move(running);
    }
    Advance(record.repair_id);
  }
}

void RepairCoordinator::CancelHosted(uint64_t recovery_id) {
  std::vector<RepairId> ids;
  {
    MutexLock lock(&mutex_);
    for (const auto& [repair_id, running] : running_) {
      const bool hosted = !running.record.hosts.empty();
      if (hosted && running.record.recovery_id == recovery_id) ids.push_back(repair_id);
    }
  }
  for (const RepairId id : ids) EndHosted(id, absl::CancelledError("the recovery was cancelled"));
}

std::optional<absl::Status> RepairCoordinator::Hopeless(const Running& running, TimePoint now) {
  const std::vector<std::string>& hosts = running.record.hosts;
  if (hosts.empty() || running.handing_out) return std::nullopt;
  for (const std::string& node : running.unreported) {
    const std::optional<NodeView> view = nodes_.Find(node);
    if (view && view->state == NodeState::kDead) {
      return absl::UnavailableError("node " + node + " died");
    }
  }
  // After its helpers have ended a host has little left to do.
  std::string silent;
  for (const std::string& node : running.unreported) {
    if (std::find(hosts.begin(), hosts.end(), node) == hosts.end()) return std::nullopt;
    silent += (silent.empty() ? "" : ", ") + node;
  }
  if (now - running.last_news <= options_.abandon_after) return std::nullopt;
  return absl::DeadlineExceededError("no word of how the repair ended from " + silent);
}

void RepairCoordinator::Expire() {
  std::vector<RepairRecord> abandoned;
  std::map<RepairId, absl::Status> hopeless;
  const TimePoint now = clock_->Now();
  {
    MutexLock lock(&mutex_);
    for (auto it = running_.begin(); it != running_.end();) {
      Running& running = it->second;
      if (const auto verdict = Hopeless(running, now)) hopeless[it->first] = *verdict;
      if (!running.record.hosts.empty()) {
        ++it;
        continue;
      }
      std::erase_if(running.unreported, [&](const std::string& node) {
        const std::optional<NodeView> view = nodes_.Find(node);
        return !view || view->state == NodeState::kDead;
      });
      if (running.unreported.empty() && now - running.last_news > options_.abandon_after) {
        abandoned.push_back(running.record);
        it = running_.erase(it);
      } else {
        ++it;
      }
    }
  }
  for (const auto& [repair_id, verdict] : hopeless) EndHosted(repair_id, verdict);
  for (const RepairRecord& record : abandoned) {
    End(record, RepairState::kFailed, "the requestor never said how it ended");
  }
  if (absl::Status trimmed = journal_->Trim(options_.journal_keep); !trimmed.ok()) {
    Log(LogLevel::kError, "journal.failed", {{"status", StatusText(trimmed)}});
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
