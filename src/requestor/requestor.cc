// SPDX-License-Identifier: Apache-2.0
#include "requestor/requestor.h"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <optional>
#include <vector>

#include "common/check.h"
#include "common/redis_transport.h"
#include "common/status.h"
#include "common/tcp_transport.h"
#include "requestor/coordinator_client.h"

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
      return absl::InternalError("the coordinator gave the requestor a helper's part");
    }
  }
  return absl::OkStatus();
}

RepairReport ReportOf(const GrantedRepair& granted) {
  RepairReport report;
  report.repair_id = granted.repair_id;
  report.scheme = granted.scheme;
  report.stripe_id = granted.stripe_id;
  report.block_bytes = granted.block_bytes;
  report.cost = granted.cost;
  return report;
}

}  // namespace

// Counts what is verified, and passes it on: in order to a function, or in any order to a file for
// each row.
class Requestor::Sink : public SliceSink {
 public:
  Sink(const ByteSink* in_order, std::vector<AtomicFile>* files, const ProgressFn& progress)
      : in_order_(in_order), files_(files), progress_(progress) {}

  void Begin(const SliceGrid& grid, size_t rows) {
    grid_ = grid;
    total_bytes_ = grid.bytes * rows;
  }

  bool Ready(Row, uint32_t slice_index) override {
    return in_order_ == nullptr || slice_index == next_slice_;
  }

  absl::Status Write(Row row, uint32_t slice_index, std::span<const uint8_t> bytes) override {
    if (in_order_ != nullptr) {
      ECPIPE_RETURN_IF_ERROR((*in_order_)(bytes));
      next_slice_ = slice_index + 1;
    } else {
      if (row >= files_->size()) return absl::InternalError("a row that nobody asked for");
      const uint64_t at = grid_.SliceOffset(slice_index) - grid_.offset;
      ECPIPE_RETURN_IF_ERROR((*files_)[row].WriteAt(at, bytes));
    }
    verified_bytes_ += bytes.size();
    ShowProgress();
    return absl::OkStatus();
  }

  uint64_t verified_bytes() const { return verified_bytes_; }
  uint64_t total_bytes() const { return total_bytes_; }

 private:
  void ShowProgress() {
    if (!progress_) return;
    constexpr auto kInterval = std::chrono::milliseconds(100);
    const TimePoint now = Clock::System().Now();
    if (now < next_progress_ && verified_bytes_ < total_bytes_) return;
    next_progress_ = now + kInterval;
    progress_(verified_bytes_, total_bytes_);
  }

  const ByteSink* const in_order_;
  std::vector<AtomicFile>* const files_;
  const ProgressFn& progress_;
  SliceGrid grid_;
  uint64_t total_bytes_ = 0;
  uint32_t next_slice_ = 0;
  uint64_t verified_bytes_ = 0;
  TimePoint next_progress_{};
};

class Requestor::Registration {
 public:
  explicit Registration(Requestor* requestor) : requestor_(requestor) {
    MutexLock lock(&requestor_->mutex_);
    requestor_->calls_.insert(&call);
  }
  ~Registration() {
    MutexLock lock(&requestor_->mutex_);
    requestor_->calls_.erase(&call);
  }

  Call call;

 private:
  Requestor* const requestor_;
};

absl::StatusOr<std::unique_ptr<Requestor>> Requestor::Connect(RequestorOptions options) {
  ECPIPE_ASSIGN_OR_RETURN(std::unique_ptr<CoordinatorApi> coordinator,
                          MakeCoordinatorClient(options.coordinator, options.call_timeout));
  return std::make_unique<Requestor>(std::move(coordinator), std::move(options));
}

Requestor::Requestor(std::unique_ptr<CoordinatorApi> coordinator, RequestorOptions options)
    : coordinator_(std::move(coordinator)),
      options_(WithName(std::move(options))),
      tcp_(MakeTcpTransport(nullptr)),
      redis_(MakeRedisTransport("", 2 * options_.part.stall_timeout)) {}

Requestor::~Requestor() = default;

absl::StatusOr<RepairReport> Requestor::Read(const RepairTarget& target, const ByteSink& sink,
                                             const ProgressFn& progress) {
  if (target.block_ids.size() != 1) {
    return absl::InvalidArgumentError("one block can be read in order, not " +
                                      std::to_string(target.block_ids.size()));
  }
  Sink in_order(&sink, nullptr, progress);
  return Run(target, &in_order);
}

absl::StatusOr<RepairReport> Requestor::RepairToFiles(const RepairTarget& target,
                                                      const std::vector<std::string>& paths,
                                                      const ProgressFn& progress,
                                                      const FileCheck& check) {
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
  Sink to_files(nullptr, &files, progress);
  ECPIPE_ASSIGN_OR_RETURN(RepairReport report, Run(target, &to_files));
  for (size_t i = 0; check && i < files.size(); ++i) {
    ECPIPE_RETURN_IF_ERROR(check(i, files[i], report.bytes / files.size()));
  }
  const TimePoint verified = Clock::System().Now();
  for (AtomicFile& file : files) ECPIPE_RETURN_IF_ERROR(file.Commit());
  report.commit_seconds = Seconds(Clock::System().Now() - verified);
  return report;
}

