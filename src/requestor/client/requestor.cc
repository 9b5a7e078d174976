// SPDX-License-Identifier: Apache-2.0
#include "requestor/client/requestor.h"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <optional>
#include <vector>

#include "base/bytes/sha256.h"
#include "base/process/blocked_signals.h"
#include "base/secret_file.h"
#include "base/status.h"
#include "codec/kernel_check.h"
#include "model/attempt_bound.h"
#include "model/corrupt_block.h"
#include "model/fault.h"
#include "net/redis/redis_transport.h"
#include "net/tcp_transport.h"
#include "pipeline/parity_check_sink.h"
#include "requestor/client/coordinator_client.h"
#include "requestor/client/receive_limit.h"

namespace ecpipe {
namespace {

std::string DefaultName() {
  char host[HOST_NAME_MAX + 1] = "";
  ::gethostname(host, sizeof host - 1);
  return std::string(host) + ":" + std::to_string(::getpid());
}

RequestorOptions WithName(RequestorOptions options) {
  if (options.name.empty()) options.name = DefaultName();
  return options;
}

// A requestor that only receives runs hops without blocks or outputs; anything else in its part
// would be a coordinator's mistake.
absl::Status CheckPart(const RepairPart& part) {
  for (const HopSpec& hop : part.hops) {
    if (hop.block || !hop.outputs.empty()) {
      return absl::InternalError(
          "the coordinator gave this requestor a part that is meant for a helper");
    }
  }
  return absl::OkStatus();
}

// Whether another attempt, with other helpers, may do better: an error that came from them, or from
// the streams to them, or a block that is known to be corrupt by now.
bool CanResume(const absl::Status& status) {
  if (!CorruptBlockOf(status).empty()) return true;
  const std::string faulty = FaultOf(status);
  return !faulty.empty() && faulty != kFaultSelf;
}

// What the bytes of one of the target's blocks must have; empty: not known.
struct ExpectedSha256 {
  std::string by_target;
  std::string by_catalog;  // of a whole block
  ExpectedSha256(const RepairTarget& target, const RepairPart& part,
                 const std::vector<uint64_t>& block_lengths, size_t block) {
    if (block < target.sha256.size()) by_target = target.sha256[block];
    const bool whole =
        target.offset == 0 && (target.bytes == 0 || target.bytes >= block_lengths[block]);
    if (whole && block < part.sha256.size()) by_catalog = part.sha256[block];
  }
  bool known() const { return !by_target.empty() || !by_catalog.empty(); }

  // Of what was read as it is, and not rebuilt, it is known which block is corrupt.
  absl::Status Check(const std::string& block_id, const std::string& got, bool direct) const {
    if (!direct) {
      ECPIPE_RETURN_IF_ERROR(CompareRebuilt(block_id, got, by_catalog));
    } else if (const absl::Status read =
                   CompareSha256("block " + block_id + " has", got, by_catalog);
               !read.ok()) {
      return CorruptBlockError(block_id, std::string(read.message()));
    }
    const absl::Status asked =
        CompareSha256("the bytes of block " + block_id + " have", got, by_target);
    return WithFault(asked, kFaultSelf);  // who asked may be wrong: no word about survivors
  }
};

uint64_t LongestOf(const RepairGrant& granted) {
  uint64_t longest = 0;
  for (const uint64_t bytes : granted.block_lengths) longest = std::max(longest, bytes);
  return longest;
}

RepairReport ReportOf(const RepairGrant& granted, const RepairTarget& target) {
  RepairReport report;
  report.repair_id = granted.repair_id;
  report.scheme = granted.scheme;
  report.stripe_id = granted.stripe_id;
  report.block_bytes = LongestOf(granted);
  report.block_lengths = granted.block_lengths;
  report.cost = granted.cost;
  report.checksum = granted.checksum;
  report.offset = target.offset;
  report.sha256.resize(target.block_ids.size());
  return report;
}

}  // namespace

class Requestor::Registration {
 public:
  Registration(Requestor* requestor, const std::stop_token& stop) : requestor_(requestor) {
    {
      MutexLock lock(&requestor_->mutex_);
      requestor_->calls_.insert(&call);
    }
    on_stop_.emplace(stop, [this] {
      MutexLock lock(&requestor_->mutex_);
      requestor_->GiveUp(&call);
    });
  }
  ~Registration() {
    on_stop_.reset();
    MutexLock lock(&requestor_->mutex_);
    requestor_->calls_.erase(&call);
  }

  Call call;

