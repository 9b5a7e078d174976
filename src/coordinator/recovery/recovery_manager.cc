// SPDX-License-Identifier: Apache-2.0
#include "coordinator/recovery/recovery_manager.h"

#include <algorithm>
#include <utility>

#include "base/process/log.h"
#include "base/status.h"

namespace ecpipe {
namespace {

constexpr int kKeptRecoveries = 100;  // that have ended
constexpr Duration kNodesAge = std::chrono::milliseconds(100);
constexpr Duration kListAgain = std::chrono::seconds(5);  // after the catalog could not be read

std::string IdText(RecoveryId id) { return std::to_string(id); }

void CountHosts(const std::vector<std::string>& hosts, size_t rack_count, LiveRacks* racks) {
  racks->hosts.assign(rack_count, 0);
  racks->all_hosts = hosts.size();
  bool unknown = false;
  for (const std::string& host : hosts) {
    const auto rack = racks->of.find(host);
    if (rack == racks->of.end()) {
      unknown = true;
    } else if (racks->hosts[rack->second]++ == 0) {
      ++racks->with_hosts;
    }
  }
  if (unknown) ++racks->with_hosts;
}

}  // namespace

RecoveryManager::RecoveryManager(Catalog* catalog, Journal* journal, RepairCoordinator* repairs,
                                 HelperGateway* helpers, HostedNews* news, const Clock* clock,
                                 const Options& options)
    : catalog_(catalog),
      journal_(journal),
      repairs_(repairs),
      news_(news),
      clock_(clock),
      options_(options),
      finder_(catalog, helpers, &repairs->nodes()),
      started_(clock->Now()),
      threads_for_starts_([news] { news->Wake(); }) {}

RecoveryManager::~RecoveryManager() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  news_->Wake();
  if (thread_.joinable()) thread_.join();
}

absl::Status RecoveryManager::Open(std::vector<RepairRecord> interrupted) {
  ECPIPE_ASSIGN_OR_RETURN(const std::vector<RecoveryRecord> records,
                          journal_->Recoveries(kKeptRecoveries));
  {
    MutexLock lock(&mutex_);
    for (const RecoveryRecord& record : records) {
      Recovery& recovery = Add(record);
      if (Ended(record.state)) {
        recovery.list_after.reset();
        continue;
      }
      for (const RepairRecord& repair : interrupted) {
        if (repair.recovery_id != record.recovery_id) continue;
        recovery.adopted.insert(repair.block_ids.begin(), repair.block_ids.end());
      }
      Log(LogLevel::kInfo, "recovery.resumed",
          {{"recovery", IdText(record.recovery_id)},
           {"node", record.request.node},
           {"under_way", std::to_string(recovery.adopted.size())}});
    }
    for (RepairRecord& repair : interrupted) repair.cause = CauseOfAdopted(repair);
    TellKeptOut();
  }
  repairs_->Adopt(interrupted);
  thread_ = Thread([this] { Run(); });
  return absl::OkStatus();
}

RepairCause RecoveryManager::CauseOf(RecoveryKind kind) {
  switch (kind) {
    case RecoveryKind::kRebuild:
      return RepairCause::kNodeLoss;
    case RecoveryKind::kMove:
      return RepairCause::kDrain;
    case RecoveryKind::kMaintenance:
      return RepairCause::kMaintenance;
  }
  return RepairCause::kNodeLoss;
}

RepairCause RecoveryManager::CauseOfAdopted(const RepairRecord& adopted) {
  if (adopted.recovery_id == 0) return CauseOfStoring(adopted.block_ids, repairs_->corrupt());
  const auto recovery = recoveries_.find(adopted.recovery_id);
  return recovery == recoveries_.end() ? RepairCause::kNodeLoss
                                       : CauseOf(recovery->second->record.request.kind);
}

RecoveryManager::Recovery* RecoveryManager::Find(RecoveryId id) {
  const auto found = recoveries_.find(id);
  return found == recoveries_.end() ? nullptr : found->second.get();
}

RecoveryManager::Recovery& RecoveryManager::Add(const RecoveryRecord& record) {
  auto& recovery = recoveries_[record.recovery_id];
  recovery = std::make_unique<Recovery>(options_.queue);
  recovery->record = record;
  return *recovery;
}

absl::StatusOr<RecoveryId> RecoveryManager::Begin(const RecoveryRequest& request, IfLive if_live) {
  ECPIPE_ASSIGN_OR_RETURN(RecoveryRecord record, Prepare(request, if_live));
  return Begin(std::move(record));
}

