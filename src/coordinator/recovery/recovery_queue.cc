// SPDX-License-Identifier: Apache-2.0
#include "coordinator/recovery/recovery_queue.h"

#include <algorithm>
#include <iterator>
#include <random>

namespace ecpipe {

int RecoveryQueue::SpareOf(const Item& item) const {
  const auto usable =
      std::count_if(item.block.holders.begin(), item.block.holders.end(),
                    [&](const std::string& node) { return usable_.contains(node); });
  return static_cast<int>(usable) - item.block.needed;
}

bool RecoveryQueue::Open(const Item& item) {
  return item.state == State::kReady || item.state == State::kPausing ||
         item.state == State::kRunning;
}

uint64_t& RecoveryQueue::CountOfSpare(const Item& item) {
  constexpr int kMost = static_cast<int>(Spare::kMore);
  // Nobody knows how to rebuild a block that needs none.
  const int place = item.block.needed == 0 ? 0 : std::clamp(item.spare + 1, 0, kMost);
  return by_spare_[static_cast<size_t>(place)];
}

void RecoveryQueue::Enter(Items::iterator item, TimePoint now) {
  item->second.joined = now;
  item->second.spare = SpareOf(item->second);
  ++CountOfSpare(item->second);
  ++counts_.waiting;
  MakeReady(item);
}

void RecoveryQueue::CountAnew(Item* item) {
  if (!Open(*item)) return;
  --CountOfSpare(*item);
  item->spare = SpareOf(*item);
  ++CountOfSpare(*item);
}

RecoveryQueue::Key RecoveryQueue::KeyOf(const Items::value_type& item) {
  return {item.second.spare, item.second.joined, item.first};
}

void RecoveryQueue::MakeReady(Items::iterator item) {
  item->second.state = State::kReady;
  ReadyOnes(item->second).insert(KeyOf(*item));
}

std::pair<RecoveryQueue::Items::iterator, bool> RecoveryQueue::Known(const LostBlock& block) {
  const auto known = items_.try_emplace(block.block_id);
  if (!known.second) return known;
  ++counts_.all;
  counts_.all_bytes += block.bytes;
  known.first->second.block = block;
  return known;
}

void RecoveryQueue::Add(LostBlock block, TimePoint now) {
  const std::string block_id = block.block_id;
  const auto [item, added] = Known(block);
  if (!added) {
    SetHolders(block_id, std::move(block.holders));
    if (item->second.state != State::kThere) return;
    Leave(block_id, &item->second);
  }
  Enter(item, now);
}

bool RecoveryQueue::SetHolders(const std::string& block_id, std::vector<std::string> holders) {
  const auto item = items_.find(block_id);
  if (item == items_.end() || item->second.block.holders == holders) return false;
  const bool ready = item->second.state == State::kReady;
  if (ready) ReadyOnes(item->second).erase(KeyOf(*item));
  item->second.block.holders = std::move(holders);
  CountAnew(&item->second);
  if (ready) MakeReady(item);
  return true;
}

void RecoveryQueue::AddThere(const LostBlock& block) {
  const auto [item, added] = Known(block);
  if (!added) {
    if (item->second.state == State::kDone || item->second.state == State::kThere) return;
    Leave(block.block_id, &item->second);
  }
  item->second.state = State::kThere;
  ++counts_.there;
  counts_.there_bytes += item->second.block.bytes;
}

void RecoveryQueue::LoseAll(TimePoint now) {
  for (auto item = items_.begin(); item != items_.end(); ++item) {
    if (item->second.state != State::kThere) continue;
    Leave(item->first, &item->second);
    Enter(item, now);
  }
}

void RecoveryQueue::Forget() {
  items_.clear();
  untried_.clear();
  tried_.clear();
  pausing_.clear();
}

void RecoveryQueue::Leave(const std::string& block_id, Item* item) {
  if (Open(*item)) --CountOfSpare(*item);
  switch (item->state) {
    case State::kReady:
      ReadyOnes(*item).erase({item->spare, item->joined, block_id});
      --counts_.waiting;
      break;
    case State::kPausing:
      pausing_.erase({item->until, block_id});
      --pausing_by_kind_[item->kind];
      --counts_.waiting;
      break;
    case State::kRunning:
      --counts_.running;
      break;
    case State::kGivenUp:
      --counts_.given_up;
      break;
    case State::kThere:
      --counts_.there;
      counts_.there_bytes -= item->block.bytes;
      break;
    case State::kDone:
      break;
  }
}

bool RecoveryQueue::Helped(const Item& item, const std::set<std::string>& nodes) {
  if (item.kind == WaitKind::kTarget) return !nodes.empty();
  if (item.kind != WaitKind::kSurvivors) return false;
  return std::any_of(item.block.holders.begin(), item.block.holders.end(),
                     [&](const std::string& node) { return nodes.contains(node); });
}

void RecoveryQueue::SetUsable(const std::set<std::string>& nodes) {
  if (nodes == usable_) return;
  std::set<std::string> back;
  std::set_difference(nodes.begin(), nodes.end(), usable_.begin(), usable_.end(),
                      std::inserter(back, back.end()));
  usable_ = nodes;
  untried_.clear();
  tried_.clear();
  for (auto item = items_.begin(); item != items_.end(); ++item) {
    CountAnew(&item->second);
    if (item->second.state == State::kReady) MakeReady(item);
    if (item->second.state != State::kPausing || !Helped(item->second, back)) continue;
    pausing_.erase({item->second.until, item->first});
    item->second.until = TimePoint::min();  // it joins the others with the next look
    pausing_.emplace(item->second.until, item->first);
  }
}

std::vector<const LostBlock*> RecoveryQueue::Next(TimePoint now, size_t limit) {
  while (!pausing_.empty() && pausing_.begin()->first <= now) {
    const auto item = items_.find(pausing_.begin()->second);
    pausing_.erase(pausing_.begin());
    --pausing_by_kind_[item->second.kind];
    MakeReady(item);
  }
  return Ready(limit);
}

std::vector<const LostBlock*> RecoveryQueue::Ready(size_t limit) const {
  std::vector<const LostBlock*> blocks;
  auto fresh = untried_.begin();
  auto again = tried_.begin();
  bool took_again = tried_one_last_;
  while (blocks.size() < limit && blocks.size() < ready()) {
    took_again =
        fresh == untried_.end() || (again != tried_.end() && !took_again && *again < *fresh);
    blocks.push_back(&items_.at(std::get<std::string>(*(took_again ? again : fresh)++)).block);
  }
  return blocks;
}

void RecoveryQueue::Start(const std::string& block_id) {
  const auto item = items_.find(block_id);
  if (item == items_.end() || item->second.state != State::kReady) return;
  ReadyOnes(item->second).erase(KeyOf(*item));
  tried_one_last_ = item->second.attempts > 0;
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
  Leave(block_id, item);
  item->state = State::kDone;
  ++counts_.done;
  counts_.done_bytes += item->block.bytes;
}

void RecoveryQueue::Fail(const std::string& block_id, const absl::Status& why, TimePoint now) {
  Item* const item = Running(block_id);
  if (item == nullptr) return;
  NoteFailure(item, WaitKind::kFailed, why);
  if (++item->failures < options_.max_attempts) return Pause(block_id, item, now);
  Leave(block_id, item);
  item->state = State::kGivenUp;
  ++counts_.given_up;
}

void RecoveryQueue::Wait(const std::string& block_id, WaitKind kind, const absl::Status& why,
                         TimePoint now) {
  Item* const item = Running(block_id);
  if (item == nullptr) return;
  // That wrong bytes could not be located does not make them right.
  if (item->block.uncertain) return Fail(block_id, why, now);
  NoteFailure(item, kind, why);
  Pause(block_id, item, now);
}

void RecoveryQueue::NotBegun(const std::string& block_id) {
  const auto item = items_.find(block_id);
  if (item == items_.end() || item->second.state != State::kRunning) return;
  --item->second.attempts;
  --counts_.running;
  ++counts_.waiting;
  MakeReady(item);
}

void RecoveryQueue::NoteFailure(Item* item, WaitKind kind, const absl::Status& why) {
  const bool wrong = absl::IsDataLoss(why);
  // That locating was refused, or failed, is no reason without what led to it.
  const std::string before = item->block.uncertain && !wrong ? item->reason + "; then " : "";
  item->reason = before + std::string(why.message());
  item->kind = kind;
  item->block.uncertain = wrong;
}

Duration RecoveryQueue::PauseAfter(const std::string& block_id, int attempts) const {
  const int doublings = std::min(attempts - 1, 20);
  const Duration longest =
      std::min(options_.longest_pause, options_.first_pause * (int64_t{1} << doublings));
  if (attempts == 1) return longest;
  std::seed_seq seed(block_id.begin(), block_id.end());
  std::mt19937 draws(seed);
  draws.discard(static_cast<unsigned>(attempts));
  return longest / 2 + longest / 2 * (draws() % 1024) / 1024;
}

void RecoveryQueue::Pause(const std::string& block_id, Item* item, TimePoint now) {
  item->state = State::kPausing;
  item->until = now + PauseAfter(block_id, item->attempts);
  pausing_.emplace(item->until, block_id);
  ++pausing_by_kind_[item->kind];
  --counts_.running;
  ++counts_.waiting;
}

std::vector<BlockedBlock> RecoveryQueue::Blocked(size_t limit, TimePoint now) const {
  std::vector<BlockedBlock> blocked;
  for (const auto& [block_id, item] : items_) {
    if (blocked.size() == limit) break;
    if (item.reason.empty() || item.state == State::kDone || item.state == State::kThere) continue;
    BlockedBlock& block = blocked.emplace_back(
        BlockedBlock{block_id, item.reason, item.attempts, item.state == State::kGivenUp});
    block.kind = item.kind;
    if (item.state != State::kPausing) continue;
    block.next_try_in_seconds = std::max(0.0, Seconds(std::max(item.until, now) - now));
  }
  return blocked;
}

std::vector<RecoveryQueue::Waiting> RecoveryQueue::Head(size_t limit) const {
  std::vector<Waiting> head;
  const auto add = [&](const std::string& block_id) {
    const Item& item = items_.at(block_id);
    Waiting waiting{&item.block, item.joined, item.spare, item.attempts};
    waiting.pausing = item.state == State::kPausing;
    if (waiting.pausing) {
      waiting.kind = item.kind;
      waiting.reason = item.reason;
      waiting.until = item.until;
    }
    head.push_back(std::move(waiting));
  };
  for (const LostBlock* block : Ready(limit)) add(block->block_id);
  const size_t ready = head.size();
  for (const auto& [until, block_id] : pausing_) {
    if (head.size() - ready == limit) break;
    add(block_id);
  }
  return head;
}

std::vector<RecoveryWait> RecoveryQueue::Pauses() const {
  std::map<WaitKind, RecoveryWait> waits;
  for (const auto& [until, block_id] : pausing_) {
    const Item& item = items_.at(block_id);
    RecoveryWait& wait = waits[item.kind];
    wait.kind = item.kind;
    // The one that is tried next.
    if (wait.blocks++ == 0) wait.reason = item.reason;
  }
  std::vector<RecoveryWait> all;
  for (auto& [kind, wait] : waits) all.push_back(std::move(wait));
  return all;
}

}  // namespace ecpipe