 private:
  Requestor* const requestor_;
  std::optional<std::stop_callback<std::function<void()>>> on_stop_;
};

class Requestor::Running {
 public:
  Running(Requestor* requestor, Call* call, PartRunner* runner)
      : requestor_(requestor), call_(call) {
    MutexLock lock(&requestor_->mutex_);
    call_->runner = runner;
    if (call_->given_up.stop_requested()) requestor_->GiveUp(call_);
  }
  ~Running() {
    MutexLock lock(&requestor_->mutex_);
    call_->runner = nullptr;
  }

 private:
  Requestor* const requestor_;
  Call* const call_;
};

absl::StatusOr<std::unique_ptr<Requestor>> Requestor::Connect(RequestorOptions options) {
  if (absl::Status kernel = CheckKernel(); !kernel.ok()) return kernel;
  ECPIPE_RETURN_IF_ERROR(Annotate(CheckSecret(options.redis_password_file), "redis"));
  ECPIPE_ASSIGN_OR_RETURN(
      std::unique_ptr<CoordinatorApi> coordinator,
      MakeCoordinatorClient(options.coordinator, options.call_timeout, options.tls));
  return std::make_unique<Requestor>(std::move(coordinator), std::move(options));
}

Requestor::Requestor(std::unique_ptr<CoordinatorApi> coordinator, RequestorOptions options,
                     std::unique_ptr<Transport> tcp)
    : coordinator_(std::move(coordinator)),
      options_(WithName(std::move(options))),
      tcp_(tcp != nullptr ? std::move(tcp) : MakeTcpTransport(nullptr, options_.tls)),
      redis_(MakeRedisTransport({.own_address = "",
                                 .expiry = 2 * options_.part.stall_timeout,
                                 .password_file = options_.redis_password_file})) {
  receive_limiter_.SetRate(options_.receive_bytes_per_second);
}

Requestor::~Requestor() = default;

absl::StatusOr<RepairReport> Requestor::Read(const RepairTarget& target, const ByteSink& sink,
                                             const ProgressFn& progress, const BegunFn& begun,
                                             const std::stop_token& stop) {
  if (target.block_ids.size() != 1) {
    return absl::InvalidArgumentError("only one block at a time can be read in order, not " +
                                      std::to_string(target.block_ids.size()));
  }
  const PiecesSink one = [&](std::span<const std::span<const uint8_t>> pieces) {
    return sink(pieces[0]);
  };
  return ReadSeveral(target, one, progress, begun, stop);
}

absl::StatusOr<RepairReport> Requestor::ReadSeveral(const RepairTarget& target,
                                                    const PiecesSink& sink,
                                                    const ProgressFn& progress,
                                                    const BegunFn& begun,
                                                    const std::stop_token& stop) {
  std::vector<std::optional<Sha256>> sha256(target.block_ids.size());
  uint64_t taken = 0;  // of the range
  RepairSink* of_blocks = nullptr;
  const PiecesSink hashed = [&](std::span<const std::span<const uint8_t>> pieces) {
    for (size_t i = 0; i < pieces.size(); ++i) {
      const uint64_t left = of_blocks->bytes_of(i) - std::min(of_blocks->bytes_of(i), taken);
      if (sha256[i]) sha256[i]->Update(pieces[i].first(std::min<uint64_t>(pieces[i].size(), left)));
    }
    taken += pieces[0].size();
    return sink(pieces);
  };
  RepairSink in_order(&hashed, progress);
  of_blocks = &in_order;
  bool hashing = false;
  const auto on_begun = [&](const RepairPart& part, const RepairReport& report) {
    for (size_t i = 0; !hashing && i < sha256.size(); ++i) {
      if (ExpectedSha256(target, part, report.block_lengths, i).known()) sha256[i].emplace();
    }
    hashing = true;
    if (begun) begun(report);
  };
  const auto check = [&](const RepairPart& part, const std::stop_token&, RepairReport* report) {
    for (size_t i = 0; i < sha256.size(); ++i) {
      if (!sha256[i]) continue;
      report->sha256[i] = sha256[i]->FinishHex();
      ECPIPE_RETURN_IF_ERROR(
          ExpectedSha256(target, part, report->block_lengths, i)
              .Check(target.block_ids[i], report->sha256[i], report->scheme == kDirectScheme));
    }
    return absl::OkStatus();
  };
  return Run(target, &in_order, {on_begun, check}, stop);
}

absl::StatusOr<RepairReport> Requestor::RepairToFiles(const RepairTarget& target,
                                                      const std::vector<std::string>& paths,
                                                      const ProgressFn& progress,
                                                      const std::stop_token& stop) {
  absl::StatusOr<RepairReport> report = RepairToFilesOnce(target, paths, progress, stop);
  if (!target.prefer_direct || CorruptBlockOf(report.status()).empty()) return report;
  // The block that was there is not what it should be, and the file has not got its name.
  RepairTarget rebuilt = target;
  rebuilt.prefer_direct = false;
  return RepairToFilesOnce(rebuilt, paths, progress, stop);
}

absl::StatusOr<RepairReport> Requestor::RepairToFilesOnce(const RepairTarget& target,
                                                          const std::vector<std::string>& paths,
                                                          const ProgressFn& progress,
                                                          const std::stop_token& stop) {
  if (paths.size() != target.block_ids.size()) {
    return absl::InvalidArgumentError(std::to_string(paths.size()) + " files for " +
                                      std::to_string(target.block_ids.size()) + " blocks");
  }
  // Before anything is asked of the cluster: a directory that cannot be written is no reason to
  // repair.
  std::vector<AtomicFile> files;
  for (const std::string& path : paths) {
    ECPIPE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
    files.push_back(std::move(file));
  }
  RepairSink to_files(&files, progress);
  const auto check = [&](const RepairPart& part, const std::stop_token& given_up,
                         RepairReport* report) {
    for (size_t i = 0; i < files.size(); ++i) {
      const ExpectedSha256 expected(target, part, report->block_lengths, i);
      if (!expected.known() && !options_.sha256_of_files) continue;
      const auto read_back = [&](uint64_t offset, std::span<uint8_t> out) {
        return given_up.stop_requested() ? cancelled_error_ : files[i].ReadAt(offset, out);
      };
      ECPIPE_ASSIGN_OR_RETURN(report->sha256[i], Sha256Of(read_back, to_files.bytes_of(i)));
      ECPIPE_RETURN_IF_ERROR(
          expected.Check(target.block_ids[i], report->sha256[i], report->scheme == kDirectScheme));
    }
    return absl::OkStatus();
  };
  ECPIPE_ASSIGN_OR_RETURN(RepairReport report, Run(target, &to_files, {nullptr, check}, stop));
  report.bytes = 0;
  for (size_t i = 0; i < files.size(); ++i) report.bytes += to_files.bytes_of(i);
  const TimePoint verified = Clock::System().Now();
  Registration committing(this, stop);  // a FIFO may have no reader
  const auto given_up = [&] { return committing.call.given_up.stop_requested(); };
  for (AtomicFile& file : files) ECPIPE_RETURN_IF_ERROR(file.Commit(given_up));
  report.commit_seconds = Seconds(Clock::System().Now() - verified);
  return report;
}

absl::StatusOr<RepairReport> Requestor::RepairToNodes(const RepairTarget& target,
                                                      const std::vector<std::string>& nodes,
                                                      const std::stop_token& stop) {
  if (nodes.empty()) {
    return absl::InvalidArgumentError("no node is named that should store the block");
  }
  Registration registration(this, stop);
  ECPIPE_ASSIGN_OR_RETURN(const RepairGrant granted,
                          coordinator_->BeginRepair(target, nodes, options_.name,
                                                    registration.call.given_up.get_token()));
  RepairReport report = ReportOf(granted, target);
  const absl::StatusOr<RepairRecord> ended = AwaitEnd(granted.repair_id, registration.call);
  if (absl::IsCancelled(ended.status())) {
    [[maybe_unused]] const auto told = coordinator_->FinishRepair(
        granted.repair_id, 0, {ended.status()}, registration.call.given_up.get_token());
  }
  if (!ended.ok()) return Annotate(ended.status(), "repair " + RepairIdText(granted.repair_id));
  if (ended->state != RepairState::kDone) {
    return absl::AbortedError("repair " + RepairIdText(granted.repair_id) + " " +
                              RepairStateName(ended->state) + ": " + ended->detail);
  }
  report.attempts = ended->attempt + 1;
  report.transport = ended->transport;
  for (const uint64_t bytes : granted.block_lengths) report.bytes += bytes;
  report.seconds = static_cast<double>(ended->ended_unix_ms - ended->started_unix_ms) / 1000;
  return report;
}

absl::StatusOr<RepairRecord> Requestor::AwaitEnd(RepairId repair_id, const Call& call) {
  constexpr Duration kLongestPause = std::chrono::milliseconds(200);
  const Clock& clock = Clock::System();
  Duration pause = std::chrono::milliseconds(5);
  TimePoint answered = clock.Now();
  while (true) {
    absl::StatusOr<RepairRecord> repair =
        coordinator_->Repair(repair_id, call.given_up.get_token());
    if (repair.ok()) {
      if (repair->state != RepairState::kRunning) return repair;
      answered = clock.Now();
    } else {
      // A coordinator that starts again takes the repair up.
      const bool silent =
          absl::IsUnavailable(repair.status()) || absl::IsDeadlineExceeded(repair.status());
      if (!silent || clock.Now() - answered > options_.call_timeout) return repair;
    }
    if (!Pause(call, pause)) return cancelled_error_;
    pause = std::min(2 * pause, kLongestPause);
  }
}

bool Requestor::Pause(const Call& call, Duration pause) {
  MutexLock lock(&mutex_);
  const TimePoint till = Clock::System().Now() + pause;
  while (!call.given_up.stop_requested() && cancelled_.WaitUntil(lock, till)) {
  }
  return !call.given_up.stop_requested();
}

absl::StatusOr<RepairReport> Requestor::Run(const RepairTarget& target, RepairSink* sink,
                                            const Hooks& hooks, const std::stop_token& stop) {
  Registration registration(this, stop);
  const std::stop_token given_up = registration.call.given_up.get_token();
  const TimePoint started = Clock::System().Now();
  ECPIPE_ASSIGN_OR_RETURN(RepairGrant granted,
                          coordinator_->BeginRepair(target, {}, options_.name, given_up));
  RepairReport report = ReportOf(granted, target);
  report.transport = TransportName(granted.part.transport);
  const uint64_t bytes = target.bytes == 0 ? report.block_bytes - target.offset : target.bytes;
  absl::Status status;
  AttemptBound bound;
  while (true) {
    const RepairPart& part = granted.part;
    const uint64_t had_bytes = sink->verified_bytes();
    report.attempts = part.attempt + 1;
    report.corrupt = granted.corrupt;
    report.scheme = granted.scheme;
    if (hooks.begun) hooks.begun(part, report);
    status = sink->Begin(part, target.offset, bytes, report.block_lengths);
    if (!status.ok()) break;
    status =
        RunPart(part, sink, &registration.call, &report, [sink] { return sink->missing_bytes(); });
    if (registration.call.corrupt_slice && CorruptBlockOf(status).empty()) {
      status = LocateCorruptBlock(target, part, status, &registration.call);
    }
    if (!CanResume(status)) break;
    bound.Failed(/*brought=*/sink->verified_bytes() > had_bytes);
    if (bound.reached()) {
      status = bound.GivenUp(status);
      break;
    }
    const ResumePoint failed{part.repair_id, part.attempt, {sink->grid(), sink->Missing()},
                             granted.scheme, status,       granted.stripe_digest};
    absl::StatusOr<RepairGrant> next = Resume(target, failed, registration.call);
    if (!next.ok()) {
      status = next.status();
      break;
    }
    granted = *std::move(next);
  }
  report.cost = granted.cost;
  report.seconds = Seconds(Clock::System().Now() - started);
  report.bytes = sink->verified_bytes();
  if (status.ok() && report.bytes != sink->total_bytes()) {
    status = absl::InternalError("the repair brought only " + std::to_string(report.bytes) +
                                 " of " + std::to_string(sink->total_bytes()) + " bytes");
  }
  if (status.ok()) status = hooks.check(granted.part, given_up, &report);
  // Who reads a block's beginning and leaves has not seen a repair fail.
  absl::Status verdict = status;
  if (!sink->refused().ok()) {
    verdict = absl::CancelledError("whoever takes the bytes wants no more: " +
                                   std::string(sink->refused().message()));
  }
  // Whoever waited no longer has seen one fail, however the call was ended.
  if (MutexLock lock(&mutex_); absl::IsDeadlineExceeded(registration.call.why)) {
    verdict = registration.call.why;
  }
  // The verdict is the coordinator's to record; the bytes are ours whether or not it hears it.
  absl::StatusOr<std::vector<StripeFacts::Source>> corrupt = coordinator_->FinishRepair(
      report.repair_id, report.attempts - 1,
      {verdict, report.bytes, sink->SecondsToFirstByte(started)}, given_up);
  if (corrupt.ok()) report.corrupt = *std::move(corrupt);
  if (!status.ok()) return Annotate(status, "repair " + RepairIdText(report.repair_id));
  return report;
}

absl::StatusOr<RepairGrant> Requestor::Resume(const RepairTarget& target, const ResumePoint& failed,
                                              const Call& call) {
  constexpr Duration kLongestPause = std::chrono::seconds(1);
  const TimePoint give_up = Clock::System().Now() + options_.call_timeout;
  Duration pause = std::chrono::milliseconds(50);
  while (true) {
    absl::StatusOr<RepairGrant> granted =
        coordinator_->ResumeRepair(target, options_.name, failed, call.given_up.get_token());
    // A coordinator that is being restarted will take the repair up.
    const bool silent =
        absl::IsUnavailable(granted.status()) || absl::IsDeadlineExceeded(granted.status());
    if (granted.ok() && (granted->part.hops.empty() || granted->repair_id != failed.repair_id)) {
      return absl::InternalError("the coordinator resumed another repair than the one asked for");
    }
    if (!silent || Clock::System().Now() + pause > give_up) {
      if (granted.ok()) return granted;
      return Annotate(granted.status(), "attempt " + std::to_string(failed.attempt) + " failed (" +
                                            std::string(failed.failure.message()) + ")");
    }
    if (!Pause(call, pause)) return cancelled_error_;
    pause = std::min(2 * pause, kLongestPause);
  }
}

absl::Status Requestor::LocateCorruptBlock(const RepairTarget& target, const RepairPart& part,
                                           const absl::Status& found, Call* call) {
  RepairTarget slice = target;
  slice.offset = part.grid.SliceOffset(*call->corrupt_slice);
  slice.bytes = part.grid.SliceBytes(*call->corrupt_slice);
  slice.verify = "locate";
  const absl::StatusOr<RepairGrant> granted =
      coordinator_->BeginRepair(slice, {}, options_.name, call->given_up.get_token());
  absl::Status located = granted.status();
  if (granted.ok()) {
    DiscardSink nowhere;
    RepairReport report;
    located =
        RunPart(granted->part, &nowhere, call, &report, [bytes = slice.bytes] { return bytes; });
    [[maybe_unused]] const auto told = coordinator_->FinishRepair(
        granted->repair_id, granted->part.attempt, {located, slice.bytes * slice.block_ids.size()},
        call->given_up.get_token());
  }
  if (!CorruptBlockOf(located).empty()) return located;
  if (call->given_up.stop_requested()) return cancelled_error_;
  const std::string why = located.ok() ? "with other survivors parity holds" : StatusText(located);
  return absl::DataLossError(std::string(found.message()) +
                             "; it is not known which block: " + why);
}

absl::Status Requestor::RunPart(const RepairPart& part, SliceSink* sink, Call* call,
                                RepairReport* report,
                                const std::function<uint64_t()>& missing_bytes) {
  call->corrupt_slice.reset();  // an earlier part's
  ECPIPE_RETURN_IF_ERROR(CheckPart(part));
  ECPIPE_RETURN_IF_ERROR(
      CheckReceiveLimit(part, options_.receive_bytes_per_second, options_.part.stall_timeout));
  std::optional<ParityCheckSink> check;
  if (part.check.rows > 0) sink = &check.emplace(part, sink);
  Transport* const transport = part.transport == TransportKind::kRedis ? redis_.get() : tcp_.get();
  PartOptions options = options_.part;
  options.receive_limiter = &receive_limiter_;
  ECPIPE_ASSIGN_OR_RETURN(const std::unique_ptr<PartRunner> runner,
                          PartRunner::Create(part, {}, transport, sink, options));
  absl::Status status;
  {
    const Running running(this, call, runner.get());
    std::optional<RepairWatch> watch;
    {
      const BlockedSignals for_its_thread;
      watch.emplace(coordinator_.get(), runner.get(), missing_bytes, options_.watch);
    }
    status = runner->Run();
  }
  report->bytes_received += runner->traffic().bytes_received;
  if (check) call->corrupt_slice = check->corrupt_slice();
  // Whose fault it is that nothing came nobody here can tell.
  if (absl::IsCancelled(status)) return status;
  return WithFault(status, IsOwnShortage(status) ? kFaultSelf : kFaultUnknown);
}

void Requestor::GiveUp(Call* call) {
  call->given_up.request_stop();
  if (call->runner != nullptr) call->runner->Cancel(cancelled_error_);
  cancelled_.NotifyAll();
}

void Requestor::Cancel(const absl::Status& why) {
  MutexLock lock(&mutex_);
  for (Call* call : calls_) {
    call->why.Update(why);
    GiveUp(call);
  }
}

}  // namespace ecpipe
