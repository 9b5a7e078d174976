// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cluster/corrupt_blocks.h"

#include <algorithm>
#include <utility>

#include "base/process/log.h"
#include "base/status.h"

namespace ecpipe {
namespace {

// A bug on demand, for the simulation to find; see tests/sim.
#ifdef ECPIPE_CANARY
constexpr bool kForgetAtStart = true;
#else
constexpr bool kForgetAtStart = false;
#endif

// What is marked stays marked until the process ends.
void LogUnkept(const std::string& block_id, const absl::Status& status) {
  if (status.ok()) return;
  Log(LogLevel::kError, "mark.not_kept", {{"block", block_id}, {"status", StatusText(status)}});
}

}  // namespace

absl::Status CorruptBlocks::Restore() {
  if (store_ == nullptr || kForgetAtStart) return absl::OkStatus();
  ECPIPE_ASSIGN_OR_RETURN(std::vector<CorruptBlock> kept, store_->Load());
  MutexLock lock(&mutex_);
  for (CorruptBlock& block : kept) {
    Mark& mark = marks_[block.block_id];
    if (mark.number == 0) order_.push_back(block.block_id);
    mark.number = ++last_number_;
    if (block.suspect) mark.check_at = TimePoint::min();
    mark.block = std::move(block);
  }
  return absl::OkStatus();
}

bool CorruptBlocks::Add(CorruptBlock block) {
  if (block.reason.size() > kMaxReasonBytes) block.reason.resize(kMaxReasonBytes);
  std::string dropped;
  {
    MutexLock write_lock(&write_mutex_);
    if (!AddToMap(block, &dropped)) return false;
    if (!dropped.empty()) ForgetKept(dropped);
    Keep(block);
  }
  if (!dropped.empty()) {
    Log(LogLevel::kWarning, "mark.dropped", {{"block", dropped}, {"reason", "there are too many"}});
  }
  return true;
}

bool CorruptBlocks::AddToMap(const CorruptBlock& block, std::string* dropped) {
  MutexLock lock(&mutex_);
  const auto known = marks_.find(block.block_id);
  const bool marked = known != marks_.end() && known->second.block.node == block.node;
  if (marked && (block.suspect || !known->second.block.suspect)) return false;
  if (!block.suspect) ++found_;
  if (known == marks_.end()) {
    if (marks_.size() >= kMost) *dropped = DropOne();
    order_.push_back(block.block_id);
  }
  Mark mark{block, ++last_number_, std::nullopt};
  if (block.suspect) mark.check_at = TimePoint::min();
  marks_.insert_or_assign(block.block_id, std::move(mark));
  return true;
}

std::string CorruptBlocks::DropOne() {
  std::string dropped = order_.front();
  for (const std::string& id : order_) {
    if (!marks_.at(id).block.suspect) continue;
    dropped = id;
    break;
  }
  Erase(dropped);
  return dropped;
}

void CorruptBlocks::Erase(const std::string& block_id) {
  if (marks_.erase(block_id) > 0) std::erase(order_, block_id);
}

bool CorruptBlocks::Forget(const std::string& block_id) {
  {
    MutexLock lock(&mutex_);
    if (!marks_.contains(block_id)) return false;
  }
  MutexLock write_lock(&write_mutex_);
  {
    MutexLock lock(&mutex_);
    Erase(block_id);
  }
  ForgetKept(block_id);
  return true;
}

void CorruptBlocks::Keep(const CorruptBlock& block) {
  if (store_ != nullptr) LogUnkept(block.block_id, store_->Keep(block));
}

void CorruptBlocks::ForgetKept(const std::string& block_id) {
  if (store_ != nullptr) LogUnkept(block_id, store_->Forget(block_id));
}

std::optional<CorruptBlock> CorruptBlocks::Find(const std::string& block_id,
                                                const std::string& node) const {
  MutexLock lock(&mutex_);
  const auto known = marks_.find(block_id);
  if (known == marks_.end() || known->second.block.node != node) return std::nullopt;
  return known->second.block;
}

std::string CorruptBlocks::Reason(const std::string& block_id, const std::string& node) const {
  const std::optional<CorruptBlock> known = Find(block_id, node);
  return known && !known->suspect ? known->reason : "";
}

std::string CorruptBlocks::Suspicion(const std::string& block_id, const std::string& node) const {
  const std::optional<CorruptBlock> known = Find(block_id, node);
  if (!known || !known->suspect) return "";
  return known->undecided.empty() ? known->reason : known->reason + " (" + known->undecided + ")";
}

bool CorruptBlocks::HasAnyOf(const std::vector<std::string>& block_ids) const {
  MutexLock lock(&mutex_);
  for (const std::string& id : block_ids) {
    const auto known = marks_.find(id);
    if (known != marks_.end() && !known->second.block.suspect) return true;
  }
  return false;
}

std::vector<CorruptBlock> CorruptBlocks::All() const {
  MutexLock lock(&mutex_);
  std::vector<CorruptBlock> all;
  for (const std::string& id : order_) all.push_back(marks_.at(id).block);
  return all;
}

uint64_t CorruptBlocks::found() const {
  MutexLock lock(&mutex_);
  return found_;
}

absl::Status CorruptBlocks::CheckSoon(const std::string& block_id, TimePoint now) {
  MutexLock lock(&mutex_);
  const auto known = marks_.find(block_id);
  if (known == marks_.end()) return absl::NotFoundError("block " + block_id + " is not marked");
  known->second.block.undecided.clear();
  known->second.check_at = now;
  return absl::OkStatus();
}

std::optional<CorruptBlocks::Due> CorruptBlocks::NextCheck(TimePoint now) const {
  MutexLock lock(&mutex_);
  const Mark* next = nullptr;
  for (const std::string& id : order_) {
    const Mark& mark = marks_.at(id);
    if (!mark.check_at || *mark.check_at > now) continue;
    if (next == nullptr || *mark.check_at < *next->check_at) next = &mark;
  }
  if (next == nullptr) return std::nullopt;
  return Due{next->block, next->number};
}

bool CorruptBlocks::Decide(const Due& due, Verdict verdict, const std::string& why, TimePoint now) {
  CorruptBlock changed;
  MutexLock write_lock(&write_mutex_);
  {
    MutexLock lock(&mutex_);
    const auto known = marks_.find(due.block.block_id);
    if (known == marks_.end() || known->second.number != due.mark) return false;
    Mark& mark = known->second;
    mark.check_at.reset();
    ++mark.block.checks;
    switch (verdict) {
      case Verdict::kSound:
        Erase(due.block.block_id);
        break;
      case Verdict::kCorrupt:
        if (!mark.block.suspect) return false;
        ++found_;
        mark.block.suspect = false;
        mark.block.undecided.clear();
        mark.block.reason = why.substr(0, kMaxReasonBytes);
        changed = mark.block;
        break;
      case Verdict::kAskAgain:
        mark.check_at = now + kCheckAgain;
        [[fallthrough]];
      case Verdict::kUndecided:
        mark.block.undecided = why.substr(0, kMaxReasonBytes);
        return false;
    }
  }
  if (verdict == Verdict::kSound) {
    ForgetKept(due.block.block_id);
    return false;
  }
  Keep(changed);
  return true;
}

}  // namespace ecpipe
