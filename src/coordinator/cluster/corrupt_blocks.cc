// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cluster/corrupt_blocks.h"

#include <algorithm>
#include <utility>

#include "base/process/log.h"
#include "base/status.h"

namespace ecpipe {
namespace {

// What is marked stays marked until the process ends.
void LogUnkept(const std::string& block_id, const absl::Status& status) {
  if (status.ok()) return;
  Log(LogLevel::kError, "mark.not_kept", {{"block", block_id}, {"status", StatusText(status)}});
}

}  // namespace

absl::Status CorruptBlocks::Restore() {
  if (store_ == nullptr) return absl::OkStatus();
  ECPIPE_ASSIGN_OR_RETURN(std::vector<CorruptBlock> kept, store_->Load());
  MutexLock lock(&mutex_);
  for (CorruptBlock& block : kept) {
    const Copy copy(block.block_id, block.node);
    Mark& mark = marks_[copy];
    if (mark.number == 0) order_.push_back(copy);
    mark.number = ++last_number_;
    if (block.suspect) mark.check_at = TimePoint::min();
    mark.block = std::move(block);
  }
  return absl::OkStatus();
}

bool CorruptBlocks::Add(CorruptBlock block) {
  if (block.reason.size() > kMaxReasonBytes) block.reason.resize(kMaxReasonBytes);
  std::optional<Copy> dropped;
  Added added = Added::kKnown;
  {
    MutexLock write_lock(&write_mutex_);
    added = AddToMap(block, &dropped);
    if (dropped) ForgetKept(*dropped);
    if (added == Added::kNews) Keep(block);
  }
  const char* const why = "there are too many";
  if (dropped) {
    Log(LogLevel::kWarning, "mark.dropped",
        {{"block", dropped->first}, {"node", dropped->second}, {"reason", why}});
  }
  if (added == Added::kRefused) {
    Log(LogLevel::kError, "mark.refused",
        {{"block", block.block_id}, {"node", block.node}, {"reason", why}});
  }
  return added == Added::kNews;
}

CorruptBlocks::Added CorruptBlocks::AddToMap(const CorruptBlock& block,
                                             std::optional<Copy>* dropped) {
  MutexLock lock(&mutex_);
  const Copy copy(block.block_id, block.node);
  const auto known = marks_.find(copy);
  const bool marked = known != marks_.end();
  if (marked && (block.suspect || !known->second.block.suspect)) return Added::kKnown;
  if (!marked) {
    if (marks_.size() >= kMost) {
      *dropped = DropOne();
      if (!*dropped) {
        ++refused_;
        return Added::kRefused;
      }
    }
    order_.push_back(copy);
  }
  if (!block.suspect) ++found_;
  Mark mark{block, ++last_number_, std::nullopt};
  if (block.suspect) mark.check_at = TimePoint::min();
  marks_.insert_or_assign(copy, std::move(mark));
  return Added::kNews;
}

std::optional<CorruptBlocks::Copy> CorruptBlocks::DropOne() {
  for (const Copy& copy : order_) {
    if (!marks_.at(copy).block.suspect) continue;
    Copy dropped = copy;
    Erase(dropped);
    return dropped;
  }
  return std::nullopt;
}

std::vector<CorruptBlocks::Copy> CorruptBlocks::CopiesOf(const std::string& block_id) const {
  std::vector<Copy> copies;
  for (auto at = marks_.lower_bound({block_id, ""});
       at != marks_.end() && at->first.first == block_id; ++at) {
    copies.push_back(at->first);
  }
  return copies;
}

void CorruptBlocks::Erase(const Copy& copy) {
  if (marks_.erase(copy) > 0) std::erase(order_, copy);
}

bool CorruptBlocks::Forget(const std::string& block_id) {
  std::vector<Copy> copies;
  {
    MutexLock lock(&mutex_);
    copies = CopiesOf(block_id);
  }
  return ForgetAll(copies);
}

bool CorruptBlocks::Forget(const std::string& block_id, const std::string& node) {
  {
    MutexLock lock(&mutex_);
    if (!marks_.contains({block_id, node})) return false;
  }
  return ForgetAll({{block_id, node}});
}

void CorruptBlocks::ForgetNode(const std::string& node) {
  std::vector<Copy> copies;
  {
    MutexLock lock(&mutex_);
    for (const auto& [copy, mark] : marks_) {
      if (copy.second == node) copies.push_back(copy);
    }
  }
  ForgetAll(copies);
}

bool CorruptBlocks::ForgetAll(const std::vector<Copy>& copies) {
  if (copies.empty()) return false;
  MutexLock write_lock(&write_mutex_);
  {
    MutexLock lock(&mutex_);
    for (const Copy& copy : copies) Erase(copy);
  }
  for (const Copy& copy : copies) ForgetKept(copy);
  return true;
}

void CorruptBlocks::Keep(const CorruptBlock& block) {
  if (store_ != nullptr) LogUnkept(block.block_id, store_->Keep(block));
}

void CorruptBlocks::ForgetKept(const Copy& copy) {
  if (store_ != nullptr) LogUnkept(copy.first, store_->Forget(copy.first, copy.second));
}

std::optional<CorruptBlock> CorruptBlocks::Find(const std::string& block_id,
                                                const std::string& node) const {
  MutexLock lock(&mutex_);
  const auto known = marks_.find({block_id, node});
  if (known == marks_.end()) return std::nullopt;
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
    for (const Copy& copy : CopiesOf(id)) {
      if (!marks_.at(copy).block.suspect) return true;
    }
  }
  return false;
}

