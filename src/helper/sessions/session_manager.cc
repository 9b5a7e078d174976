// SPDX-License-Identifier: Apache-2.0
#include "helper/sessions/session_manager.h"

#include <algorithm>

#include "base/guarded.h"
#include "base/process/log.h"
#include "base/status.h"
#include "helper/sessions/zero_ended_block.h"
#include "model/corrupt_block.h"

namespace ecpipe {
namespace {

constexpr size_t kEndsKept = 1024;
// A part's thread comes round within milliseconds, unless its disk hangs.
constexpr Duration kEndPatience = std::chrono::milliseconds(500);
// What a cancelled part does to its end: a few seconds, unless its disk hangs.
constexpr Duration kDrainPatience = std::chrono::seconds(10);

// Whether the part brings every slice of what it stores, and not only those that an attempt before
// it has left.
bool BringsAll(const RepairPart& part) {
  uint64_t slices = 0;
  for (const HopSpec& hop : part.hops) {
    if (!hop.stored_rows.empty()) slices += hop.slices.count();
  }
  return slices >= part.grid.slice_count();
}

}  // namespace

SessionManager::SessionManager(BlockStore* store, Transport* tcp, Transport* redis,
                               const Options& options, OnEnd on_end)
    : store_(store),
      tcp_(tcp),
      redis_(redis),
      options_(options),
      on_end_(std::move(on_end)),
      kept_({options.keep_for, options.max_sessions}),
      max_sessions_(options.max_sessions) {}

SessionManager::~SessionManager() { End(Duration(0), std::nullopt); }

absl::StatusOr<PartRunner::Blocks> SessionManager::OpenBlocks(const RepairPart& part) {
  PartRunner::Blocks blocks;
  for (size_t i = 0; i < part.hops.size(); ++i) {
    const auto& wanted = part.hops[i].block;
    if (!wanted) continue;
    if (part.probe) {
      blocks[i] = std::make_unique<ZeroBlock>(wanted->bytes);
      continue;
    }
    ECPIPE_ASSIGN_OR_RETURN(std::unique_ptr<BlockReader> block, store_->Open(wanted->block_id));
    if (block->bytes() < wanted->bytes && store_->missing_ends_are_zeros()) {
      block = std::make_unique<ZeroEndedBlock>(std::move(block), wanted->bytes);
    }
    if (block->bytes() != wanted->bytes) {
      return absl::OutOfRangeError(
          "block " + wanted->block_id + " has " + std::to_string(block->bytes()) +
          " bytes here, but the coordinator expects " + std::to_string(wanted->bytes));
    }
    ECPIPE_RETURN_IF_ERROR(CheckStoredAs(wanted->block_id, block->stored_sha256(), wanted->sha256));
    blocks[i] = std::move(block);
  }
  return blocks;
}

absl::Status SessionManager::OpenStore(const RepairPart& part, Session* session) {
  if (part.stores.empty()) {
    const bool ends_here = std::any_of(part.hops.begin(), part.hops.end(),
                                       [](const HopSpec& hop) { return !hop.stored_rows.empty(); });
    if (!ends_here || part.probe) return absl::OkStatus();
    return absl::InvalidArgumentError("the part stores rows but names no block to store them in");
  }
  session->store = kept_.Remove(part.repair_id, part.attempt);
  session->goes_on = session->store != nullptr && session->store->Resume(part).ok();
  if (session->goes_on) return absl::OkStatus();
  if (!BringsAll(part)) {
    return absl::FailedPreconditionError(
        "attempt " + std::to_string(part.attempt) + " cannot go on with block " +
        part.stores[0].block_id + ": this helper no longer has the slices of an earlier attempt");
  }
  session->store.reset();  // room on disk first
  ECPIPE_ASSIGN_OR_RETURN(session->store, StoreSink::Create(part, store_));
  return absl::OkStatus();
}

absl::Status SessionManager::Admit(const RepairPart& part, uint64_t buffer_bytes) {
  if (draining_) return absl::UnavailableError("the helper is shutting down");
  const auto newest = sessions_.upper_bound({part.repair_id, UINT32_MAX});
  if (newest != sessions_.begin()) {
    const SessionKey& key = std::prev(newest)->first;
    if (key.first == part.repair_id && key.second >= part.attempt) {
      return absl::AlreadyExistsError("attempt " + std::to_string(key.second) + " of repair " +
                                      RepairIdText(part.repair_id) + " is already running here");
    }
  }
  if (sessions_.size() + opening_.size() >= max_sessions_) {
    return absl::ResourceExhaustedError("the helper is at its limit of " +
                                        std::to_string(max_sessions_) +
                                        " sessions ([limits] max_sessions)");
  }
  uint64_t taken = counts_.buffer_bytes;
  for (const Opening& opening : opening_) taken += opening.buffer_bytes;
  if (taken + buffer_bytes > options_.max_buffer_bytes) {
    return absl::ResourceExhaustedError("the part needs " + std::to_string(buffer_bytes) +
                                        " bytes of slice buffers, but only " +
                                        std::to_string(options_.max_buffer_bytes - taken) +
                                        " are free ([limits] max_buffer_bytes)");
  }
  return part.background ? AdmitBackground(buffer_bytes) : absl::OkStatus();
}

absl::Status SessionManager::AdmitBackground(uint64_t buffer_bytes) {
  uint32_t sessions = 0;
  uint64_t buffers = buffer_bytes;
  for (const Opening& opening : opening_) {
    if (!opening.background) continue;
    ++sessions;
    buffers += opening.buffer_bytes;
  }
  for (const auto& [key, session] : sessions_) {
    if (!session.runner->part().background) continue;
    ++sessions;
    buffers += session.buffer_bytes;
  }
  const auto most_sessions =
      std::max<uint32_t>(1, static_cast<uint32_t>(kBackgroundShare * max_sessions_));
  if (sessions >= most_sessions) {
    return absl::ResourceExhaustedError("the helper is at its limit of " +
                                        std::to_string(most_sessions) +
                                        " background sessions, three quarters of max_sessions");
  }
  if (static_cast<double>(buffers) >
      kBackgroundShare * static_cast<double>(options_.max_buffer_bytes)) {
    return absl::ResourceExhaustedError(
        "the part needs " + std::to_string(buffer_bytes) +
        " bytes of slice buffers, more than background repairs may still take; they may take three "
        "quarters of max_buffer_bytes");
  }
  return absl::OkStatus();
}

void SessionManager::SetMaxSessions(uint32_t max_sessions) {
  MutexLock lock(&mutex_);
  max_sessions_ = max_sessions;
}

uint32_t SessionManager::max_sessions() {
  MutexLock lock(&mutex_);
  return max_sessions_;
}

absl::StatusOr<std::optional<ChecksumKind>> SessionManager::Start(RepairPart part) {
  JoinEnded();
  Transport* const transport = part.transport == TransportKind::kTcp ? tcp_ : redis_;
  if (transport == nullptr) {
    return absl::FailedPreconditionError(
        "this helper has no redis-server configured ([redis] address)");
  }
  const SessionKey key{part.repair_id, part.attempt};
  const uint64_t buffer_bytes = PartBufferBytes(part, options_.part) + StoreSink::TallyBytes(part);
  Openings::iterator opening;
  {
    MutexLock lock(&mutex_);
    ECPIPE_RETURN_IF_ERROR(Admit(part, buffer_bytes));
    opening =
        opening_.insert(opening_.end(), {key, part.background, !part.stores.empty(), buffer_bytes});
  }
  Session opened;
  opened.buffer_bytes = buffer_bytes;
  absl::Status status = Guarded([&] {
    if (key.second > 0) EndSessions(key.first, key.second - 1, Stored::kDiscard);
    return Open(std::move(part), transport, &opened);
  });
  const std::optional<ChecksumKind> checksum = opened.checksum;
  if (status.ok()) status = BeginOpened(opening, &opened);
  if (!status.ok()) {
    Forget(opening, &opened);
    return status;
  }
  Log(LogLevel::kDebug, "part.begin",
      {{"repair", RepairIdText(key.first)}, {"attempt", std::to_string(key.second)}});
  return checksum;
}

absl::Status SessionManager::BeginOpened(Openings::iterator opening, Session* opened) {
  Openings own;  // not counted beside what it becomes
  MutexLock lock(&mutex_);
  if (opening->cancelled) {
    return absl::CancelledError("the repair was cancelled while its blocks were being opened");
  }
  own.splice(own.end(), opening_, opening);
  // Admitted again, since blocks and streams were opened without the lock.
  const absl::Status status = Guarded([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    ECPIPE_RETURN_IF_ERROR(Admit(opened->runner->part(), opened->buffer_bytes));
    return Begin(opening->key, opened);
  });
  if (!status.ok()) opening_.splice(opening_.end(), own);
  return status;
}

// Whoever waits for the opening finds what it leaves.
void SessionManager::Forget(Openings::iterator opening, Session* opened) {
  const auto [repair_id, attempt] = opening->key;
  bool discard = false;
  {
    MutexLock lock(&mutex_);
    discard = opening->discard;
  }
  if (opened->goes_on && !discard) {
    // What was there before this attempt is there for the next one.
    (void)Guarded([&, id = repair_id, before = attempt - 1] {
      kept_.Keep(id, before, std::move(opened->store));
      return absl::OkStatus();
    });
  }
  {
    const Session dead = std::move(*opened);  // its files go before anybody hears that it has ended
  }
  const bool discarded_before = discard;
  {
    MutexLock lock(&mutex_);
    discard = opening->discard;
    opening_.erase(opening);
    ended_.NotifyAll();
  }
  if (discard && !discarded_before) kept_.Discard(repair_id, attempt);
}

absl::Status SessionManager::Begin(const SessionKey& key, Session* opened) {
  Session& session = sessions_[key] = std::move(*opened);
  session.started = Clock::System().Now();
  absl::StatusOr<Thread> thread = Guarded([&] {
    return Thread::Start([this, key, runner = session.runner.get(), store = session.store.get(),
                          started = session.started] { Run(key, runner, store, started); });
  });
  if (thread.ok()) {
    session.thread = *std::move(thread);
    counts_.buffer_bytes += session.buffer_bytes;
    return absl::OkStatus();
  }
  *opened = std::move(session);
  sessions_.erase(key);
  return thread.status();
}

absl::Status SessionManager::Open(RepairPart part, Transport* transport, Session* session) {
  ECPIPE_ASSIGN_OR_RETURN(PartRunner::Blocks blocks, OpenBlocks(part));
  if (!blocks.empty()) session->checksum = blocks.begin()->second->checksum();
  ECPIPE_RETURN_IF_ERROR(OpenStore(part, session));
  if (part.probe) session->probe_sink = std::make_unique<DiscardSink>();
  SliceSink* into = session->store.get();
  if (part.probe) into = session->probe_sink.get();
  if (part.check.rows > 0) {
    session->check = std::make_unique<ParityCheckSink>(part, into);
    into = session->check.get();
  }
  ECPIPE_ASSIGN_OR_RETURN(session->runner, PartRunner::Create(std::move(part), std::move(blocks),
                                                              transport, into, options_.part));
  return absl::OkStatus();
}

bool SessionManager::Discards(const SessionKey& key) {
  MutexLock lock(&mutex_);
  return sessions_.at(key).discard || draining_;
}

void SessionManager::Run(const SessionKey& key, PartRunner* runner, StoreSink* store,
                         TimePoint started) {
  PartReport report;
  report.repair_id = key.first;
  report.attempt = key.second;
  report.status = runner->Run();
  if (store != nullptr) {
    report.status = store->End(report.status);
    report.stored = report.status.ok();
    // Nothing is left when the report goes out, unless it is for another attempt.
    if (Discards(key)) store->Discard();
  }
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

  if (store != nullptr && store->HasBlocks()) {
    std::unique_ptr<StoreSink> left;
    {
      MutexLock lock(&mutex_);
      left = std::move(sessions_.at(key).store);
    }
    kept_.Keep(key.first, key.second, std::move(left));
  }
  if (Erase(key, report)) kept_.Discard(key.first, key.second);
}

bool SessionManager::Erase(const SessionKey& key, const PartReport& report) {
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
  if (ends_.size() == kEndsKept) ends_.pop_front();
  ends_.emplace_back(key, report.status);
  ended_.NotifyAll();
  return dead.discard || draining_;
}

uint32_t SessionManager::Cancel(RepairId repair_id, uint32_t attempt) {
  const uint32_t cancelled = EndSessions(repair_id, attempt, Stored::kDiscard);
  kept_.Discard(repair_id, attempt);
  return cancelled;
}

uint32_t SessionManager::CancelAndKeep(RepairId repair_id, uint32_t attempt) {
  const uint32_t cancelled = EndSessions(repair_id, attempt, Stored::kKeep);
  const TimePoint deadline = Clock::System().Now() + kEndPatience;
  const auto stores = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto begin = sessions_.lower_bound({repair_id, 0});
    const auto end = sessions_.upper_bound({repair_id, attempt});
    const auto opens = [&](const Opening& opening) {
      return opening.stores && opening.key.first == repair_id && opening.key.second <= attempt;
    };
    return std::any_of(
               begin, end,
               [](const auto& entry) { return !entry.second.runner->part().stores.empty(); }) ||
           std::any_of(opening_.begin(), opening_.end(), opens);
  };
  MutexLock lock(&mutex_);
  while (stores() && ended_.WaitUntil(lock, deadline)) {
  }
  return cancelled;
}