absl::StatusOr<RepairReport> Requestor::RepairToNodes(const RepairTarget& target,
                                                      const std::vector<std::string>& nodes) {
  if (nodes.empty()) return absl::InvalidArgumentError("no node is named");
  Registration registration(this);
  ECPIPE_ASSIGN_OR_RETURN(const GrantedRepair granted,
                          coordinator_->BeginRepair(target, nodes, options_.name));
  RepairReport report = ReportOf(granted);
  const absl::StatusOr<RepairStatus> ended = AwaitEnd(granted.repair_id, registration.call);
  if (absl::IsCancelled(ended.status())) {
    [[maybe_unused]] const absl::Status told =
        coordinator_->FinishRepair(granted.repair_id, 0, ended.status(), 0);
  }
  if (!ended.ok()) return Annotate(ended.status(), "repair " + RepairIdText(granted.repair_id));
  if (ended->state != "done") {
    return absl::AbortedError("repair " + RepairIdText(granted.repair_id) + " " + ended->state +
                              ": " + ended->detail);
  }
  report.attempts = ended->attempt + 1;
  report.transport = ended->transport;
  report.bytes = granted.block_bytes * target.block_ids.size();
  report.seconds = static_cast<double>(ended->ended_unix_ms - ended->started_unix_ms) / 1000;
  return report;
}

absl::StatusOr<RepairStatus> Requestor::AwaitEnd(RepairId repair_id, const Call& call) {
  constexpr Duration kLongestPause = std::chrono::milliseconds(200);
  const Clock& clock = Clock::System();
  Duration pause = std::chrono::milliseconds(5);
  TimePoint answered = clock.Now();
  while (true) {
    absl::StatusOr<RepairStatus> repair = coordinator_->Repair(repair_id);
    if (repair.ok()) {
      if (repair->state != "running") return repair;
      answered = clock.Now();
    } else {
      // A coordinator that starts again takes the repair up.
      const bool silent =
          absl::IsUnavailable(repair.status()) || absl::IsDeadlineExceeded(repair.status());
      if (!silent || clock.Now() - answered > options_.call_timeout) return repair;
    }
    MutexLock lock(&mutex_);
    const auto till = std::chrono::steady_clock::now() + pause;
    while (!call.cancelled && cancelled_.WaitUntil(lock, till)) {
    }
    if (call.cancelled) return absl::CancelledError("the requestor gave up");
    pause = std::min(2 * pause, kLongestPause);
  }
}

absl::StatusOr<RepairReport> Requestor::Run(const RepairTarget& target, Sink* sink) {
  Registration registration(this);
  const TimePoint begun = Clock::System().Now();
  ECPIPE_ASSIGN_OR_RETURN(const GrantedRepair granted,
                          coordinator_->BeginRepair(target, {}, options_.name));
  const RepairPart& part = *granted.part;
  RepairReport report = ReportOf(granted);
  report.attempts = part.attempt + 1;
  report.transport = TransportName(part.transport);
  report.offset = part.grid.offset;
  sink->Begin(part.grid, target.block_ids.size());
  absl::Status status = RunPart(part, sink, &registration.call, &report);
  report.seconds = Seconds(Clock::System().Now() - begun);
  report.bytes = sink->verified_bytes();
  if (status.ok() && report.bytes != sink->total_bytes()) {
    status = absl::InternalError("the plan brought " + std::to_string(report.bytes) + " of " +
                                 std::to_string(sink->total_bytes()) + " bytes");
  }
  // The verdict is the coordinator's to record; the bytes are ours whether or not it hears it.
  [[maybe_unused]] const absl::Status told =
      coordinator_->FinishRepair(report.repair_id, part.attempt, status, report.bytes);
  if (!status.ok()) return Annotate(status, "repair " + RepairIdText(report.repair_id));
  return report;
}

absl::Status Requestor::RunPart(const RepairPart& part, Sink* sink, Call* call,
                                RepairReport* report) {
  ECPIPE_RETURN_IF_ERROR(CheckPart(part));
  Transport* const transport = part.transport == TransportKind::kRedis ? redis_.get() : tcp_.get();
  ECPIPE_ASSIGN_OR_RETURN(const std::unique_ptr<PartRunner> runner,
                          PartRunner::Create(part, {}, transport, sink, options_.part));
  {
    MutexLock lock(&mutex_);
    call->runner = runner.get();
    if (call->cancelled) runner->Cancel(absl::CancelledError("the requestor gave up"));
  }
  const absl::Status status = runner->Run();
  {
    MutexLock lock(&mutex_);
    call->runner = nullptr;
  }
  report->bytes_received = runner->traffic().bytes_received;
  return status;
}

void Requestor::Cancel() {
  MutexLock lock(&mutex_);
  for (Call* call : calls_) {
    call->cancelled = true;
    if (call->runner != nullptr) {
      call->runner->Cancel(absl::CancelledError("the requestor gave up"));
    }
  }
  cancelled_.NotifyAll();
}

}  // namespace ecpipe
