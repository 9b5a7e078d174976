// SPDX-License-Identifier: Apache-2.0
// RecoveryManager, how it learns what a node has lost, and what it has again.
#include <algorithm>

#include "base/process/log.h"
#include "base/status.h"
#include "coordinator/recovery/recovery_manager.h"

namespace ecpipe {
namespace {

// What a node that is back does not say that it has, after so many questions in vain, is lost.
constexpr int kMostQuestions = 5;

}  // namespace

void RecoveryManager::FollowNodes() {
  MutexLock lock(&mutex_);
  EndMaintenances();
  for (const auto& [id, recovery] : recoveries_) FollowNode(recovery.get());
}

void RecoveryManager::FollowNode(Recovery* recovery) {
  RecoveryRecord& record = recovery->record;
  if (Ended(record.state) || record.rebuild_after_unix_ms == 0 || InMaintenance(record)) return;
  const std::optional<NodeView> node = repairs_->nodes().Find(record.request.node);
  const bool live = node && node->state != NodeState::kDead;
  if (live ? recovery->compared_with == node->record.incarnation : !recovery->compared_with) return;
  recovery->comparing = live;
  if (live) {
    recovery->compared_with = node->record.incarnation;
    recovery->list_after = "";
  } else {
    // With all that it was found to have, and it may come back as it did before.
    const bool had_some = recovery->queue.counts().there > 0;
    recovery->compared_with.reset();
    recovery->queue.LoseAll(clock_->Now());
    const double delay =
        record.request.delay_seconds < 0 ? Seconds(options_.delay) : record.request.delay_seconds;
    if (had_some) {
      const int64_t later = clock_->UnixMillis() + static_cast<int64_t>(delay * 1000);
      record.rebuild_after_unix_ms = std::max(record.rebuild_after_unix_ms, later);
      StoreIfPossible(record);
    }
  }
  recovery->failed_questions = 0;
  recovery->ask_again = {};
  recovery->trouble.clear();
  Log(LogLevel::kInfo, live ? "recovery.node_back" : "recovery.node_away",
      {{"recovery", std::to_string(record.recovery_id)}, {"node", record.request.node}});
}

void RecoveryManager::Loaded(const std::set<std::string>& nodes) {
  {
    MutexLock lock(&mutex_);
    for (const auto& [id, recovery] : recoveries_) {
      const RecoveryRecord& record = recovery->record;
      if (!Ended(record.state) && nodes.contains(record.request.node)) recovery->list_again = true;
    }
  }
  news_->Wake();
}

absl::StatusOr<bool> RecoveryManager::ListSome(RecoveryId id) {
  std::string after;
  std::string node;
  std::optional<uint64_t> compared_with;
  {
    MutexLock lock(&mutex_);
    const Recovery* const recovery = Find(id);
    // It may have ended meanwhile.
    if (recovery == nullptr || !recovery->list_after) return false;
    if (clock_->Now() < recovery->ask_again) return false;
    after = *recovery->list_after;
    node = recovery->record.request.node;
    compared_with = recovery->compared_with;
  }
  ECPIPE_ASSIGN_OR_RETURN(LossFinder::Page page, finder_.List(node, after));
  if (compared_with && !Compare(id, node, &page)) return false;
  std::set<std::string> unneeded;
  {
    MutexLock lock(&mutex_);
    Recovery* const recovery = Find(id);
    if (recovery == nullptr || Ended(recovery->record.state)) return true;
    const std::string next = page.next;
    Take(recovery, std::move(page), &unneeded);
    recovery->list_after = next;
    if (next.empty()) {
      recovery->list_after.reset();
      recovery->listed = true;
      recovery->comparing = false;
      StoreIfPossible(recovery->record);
      EndIfFinished(recovery);
    }
  }
  if (!unneeded.empty()) repairs_->CancelHosted(id, unneeded);
  return true;
}

bool RecoveryManager::Compare(RecoveryId id, const std::string& node, LossFinder::Page* page) {
  const std::optional<NodeView> view = repairs_->nodes().Find(node);
  if (!view || page->lost.empty()) return true;  // that it is gone, FollowNodes will notice
  int failed_questions = 0;
  {
    MutexLock lock(&mutex_);
    const Recovery* const recovery = Find(id);
    if (recovery == nullptr) return true;  // as ListSome finds
    failed_questions = recovery->failed_questions;
  }
  const bool last = failed_questions >= kMostQuestions;
  const absl::Status compared = finder_.Compare(
      {node, view->record.control_address},
      last ? LossFinder::NoAnswer::kMeansLost : LossFinder::NoAnswer::kIsAnError, page);
  if (!compared.ok()) {
    Log(LogLevel::kWarning, "recovery.not_compared",
        {{"recovery", std::to_string(id)},
         {"node", node},
         {"asked", std::to_string(failed_questions + 1)},
         {"status", StatusText(compared)}});
  }
  MutexLock lock(&mutex_);
  Recovery* const recovery = Find(id);
  if (recovery == nullptr) return true;
  if (compared.ok()) {
    if (!last) recovery->failed_questions = 0;
    recovery->trouble.clear();
    return true;
  }
  recovery->trouble = std::string(compared.message());
  if (last || absl::IsUnimplemented(compared)) return true;  // all of it counts as lost
  recovery->ask_again =
      clock_->Now() + options_.question_pause * (int64_t{1} << recovery->failed_questions);
  ++recovery->failed_questions;
  return false;
}

void RecoveryManager::Take(Recovery* recovery, LossFinder::Page page,
                           std::set<std::string>* unneeded) {
  for (LostBlock& block : page.there) {
    const std::string block_id = block.block_id;
    recovery->queue.AddThere(std::move(block));
    const auto in_flight = recovery->in_flight.find(block_id);
    const bool runs =
        recovery->adopted.erase(block_id) > 0 || in_flight != recovery->in_flight.end();
    if (runs) unneeded->insert(block_id);
    if (in_flight == recovery->in_flight.end()) continue;
    in_flight->second.EndLoads(&loads_);
    recovery->in_flight.erase(in_flight);
  }
  for (LostBlock& block : page.lost) {
    const std::string block_id = block.block_id;
    recovery->queue.Add(std::move(block), clock_->Now());
    if (recovery->adopted.contains(block_id) && !recovery->in_flight.contains(block_id)) {
      recovery->queue.Start(block_id);
      recovery->in_flight[block_id] = {};
    }
  }
  // What a coordinator before this one has done is no longer on the node.
  const RecoveryQueue::Counts counts = recovery->queue.counts();
  recovery->record.blocks = std::max(recovery->record.blocks, counts.all);
  recovery->record.bytes = std::max(recovery->record.bytes, counts.all_bytes);
}

}  // namespace ecpipe