absl::StatusOr<RecoveryId> RecoveryManager::Begin(RecoveryRecord record) {
  const RecoveryRequest& request = record.request;
  {
    MutexLock lock(&mutex_);
    ECPIPE_RETURN_IF_ERROR(CheckNoOther(request.node));  // another may have come meanwhile
    record.recovery_id = recoveries_.empty() ? 1 : recoveries_.rbegin()->first + 1;
    ECPIPE_RETURN_IF_ERROR(
        Store(record, "the recovery of node " + request.node + " has not begun"));
    Add(record);
    if (request.kind == RecoveryKind::kMove) TakeOverDrains(record.recovery_id, request.node);
    if (record.keeps_out) TellKeptOut();
    // What the journal has not taken yet is nowhere else.
    std::erase_if(recoveries_, [&, unstored = unstored_](const auto& kept) {
      const RecoveryRecord& old = kept.second->record;
      return Ended(old.state) && !old.keeps_out && kept.second->in_flight.empty() &&
             kept.first + kKeptRecoveries <= record.recovery_id && !unstored.contains(kept.first);
    });
  }
  Log(LogLevel::kInfo, "recovery.begin",
      {{"recovery", IdText(record.recovery_id)},
       {"node", request.node},
       {"kind", RecoveryKindName(request.kind)},
       {"scheme", request.scheme},
       {"policy", RecoveryPolicyName(request.policy)}});
  news_->Wake();
  ECPIPE_RETURN_IF_ERROR(Sync("recovery " + IdText(record.recovery_id) + " has begun"));
  return record.recovery_id;
}

absl::Status RecoveryManager::Store(const RecoveryRecord& record, const std::string& what) {
  const absl::Status stored = journal_->RecordRecovery(record);
  if (stored.ok()) return stored;
  std::string text = what + ", for the journal did not take it: " + std::string(stored.message());
  if (absl::IsUnknown(stored)) {
    text +=
        "; when the coordinator starts again it may find the change in the journal all the same";
  }
  if (!absl::IsInvalidArgument(stored)) {
    text += "; see to the disk of [coordinator] data_directory, then ask again";
  }
  return absl::Status(stored.code(), text);
}

void RecoveryManager::StoreIfPossible(const RecoveryRecord& record) {
  const absl::Status stored = journal_->RecordRecovery(record);
  unsynced_ = true;
  if (stored.ok()) return;
  Log(LogLevel::kError, "journal.failed", {{"status", StatusText(stored)}});
  unstored_.insert(record.recovery_id);
}

absl::Status RecoveryManager::Sync(const std::string& what) {
  const absl::Status synced = journal_->Sync();
  if (synced.ok()) return synced;
  return absl::Status(synced.code(),
                      what + ", but a power cut may undo it: " + std::string(synced.message()) +
                          "; see to the disk of [coordinator] data_directory");
}

void RecoveryManager::SyncIfNeeded(TimePoint now) {
  {
    MutexLock lock(&mutex_);
    if (now < sync_again_at_ || !std::exchange(unsynced_, false)) return;
    for (const RecoveryId id : std::exchange(unstored_, {})) {
      if (const Recovery* const recovery = Find(id)) StoreIfPossible(recovery->record);
    }
    unsynced_ = !unstored_.empty();
    if (unsynced_) sync_again_at_ = clock_->Now() + kSyncAgain;
  }
  const absl::Status synced = journal_->Sync();
  if (synced.ok()) return;
  Log(LogLevel::kError, "journal.failed", {{"status", StatusText(synced)}});
  sync_again_at_ = clock_->Now() + kSyncAgain;
  MutexLock lock(&mutex_);
  unsynced_ = true;
}

absl::Status RecoveryManager::CheckMayChange(const RecoveryRecord& record, RecoveryState to) {
  if (Ended(record.state)) {
    return absl::FailedPreconditionError("recovery " + IdText(record.recovery_id) + " is " +
                                         RecoveryStateName(record.state));
  }
  if (to == RecoveryState::kPaused && InMaintenance(record)) {
    const std::string& node = record.request.node;
    return absl::FailedPreconditionError(
        "node " + node +
        " is in maintenance, and nothing runs that could pause; to set another end: ecpipe nodes "
        "maintain " +
        node + " --for TIME");
  }
  return absl::OkStatus();
}

absl::Status RecoveryManager::Change(RecoveryId id, RecoveryState to) {
  {
    MutexLock lock(&mutex_);
    Recovery* const found = Find(id);
    if (found == nullptr) return absl::NotFoundError("there is no recovery " + IdText(id));
    RecoveryRecord& kept = found->record;
    ECPIPE_RETURN_IF_ERROR(CheckMayChange(kept, to));
    RecoveryRecord changed = kept;
    changed.state = to;
    if (Ended(to)) changed.ended_unix_ms = clock_->UnixMillis();
    if (to == RecoveryState::kCancelled) changed.keeps_out = false;
    ECPIPE_RETURN_IF_ERROR(Store(
        changed, "recovery " + IdText(id) + " is " + RecoveryStateName(kept.state) + " as before"));
    kept = std::move(changed);
    if (Ended(to)) ForgetQueue(found);
    TellKeptOut();
  }
  Log(LogLevel::kInfo, "recovery.changed",
      {{"recovery", IdText(id)}, {"state", RecoveryStateName(to)}});
  news_->Wake();
  if (to == RecoveryState::kCancelled) repairs_->CancelHosted(id);
  return Sync("recovery " + IdText(id) + " is " + RecoveryStateName(to));
}

