// SPDX-License-Identifier: Apache-2.0
#include "coordinator/repairs/repair_coordinator.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_format.h"
#include "base/process/log.h"
#include "base/status.h"
#include "model/fault.h"

namespace ecpipe {
RepairCoordinator::RepairCoordinator(Catalog* catalog, Journal* journal, HelperGateway* helpers,
                                     const Clock* clock, const Options& options)
    : catalog_(catalog),
      journal_(journal),
      helpers_(helpers),
      clock_(clock),
      options_(options),
      started_(clock->Now()),
      nodes_(clock, options.dead_after, options.racks, options.topology_script),
      links_(clock, options.links),
      busy_(clock),
      planner_(&nodes_, &links_, &corrupt_, options.planner),
      max_running_(options.max_running) {}

absl::StatusOr<PlannedRepair> RepairCoordinator::Explain(const RepairRequest& request) {
  ECPIPE_ASSIGN_OR_RETURN(const LostBlocks lost, Locate(request));
  return planner_.Explain(request, lost);
}

absl::StatusOr<LostBlocks> RepairCoordinator::Locate(const RepairRequest& request) {
  if (request.facts) return FindLost(*request.facts, request.block_ids, &nodes_);
  return FindLost(catalog_, request.block_ids);
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
      return absl::AbortedError("repair " + RepairIdText(repair_id) + " is already storing block " +
                                block + " of the stripe on node " + host);
    }
  }
  return absl::OkStatus();
}

absl::Status RepairCoordinator::CheckRoomForBackground() {
  const auto most = std::max<size_t>(1, static_cast<size_t>(kBackgroundShare * max_running_));
  size_t background = 0;
  for (const auto& [repair_id, running] : running_) {
    if (running.request.background) ++background;
  }
  if (background < most) return absl::OkStatus();
  return absl::ResourceExhaustedError("the coordinator is at its limit of " + std::to_string(most) +
                                      " background repairs");
}

void RepairCoordinator::SetMaxRunning(uint32_t max_running) {
  MutexLock lock(&mutex_);
  max_running_ = max_running;
}

std::set<std::string> RepairCoordinator::RunningBlocks() {
  MutexLock lock(&mutex_);
  std::set<std::string> blocks;
  for (const auto& [repair_id, running] : running_) {
    blocks.insert(running.record.block_ids.begin(), running.record.block_ids.end());
  }
  return blocks;
}

SendingStreams RepairCoordinator::StreamsOf(const std::string& node) {
  MutexLock lock(&mutex_);
  SendingStreams streams;
  for (const auto& [repair_id, running] : running_) {
    for (const auto& [sender, receivers] : running.receivers) {
      if (!running.unreported.contains(sender)) continue;
      streams.of_all += receivers.size();
      if (sender == node) streams.of_node += receivers.size();
    }
  }
  return streams;
}

absl::Status RepairCoordinator::AddRunning(const RepairRecord& record, const RepairRequest& request,
                                           const std::string& stripe_id) {
  MutexLock lock(&mutex_);
  if (!record.hosts.empty()) ECPIPE_RETURN_IF_ERROR(CheckHosts(record, stripe_id));
  if (running_.size() >= max_running_) {
    return absl::ResourceExhaustedError("the coordinator is at its limit of " +
                                        std::to_string(max_running_) + " repairs");
  }
  if (request.background) ECPIPE_RETURN_IF_ERROR(CheckRoomForBackground());
  running_[record.repair_id] = Running{.record = record,
                                       .stripe_id = stripe_id,
                                       .request = request,
                                       .last_news = clock_->Now(),
                                       .handing_out = true};
  ++counts_.started;
  return absl::OkStatus();
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
      status.ok() ? (whole ? "" : "the requestor verified only part of the bytes")
                  : StatusText(status));
}

void RepairCoordinator::StoreEnd(RepairRecord* record, RepairState state,
                                 const std::string& detail) {
  record->state = state;
  record->ended_unix_ms = clock_->UnixMillis();
  record->detail = detail;
  const absl::Status written = journal_->Record(*record);
  if (written.ok()) return;
  Log(LogLevel::kError, "journal.failed", {{"status", StatusText(written)}});
  MutexLock lock(&mutex_);
  if (unwritten_.size() < options_.max_running) unwritten_[record->repair_id] = *record;
}

void RepairCoordinator::StoreUnwritten() {
  std::map<RepairId, RepairRecord> unwritten;
  {
    MutexLock lock(&mutex_);
    unwritten = unwritten_;
  }
  for (const auto& [repair_id, record] : unwritten) {
    // The next ones would fail as well.
    if (!journal_->Record(record).ok()) return;
    MutexLock lock(&mutex_);
    unwritten_.erase(repair_id);
  }
}

