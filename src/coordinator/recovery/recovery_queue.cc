// SPDX-License-Identifier: Apache-2.0
#include "coordinator/recovery/recovery_queue.h"

#include <algorithm>

namespace ecpipe {

double RecoveryQueue::KeyOf(const Item& item) const {
  const auto usable =
      std::count_if(item.block.holders.begin(), item.block.holders.end(),
                    [&](const std::string& node) { return usable_.contains(node); });
  return static_cast<double>(usable - item.block.needed) +
         Seconds(item.joined.time_since_epoch()) / Seconds(options_.ageing);
}

void RecoveryQueue::MakeReady(Items::iterator item) {
  item->second.state = State::kReady;
  item->second.key = KeyOf(item->second);
  ready_.emplace(item->second.key, item->first);
}

void RecoveryQueue::Add(LostBlock block, TimePoint now) {
  const std::string block_id = block.block_id;
  const auto [item, added] = items_.try_emplace(block_id);
  if (!added) return;
  item->second.block = std::move(block);
  item->second.joined = now;
  ++counts_.waiting;
  MakeReady(item);
}

void RecoveryQueue::SetUsable(const std::set<std::string>& nodes) {
  if (nodes == usable_) return;
  usable_ = nodes;
  ready_.clear();
  for (auto item = items_.begin(); item != items_.end(); ++item) {
    if (item->second.state == State::kReady) MakeReady(item);
  }
}

std::vector<const LostBlock*> RecoveryQueue::Next(TimePoint now, size_t limit) {
  while (!pausing_.empty() && pausing_.begin()->first <= now) {
    const auto item = items_.find(pausing_.begin()->second);
    pausing_.erase(pausing_.begin());
    item->second.joined = now;
    MakeReady(item);
  }
  std::vector<const LostBlock*> blocks;
  for (const auto& [key, block_id] : ready_) {
    if (blocks.size() == limit) break;
    blocks.push_back(&items_.at(block_id).block);
  }
  return blocks;
}

void RecoveryQueue::Start(const std::string& block_id) {
  const auto item = items_.find(block_id);
  if (item == items_.end() || item->second.state != State::kReady) return;
  ready_.erase({item->second.key, block_id});
  item->second.state = State::kRunning;
  ++item->second.attempts;
  --counts_.waiting;
  ++counts_.running;
}

RecoveryQueue::Item* RecoveryQueue::Running(const std::string& block_id) {
  const auto item = items_.find(block_id);
  if (item == items_.end() || item->second.state != State::kRunning) return nullptr;
  return &item->second;
}

void RecoveryQueue::Done(const std::string& block_id) {
  Item* const item = Running(block_id);
  if (item == nullptr) return;
  item->state = State::kDone;
  --counts_.running;
  ++counts_.done;
  counts_.done_bytes += item->block.bytes;
}

void RecoveryQueue::Fail(const std::string& block_id, const absl::Status& why, TimePoint now) {
  Item* const item = Running(block_id);
  if (item == nullptr) return;
  const bool wrong = absl::IsDataLoss(why);
  // That locating was refused, or failed, is no reason without what led to it.
  const std::string before = item->block.uncertain && !wrong ? item->reason + "; then " : "";
  item->reason = before + std::string(why.message());
  item->block.uncertain = wrong;
  --counts_.running;
  if (item->attempts >= options_.max_attempts) {
    item->state = State::kGivenUp;
    ++counts_.given_up;
    return;
  }
  const int doublings = std::min(item->attempts - 1, 20);
  item->state = State::kPausing;
  const Duration pause =
      std::min(options_.longest_pause, options_.first_pause * (int64_t{1} << doublings));
  pausing_.emplace(now + pause, block_id);
  ++counts_.waiting;
}

std::vector<BlockedBlock> RecoveryQueue::Blocked(size_t limit) const {
  std::vector<BlockedBlock> blocked;
  for (const auto& [block_id, item] : items_) {
    if (blocked.size() == limit) break;
    if (item.reason.empty() || item.state == State::kDone) continue;
    blocked.push_back({block_id, item.reason, item.attempts, item.state == State::kGivenUp});
  }
  return blocked;
}

}  // namespace ecpipe