absl::Status RecoveryManager::Pause(RecoveryId id) { return Change(id, RecoveryState::kPaused); }
absl::Status RecoveryManager::Resume(RecoveryId id) { return Change(id, RecoveryState::kRunning); }
absl::Status RecoveryManager::Cancel(RecoveryId id) {
  return Change(id, RecoveryState::kCancelled);
}

// ---- The thread -----------------------------------------------------------------------------

void RecoveryManager::Run() {
  constexpr auto kIdle = std::chrono::milliseconds(250);  // nodes come and go, pauses end
  bool worked = true;
  while (true) {
    const TimePoint now = Clock::System().Now();
    news_->Await(worked ? now : now + kIdle);
    RecordNews();
    {
      MutexLock lock(&mutex_);
      if (stopping_) break;
    }
    worked = Turn();
    SyncIfNeeded(clock_->Now());
  }
  threads_for_starts_.Stop();
  SyncIfNeeded(TimePoint::max());
}

bool RecoveryManager::RecordNews() {
  const std::deque<HostedNews::Item> news = news_->Drain();
  for (const HostedNews::Item& item : news) {
    std::visit([this](const auto& end) { Hear(end); }, item);
  }
  return !news.empty();
}

bool RecoveryManager::Turn() {
  FollowNodes();
  std::vector<RecoveryId> listing;
  std::vector<RecoveryId> running;
  {
    MutexLock lock(&mutex_);
    for (const auto& [id, recovery] : recoveries_) {
      if (Ended(recovery->record.state)) continue;
      // A node that is back is asked for each of its files: once, when nothing else is left to do.
      const bool may_list = !recovery->compared_with || recovery->queue.Finished();
      if (!recovery->list_after && may_list && std::exchange(recovery->list_again, false)) {
        recovery->list_after = "";
      }
      if (recovery->list_after && !InMaintenance(recovery->record)) listing.push_back(id);
      if (recovery->record.state == RecoveryState::kRunning) running.push_back(id);
    }
  }
  bool worked = false;
  for (const RecoveryId id : listing) {
    const absl::StatusOr<bool> listed = ListSome(id);
    worked |= listed.value_or(false);
    if (!listed.ok()) {
      Log(LogLevel::kError, "recovery.list_failed",
          {{"recovery", IdText(id)}, {"status", StatusText(listed.status())}});
      MutexLock lock(&mutex_);
      if (Recovery* const recovery = Find(id)) recovery->ask_again = clock_->Now() + kListAgain;
    }
  }
  worked |= StartSome(running);
  return worked;
}

RecoveryManager::Nodes RecoveryManager::NodesFor(const Recovery& recovery,
                                                 const std::vector<NodeView>& all) {
  const RecoveryRequest& request = recovery.record.request;
  Nodes nodes;
  std::map<std::string, size_t> numbers;  // of racks
  for (const NodeView& view : all) {
    if (view.state == NodeState::kLive) {
      nodes.usable.insert(view.record.node_id);
      const std::string& rack = view.record.rack;
      if (!rack.empty()) {
        const size_t number = numbers.try_emplace(rack, numbers.size()).first->second;
        nodes.racks.of.emplace(view.record.node_id, number);
      }
    }
    if (!view.silent_because.empty()) nodes.suspects.insert(view.record.node_id);
  }
  for (const NodeView& view : all) {
    const std::string& node = view.record.node_id;
    if (view.state != NodeState::kLive || view.kept_out != KeptOut::kNone) continue;
    const bool named =
        std::find(request.hosts.begin(), request.hosts.end(), node) != request.hosts.end();
    if (request.hosts.empty() ? node != request.node : named) nodes.hosts.push_back(node);
  }
  CountHosts(nodes.hosts, numbers.size(), &nodes.racks);
  for (const auto& [node, till] : recovery.suspects) {
    if (till > clock_->Now()) nodes.suspects.insert(node);
  }
  nodes.streams = StreamsOf(request);
  return nodes;
}

uint32_t RecoveryManager::StreamsOf(const RecoveryRequest& request) const {
  return request.streams_per_node == 0 ? options_.streams_per_node : request.streams_per_node;
}

const RecoveryManager::Nodes& RecoveryManager::LookUpNodes(Recovery* recovery) {
  const TimePoint now = clock_->Now();
  const uint64_t changes = repairs_->nodes().changes();
  std::optional<Nodes>& nodes = recovery->nodes;
  if (!nodes || nodes->changes != changes || now - nodes->looked_up >= kNodesAge) {
    nodes = NodesFor(*recovery, repairs_->nodes().All());
    nodes->changes = changes;
    nodes->looked_up = now;
    if (recovery->record.request.policy == RecoveryPolicy::kBalanced) {
      nodes->speeds = repairs_->links().SpeedsOf({nodes->usable.begin(), nodes->usable.end()});
    }
    recovery->queue.SetUsable(nodes->usable);
  }
  return *nodes;
}

}  // namespace ecpipe
