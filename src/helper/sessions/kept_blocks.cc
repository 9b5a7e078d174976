// SPDX-License-Identifier: Apache-2.0
#include "helper/sessions/kept_blocks.h"

#include <algorithm>
#include <utility>

#include "base/process/log.h"

namespace ecpipe {

// Sinks are destroyed without the lock throughout: that removes files.

KeptBlocks::~KeptBlocks() {
  Thread thread;
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    thread = std::move(thread_);
  }
  changed_.NotifyAll();
  if (thread.joinable()) thread.join();
}

void KeptBlocks::Keep(RepairId repair_id, uint32_t attempt, std::unique_ptr<StoreSink> sink) {
  Kept before;
  {
    MutexLock lock(&mutex_);
    const auto found = kept_.find(repair_id);
    if (found == kept_.end() && kept_.size() >= options_.most) return;
    if (found != kept_.end() && found->second.attempt > attempt) return;
    if (found != kept_.end()) before = std::move(found->second);
    if (!thread_.joinable()) {
      absl::StatusOr<Thread> thread = Thread::Start([this] { DiscardInTime(); });
      if (!thread.ok()) return;  // nobody would discard it in time
      thread_ = *std::move(thread);
    }
    kept_[repair_id] = {attempt, std::move(sink), Clock::System().Now() + options_.keep_for};
  }
  changed_.NotifyAll();
}

std::unique_ptr<StoreSink> KeptBlocks::Remove(RepairId repair_id, uint32_t attempt) {
  MutexLock lock(&mutex_);
  const auto found = kept_.find(repair_id);
  if (found == kept_.end() || found->second.attempt >= attempt) return nullptr;
  std::unique_ptr<StoreSink> sink = std::move(found->second.sink);
  kept_.erase(found);
  return sink;
}

std::optional<std::vector<SliceRun>> KeptBlocks::Missing(RepairId repair_id, uint32_t attempt) {
  MutexLock lock(&mutex_);
  const auto found = kept_.find(repair_id);
  if (found == kept_.end() || found->second.attempt != attempt) return std::nullopt;
  return found->second.sink->Missing();
}

void KeptBlocks::Discard(RepairId repair_id, uint32_t attempt) {
  Kept discarded;
  MutexLock lock(&mutex_);
  const auto found = kept_.find(repair_id);
  if (found == kept_.end() || found->second.attempt > attempt) return;
  discarded = std::move(found->second);
  kept_.erase(found);
}

void KeptBlocks::DiscardAll() {
  std::map<RepairId, Kept> discarded;
  MutexLock lock(&mutex_);
  discarded.swap(kept_);
}

size_t KeptBlocks::count() {
  MutexLock lock(&mutex_);
  return kept_.size();
}

void KeptBlocks::DiscardInTime() {
  while (true) {
    std::vector<std::pair<RepairId, Kept>> expired;
    {
      MutexLock lock(&mutex_);
      if (stopping_) return;
      const TimePoint now = Clock::System().Now();
      std::optional<TimePoint> next;
      for (auto it = kept_.begin(); it != kept_.end();) {
        if (it->second.until <= now) {
          expired.emplace_back(it->first, std::move(it->second));
          it = kept_.erase(it);
        } else {
          next = std::min(next.value_or(it->second.until), it->second.until);
          ++it;
        }
      }
      if (expired.empty() && next) {
        changed_.WaitUntil(lock, *next);
      } else if (expired.empty()) {
        changed_.Wait(lock);
      }
    }
    for (const auto& [repair_id, kept] : expired) {
      Log(LogLevel::kInfo, "part.kept_expired", {{"repair", RepairIdText(repair_id)}});
    }
  }
}

}  // namespace ecpipe
