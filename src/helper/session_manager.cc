// SPDX-License-Identifier: Apache-2.0
#include "helper/session_manager.h"

#include "common/log.h"
#include "common/status.h"
#include "helper/probe_ends.h"
#include "helper/store_sink.h"

namespace ecpipe {

SessionManager::SessionManager(BlockStore* store, Transport* tcp, Transport* redis,
                               const Options& options, OnEnd on_end)
    : store_(store), tcp_(tcp), redis_(redis), options_(options), on_end_(std::move(on_end)) {}

SessionManager::~SessionManager() { Drain(Duration(0)); }

absl::StatusOr<PartRunner::Blocks> SessionManager::OpenBlocks(const RepairPart& part) {
  PartRunner::Blocks blocks;
  for (size_t i = 0; i < part.hops.size(); ++i) {
    const auto& wanted = part.hops[i].block;
    if (!wanted) continue;
    if (part.probe) {
      blocks[i] = std::make_unique<MadeUpBlock>(wanted->bytes);
      continue;
    }
    ECPIPE_ASSIGN_OR_RETURN(std::unique_ptr<BlockReader> block, store_->Open(wanted->block_id));
    if (block->bytes() != wanted->bytes) {
      return absl::FailedPreconditionError(
          "block " + wanted->block_id + " has " + std::to_string(block->bytes()) +
          " bytes, the catalog says " + std::to_string(wanted->bytes));
    }
    blocks[i] = std::move(block);
  }
  return blocks;
}

absl::StatusOr<std::unique_ptr<PartSink>> SessionManager::OpenSink(const RepairPart& part) {
  if (part.probe) return std::make_unique<DiscardSink>();
  if (!part.stores.empty()) return StoreSink::Create(part, store_);
  for (const HopSpec& hop : part.hops) {
    if (hop.stored_rows.empty()) continue;
    return absl::InvalidArgumentError("rows end here, and no block is named for them");
  }
  return nullptr;
}

absl::Status SessionManager::Admit(const RepairPart& part, uint64_t buffer_bytes) {
  if (draining_) return absl::UnavailableError("the helper is shutting down");
  const auto newest = sessions_.upper_bound({part.repair_id, UINT32_MAX});
  if (newest != sessions_.begin()) {
    const SessionKey& key = std::prev(newest)->first;
    if (key.first == part.repair_id && key.second >= part.attempt) {
      return absl::AlreadyExistsError("attempt " + std::to_string(key.second) + " of repair " +
                                      RepairIdText(part.repair_id) + " runs here");
    }
  }
  if (sessions_.size() >= options_.max_sessions) {
    return absl::ResourceExhaustedError("the helper runs its limit of " +
                                        std::to_string(options_.max_sessions) + " sessions");
  }
  if (counts_.buffer_bytes + buffer_bytes > options_.max_buffer_bytes) {
    return absl::ResourceExhaustedError(
        "the part needs " + std::to_string(buffer_bytes) + " bytes of slice buffers, " +
        std::to_string(options_.max_buffer_bytes - counts_.buffer_bytes) + " are free");
  }
  return absl::OkStatus();
}

absl::Status SessionManager::Start(RepairPart part) {
  JoinEnded();
  Transport* const transport = part.transport == TransportKind::kTcp ? tcp_ : redis_;
  if (transport == nullptr) {
    return absl::FailedPreconditionError("this helper has no redis-server configured");
  }
  const SessionKey key{part.repair_id, part.attempt};
  const uint64_t buffer_bytes = PartBufferBytes(part, options_.part);
  {
    MutexLock lock(&mutex_);
    ECPIPE_RETURN_IF_ERROR(Admit(part, buffer_bytes));
  }
  if (key.second > 0) Cancel(key.first, key.second - 1);
  ECPIPE_ASSIGN_OR_RETURN(PartRunner::Blocks blocks, OpenBlocks(part));
  ECPIPE_ASSIGN_OR_RETURN(std::unique_ptr<PartSink> sink, OpenSink(part));
  ECPIPE_ASSIGN_OR_RETURN(
      std::unique_ptr<PartRunner> runner,
      PartRunner::Create(std::move(part), std::move(blocks), transport, sink.get(), options_.part));

  // Admitted again, since blocks and streams were opened without the lock.
  MutexLock lock(&mutex_);
  ECPIPE_RETURN_IF_ERROR(Admit(runner->part(), buffer_bytes));
  Session& session = sessions_[key];
  session.sink = std::move(sink);
  session.runner = std::move(runner);
  session.buffer_bytes = buffer_bytes;
  session.started = Clock::System().Now();
  counts_.buffer_bytes += buffer_bytes;
  session.thread =
      std::thread([this, key, part_runner = session.runner.get(), part_sink = session.sink.get(),
                   started = session.started] { Run(key, part_runner, part_sink, started); });
  return absl::OkStatus();
}

void SessionManager::Run(const SessionKey& key, PartRunner* runner, PartSink* sink,
                         TimePoint started) {
  PartReport report;
  report.repair_id = key.first;
  report.attempt = key.second;
  report.status = runner->Run();
  if (sink != nullptr) report.status = sink->End(report.status);
  report.traffic = runner->traffic();
  report.links = runner->link_timings();
  report.elapsed = Clock::System().Now() - started;
  Log(report.status.ok() ? LogLevel::kInfo : LogLevel::kWarning, "part.end",
      {{"repair", RepairIdText(key.first)},
       {"attempt", std::to_string(key.second)},
       {"seconds", std::to_string(Seconds(report.elapsed))},
       {"sent", std::to_string(report.traffic.bytes_sent)},
       {"received", std::to_string(report.traffic.bytes_received)},
       {"status", StatusText(report.status)}});
  on_end_(report);

  Session dead;  // destroyed without the lock
  MutexLock lock(&mutex_);
  const auto session = sessions_.find(key);
  dead = std::move(session->second);
  joinable_.push_back(std::move(dead.thread));
  counts_.buffer_bytes -= dead.buffer_bytes;
  counts_.traffic.bytes_sent += report.traffic.bytes_sent;
  counts_.traffic.bytes_received += report.traffic.bytes_received;
  counts_.traffic.block_bytes_read += report.traffic.block_bytes_read;
  ++(report.status.ok() ? counts_.parts_done : counts_.parts_failed);
  sessions_.erase(session);
  ended_.NotifyAll();
}

uint32_t SessionManager::Cancel(RepairId repair_id, uint32_t attempt) {
  MutexLock lock(&mutex_);
  uint32_t cancelled = 0;
  for (auto it = sessions_.lower_bound({repair_id, 0});
       it != sessions_.end() && it->first <= SessionKey{repair_id, attempt}; ++it) {
    it->second.runner->Cancel(absl::CancelledError("the repair was cancelled"));
    ++cancelled;
  }
  return cancelled;
}

void SessionManager::StopAdmitting() {
  MutexLock lock(&mutex_);
  draining_ = true;
}

void SessionManager::Drain(Duration patience) {
  const TimePoint deadline = Clock::System().Now() + patience;
  StopAdmitting();
  {
    MutexLock lock(&mutex_);
    while (!sessions_.empty() && ended_.WaitUntil(lock, deadline)) {
    }
    for (auto& [key, session] : sessions_) {
      session.runner->Cancel(absl::UnavailableError("the helper is shutting down"));
    }
    while (!sessions_.empty()) ended_.Wait(lock);
  }
  JoinEnded();
}

bool SessionManager::draining() {
  MutexLock lock(&mutex_);
  return draining_;
}

void SessionManager::JoinEnded() {
  std::vector<std::thread> joinable;
  {
    MutexLock lock(&mutex_);
    joinable.swap(joinable_);
  }
  for (std::thread& thread : joinable) thread.join();
}

SessionCounts SessionManager::counts() {
  MutexLock lock(&mutex_);
  SessionCounts counts = counts_;
  counts.active_sessions = static_cast<uint32_t>(sessions_.size());
  for (const auto& [key, session] : sessions_) {
    const PartTraffic traffic = session.runner->traffic();
    counts.traffic.bytes_sent += traffic.bytes_sent;
    counts.traffic.bytes_received += traffic.bytes_received;
    counts.traffic.block_bytes_read += traffic.block_bytes_read;
  }
  return counts;
}

}  // namespace ecpipe