uint32_t SessionManager::EndSessions(RepairId repair_id, uint32_t attempt, Stored stored) {
  MutexLock lock(&mutex_);
  uint32_t cancelled = 0;
  for (Opening& opening : opening_) {
    if (opening.key.first != repair_id || opening.key.second > attempt) continue;
    opening.cancelled = true;
    opening.discard |= stored == Stored::kDiscard;
    ++cancelled;
  }
  for (auto it = sessions_.lower_bound({repair_id, 0});
       it != sessions_.end() && it->first <= SessionKey{repair_id, attempt}; ++it) {
    it->second.discard |= stored == Stored::kDiscard;
    it->second.runner->Cancel(absl::CancelledError("the repair was cancelled"));
    ++cancelled;
  }
  return cancelled;
}

absl::StatusOr<PartProgress> SessionManager::Progress(RepairId repair_id, uint32_t attempt) {
  constexpr auto kPatience = std::chrono::milliseconds(100);
  PartProgress progress;
  std::shared_ptr<PartRunner> runner;
  {
    MutexLock lock(&mutex_);
    const SessionKey key{repair_id, attempt};
    if (const auto session = sessions_.find(key); session != sessions_.end()) {
      runner = session->second.runner;
      const StoreSink* store = session->second.store.get();
      if (store != nullptr) progress.missing_bytes = store->missing_bytes();
    } else {
      const auto end = std::find_if(ends_.rbegin(), ends_.rend(),
                                    [&](const auto& ended) { return ended.first == key; });
      if (end == ends_.rend()) return absl::NotFoundError("this part is not running here");
      progress.ended = end->second;
      progress.missing = kept_.Missing(repair_id, attempt);
      return progress;
    }
  }
  progress.running = true;
  // A thread that does not come round is with a disk; nothing is known of its streams then.
  runner->Progress(kPatience, &progress.hops);
  return progress;
}