void RepairCoordinator::End(RepairRecord record, RepairState state, const std::string& detail) {
  StoreEnd(&record, state, detail);
  Log(state == RepairState::kDone ? LogLevel::kInfo : LogLevel::kWarning, "repair.end",
      {{"repair", RepairIdText(record.repair_id)},
       {"state", RepairStateName(state)},
       {"seconds",
        absl::StrFormat("%.1f",
                        static_cast<double>(record.ended_unix_ms - record.started_unix_ms) / 1000)},
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
    const std::optional<Row> row = RowToStore(running.record, node);
    // Whose receiver has gone can only say so. Why it went others know, and will say.
    const bool knows_why = row || !FaultOf(status).empty();
    absl::Status& failure = knows_why ? running.failure : running.consequence;
    if (failure.ok()) failure = Annotate(FromPeer(status, node), "node " + node);
    if (first && status.ok() && row) {
      running.to_move.insert(*row);
    } else if (first && status.ok() && !running.record.hosts.empty()) {
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

void RepairCoordinator::ReportCorrupt(const std::string& node, RepairId repair_id,
                                      const std::string& block_id, const std::string& reason) {
  if (const std::string at = PlaceOfCorrupt(repair_id, block_id, node); !at.empty()) {
    return NoteCorrupt(
        {block_id, at, reason, clock_->UnixMillis()},
        "its storage system rebuilds the block once it knows; repairs do not read it until then");
  }
  const absl::StatusOr<BlockLocation> place = catalog_->FindBlock(block_id);
  if (!place.ok()) return;
  const std::string& holder = place->stripe.blocks[static_cast<size_t>(place->block_index)].node;
  bool heard = node == holder;
  if (!heard) {
    MutexLock lock(&mutex_);
    const auto running = running_.find(repair_id);
    if (running == running_.end() || running->second.stripe_id != place->stripe.stripe_id) return;
    const std::vector<std::string>& hosts = running->second.record.hosts;
    // A requestor has no node, and hosts are the requestors where there are some.
    heard =
        hosts.empty() ? node.empty() : std::find(hosts.begin(), hosts.end(), node) != hosts.end();
  }
  if (!heard) return;
  NoteCorrupt({block_id, holder, reason, clock_->UnixMillis()},
              "ecpipe repair " + block_id + " --to " + holder);
}

std::vector<StripeFacts::Source> RepairCoordinator::CorruptSources(RepairId repair_id) {
  std::vector<StripeFacts::Source> corrupt;
  MutexLock lock(&mutex_);
  const auto running = running_.find(repair_id);
  if (running == running_.end() || running->second.found_corrupt.empty()) return corrupt;
  const StripeFacts& facts = *running->second.request.facts;
  for (const StripeFacts::Source& source : facts.sources) {
    const std::string block_id = facts.blocks[static_cast<size_t>(source.index)].name;
    for (const std::string& node : nodes_.WithStorage(source.storage_id)) {
      if (!running->second.found_corrupt.contains({block_id, node})) continue;
      corrupt.push_back(source);
      break;
    }
  }
  return corrupt;
}

std::string RepairCoordinator::PlaceOfCorrupt(RepairId repair_id, const std::string& block_id,
                                              const std::string& node) {
  MutexLock lock(&mutex_);
  const auto running = running_.find(repair_id);
  if (running == running_.end()) return "";
  const std::vector<BlockPlace>& places = running->second.places;
  const auto place = std::find_if(places.rbegin(), places.rend(), [&](const BlockPlace& known) {
    return known.block_id == block_id && (node.empty() || known.node == node);
  });
  if (place == places.rend()) return "";
  if (!node.empty()) running->second.found_corrupt.insert({block_id, node});
  return place->node;
}

void RepairCoordinator::NoteCorrupt(const CorruptBlock& block, const std::string& hint) {
  if (!corrupt_.Add(block)) return;
  Log(LogLevel::kError, "block.corrupt",
      {{"block", block.block_id}, {"node", block.node}, {"reason", block.reason}, {"hint", hint}});
}

absl::StatusOr<RepairRecord> RepairCoordinator::Find(RepairId repair_id) {
  {
    MutexLock lock(&mutex_);
    const auto found = running_.find(repair_id);
    if (found != running_.end()) return found->second.record;
    const auto unwritten = unwritten_.find(repair_id);
    if (unwritten != unwritten_.end()) return unwritten->second;
  }
  return journal_->Find(repair_id);
}

RepairCounts RepairCoordinator::counts() {
  MutexLock lock(&mutex_);
  return counts_;
}

}  // namespace ecpipe