std::vector<CorruptBlock> CorruptBlocks::All() const {
  MutexLock lock(&mutex_);
  std::vector<CorruptBlock> all;
  for (const Copy& copy : order_) all.push_back(marks_.at(copy).block);
  return all;
}

uint64_t CorruptBlocks::found() const {
  MutexLock lock(&mutex_);
  return found_;
}

uint64_t CorruptBlocks::refused() const {
  MutexLock lock(&mutex_);
  return refused_;
}

absl::Status CorruptBlocks::CheckSoon(const std::string& block_id, TimePoint now) {
  MutexLock lock(&mutex_);
  const std::vector<Copy> copies = CopiesOf(block_id);
  if (copies.empty()) return absl::NotFoundError("block " + block_id + " is not marked");
  for (const Copy& copy : copies) {
    Mark& mark = marks_.at(copy);
    mark.block.undecided.clear();
    mark.check_at = now;
  }
  return absl::OkStatus();
}

std::optional<CorruptBlocks::Due> CorruptBlocks::NextCheck(TimePoint now) const {
  MutexLock lock(&mutex_);
  const Mark* next = nullptr;
  for (const Copy& copy : order_) {
    const Mark& mark = marks_.at(copy);
    if (!mark.check_at || *mark.check_at > now) continue;
    if (next == nullptr || *mark.check_at < *next->check_at) next = &mark;
  }
  if (next == nullptr) return std::nullopt;
  return Due{next->block, next->number};
}

bool CorruptBlocks::Decide(const Due& due, Verdict verdict, const std::string& why, TimePoint now) {
  CorruptBlock changed;
  const Copy copy(due.block.block_id, due.block.node);
  MutexLock write_lock(&write_mutex_);
  {
    MutexLock lock(&mutex_);
    const auto known = marks_.find(copy);
    if (known == marks_.end() || known->second.number != due.mark) return false;
    Mark& mark = known->second;
    mark.check_at.reset();
    ++mark.block.checks;
    switch (verdict) {
      case Verdict::kSound:
        Erase(copy);
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
    ForgetKept(copy);
    return false;
  }
  Keep(changed);
  return true;
}

}  // namespace ecpipe