void SessionManager::StopAdmitting() {
  MutexLock lock(&mutex_);
  draining_ = true;
}

bool SessionManager::Drain(Duration patience) { return End(patience, kDrainPatience); }

bool SessionManager::End(Duration patience, std::optional<Duration> last) {
  const TimePoint deadline = Clock::System().Now() + patience;
  StopAdmitting();
  {
    MutexLock lock(&mutex_);
    while (!sessions_.empty() && ended_.WaitUntil(lock, deadline)) {
    }
    for (auto& [key, session] : sessions_) {
      session.runner->Cancel(absl::UnavailableError("the helper is shutting down"));
    }
    const TimePoint give_up = last ? Clock::System().Now() + *last : TimePoint::max();
    while (!sessions_.empty()) {
      if (!last) {
        ended_.Wait(lock);
      } else if (!ended_.WaitUntil(lock, give_up) && Clock::System().Now() >= give_up) {
        return false;
      }
    }
  }
  JoinEnded();
  kept_.DiscardAll();
  return true;
}

bool SessionManager::draining() {
  MutexLock lock(&mutex_);
  return draining_;
}

void SessionManager::JoinEnded() {
  std::vector<Thread> joinable;
  {
    MutexLock lock(&mutex_);
    joinable.swap(joinable_);
  }
  for (Thread& thread : joinable) thread.join();
}

SessionCounts SessionManager::counts() {
  MutexLock lock(&mutex_);
  SessionCounts counts = counts_;
  counts.active_sessions = static_cast<uint32_t>(sessions_.size());
  counts.kept_parts = static_cast<uint32_t>(kept_.count());
  for (const auto& [key, session] : sessions_) {
    const PartTraffic traffic = session.runner->traffic();
    counts.traffic.bytes_sent += traffic.bytes_sent;
    counts.traffic.bytes_received += traffic.bytes_received;
    counts.traffic.block_bytes_read += traffic.block_bytes_read;
  }
  return counts;
}

}  // namespace ecpipe
