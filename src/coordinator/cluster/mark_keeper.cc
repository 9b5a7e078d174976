// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cluster/mark_keeper.h"

#include <algorithm>
#include <tuple>

#include "base/process/log.h"

namespace ecpipe {

MarkKeeper::~MarkKeeper() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
  WriteAll(clock_->Now() + kLongestEnd);
}

void MarkKeeper::Start() {
  thread_ = Thread([this] {
    while (true) {
      TryAgain();
      MutexLock lock(&mutex_);
      while (!stopping_ && unkept_.empty()) changed_.Wait(lock);
      if (stopping_) return;
      if (clock_->Now() < again_at_) changed_.WaitUntil(lock, again_at_);
    }
  });
}

absl::Status MarkKeeper::Keep(const CorruptBlock& block) {
  return Take({block.block_id, block.node}, block);
}

absl::Status MarkKeeper::Forget(const std::string& block_id, const std::string& node) {
  return Take({block_id, node}, std::nullopt);
}

absl::Status MarkKeeper::Take(const Copy& copy, const Change& change) {
  {
    MutexLock lock(&mutex_);
    ++callers_;
  }
  MutexLock write_lock(&write_mutex_);
  const absl::Status status = Write(copy, change);
  MutexLock lock(&mutex_);
  --callers_;
  changed_.NotifyAll();
  return status;
}

absl::Status MarkKeeper::Write(const Copy& copy, const Change& change) {
  const absl::Status status =
      change ? store_->Keep(*change) : store_->Forget(copy.first, copy.second);
  MutexLock lock(&mutex_);
  if (status.ok()) {
    unkept_.erase(copy);
    pause_ = kFirstPause;
    again_at_ = clock_->Now();  // it may take the others as well
    changed_.NotifyAll();
    return status;
  }
  ++failures_;
  const auto [unkept, is_new] = unkept_.insert_or_assign(copy, change);
  if (is_new) MakeRoom();
  again_at_ = clock_->Now() + pause_;
  changed_.NotifyAll();
  return absl::Status(status.code(), std::string(status.message()) +
                                         "; the coordinator tries again until it succeeds");
}

void MarkKeeper::MakeRoom() {
  if (unkept_.size() <= kMostUnkept) return;
  const auto forgotten =
      std::find_if(unkept_.begin(), unkept_.end(), [](const auto& each) { return !each.second; });
  unkept_.erase(forgotten == unkept_.end() ? unkept_.begin() : forgotten);
}

void MarkKeeper::TryAgain() {
  {
    MutexLock lock(&mutex_);
    if (unkept_.empty() || clock_->Now() < again_at_) return;
    pause_ = std::min(2 * pause_, kLongestPause);
  }
  WriteAll(std::nullopt);
}

bool MarkKeeper::MayWriteNext(std::optional<TimePoint> deadline) {
  MutexLock lock(&mutex_);
  while (callers_ > 0) changed_.Wait(lock);
  return deadline ? clock_->Now() < *deadline : !stopping_;
}

void MarkKeeper::WriteAll(std::optional<TimePoint> deadline) {
  size_t written = 0;
  while (MayWriteNext(deadline)) {
    MutexLock write_lock(&write_mutex_);
    Copy copy;
    Change change;
    {
      MutexLock lock(&mutex_);
      if (unkept_.empty()) break;
      std::tie(copy, change) = *unkept_.begin();
    }
    if (!Write(copy, change).ok()) return;
    ++written;
  }
  if (written == 0) return;
  Log(LogLevel::kInfo, "mark.kept_at_last", {{"blocks", std::to_string(written)}});
}

MarkKeeper::Counts MarkKeeper::counts() const {
  MutexLock lock(&mutex_);
  return {failures_, unkept_.size()};
}

}  // namespace ecpipe
