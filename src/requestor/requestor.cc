// SPDX-License-Identifier: Apache-2.0
#include "requestor/requestor.h"

#include <unistd.h>

#include <climits>
#include <optional>

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

}  // namespace

// Counts what is verified, and passes it on: in order to a function, or in any order to a file.
class Requestor::Sink : public SliceSink {
 public:
  Sink(const ByteSink* in_order, AtomicFile* file, const ProgressFn& progress)
      : in_order_(in_order), file_(file), progress_(progress) {}

  void Begin(const SliceGrid& grid) { grid_ = grid; }

  bool Ready(Row, uint32_t slice_index) override {
    return in_order_ == nullptr || slice_index == next_slice_;
  }

  absl::Status Write(Row, uint32_t slice_index, std::span<const uint8_t> bytes) override {
    if (in_order_ != nullptr) {
      ECPIPE_RETURN_IF_ERROR((*in_order_)(bytes));
      next_slice_ = slice_index + 1;
    } else {
      ECPIPE_RETURN_IF_ERROR(file_->WriteAt(grid_.SliceOffset(slice_index) - grid_.offset, bytes));
    }
    verified_bytes_ += bytes.size();
    ShowProgress();
    return absl::OkStatus();
  }

  uint64_t verified_bytes() const { return verified_bytes_; }

 private:
  void ShowProgress() {
    if (!progress_) return;
    constexpr auto kInterval = std::chrono::milliseconds(100);
    const TimePoint now = Clock::System().Now();
    if (now < next_progress_ && verified_bytes_ < grid_.bytes) return;
    next_progress_ = now + kInterval;
    progress_(verified_bytes_, grid_.bytes);
  }

  const ByteSink* const in_order_;
  AtomicFile* const file_;
  const ProgressFn& progress_;
  SliceGrid grid_;
  uint32_t next_slice_ = 0;
  uint64_t verified_bytes_ = 0;
  TimePoint next_progress_{};
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
  Sink in_order(&sink, nullptr, progress);
  return Run(target, &in_order);
}

absl::StatusOr<RepairReport> Requestor::RepairToFile(const RepairTarget& target,
                                                     const std::string& path,
                                                     const ProgressFn& progress,
                                                     const FileCheck& check) {
  // Before anything is asked of the cluster: a directory that cannot be written is no reason to
  // repair.
  ECPIPE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  Sink to_file(nullptr, &file, progress);
  ECPIPE_ASSIGN_OR_RETURN(RepairReport report, Run(target, &to_file));
  if (check) ECPIPE_RETURN_IF_ERROR(check(file, report.bytes));
  const TimePoint verified = Clock::System().Now();
  ECPIPE_RETURN_IF_ERROR(file.Commit());
  report.commit_seconds = Seconds(Clock::System().Now() - verified);
  return report;
}

absl::StatusOr<RepairReport> Requestor::Run(const RepairTarget& target, Sink* sink) {
  Call call;
  {
    MutexLock lock(&mutex_);
    calls_.insert(&call);
  }
  absl::StatusOr<RepairReport> report = RunCall(target, sink, &call);
  MutexLock lock(&mutex_);
  calls_.erase(&call);
  return report;
}

absl::StatusOr<RepairReport> Requestor::RunCall(const RepairTarget& target, Sink* sink,
                                                Call* call) {
  const TimePoint begun = Clock::System().Now();
  ECPIPE_ASSIGN_OR_RETURN(const GrantedRepair granted,
                          coordinator_->BeginRepair(target, options_.name));
  RepairReport report;
  report.repair_id = granted.part.repair_id;
  report.attempts = granted.part.attempt + 1;
  report.scheme = granted.scheme;
  report.transport = TransportName(granted.part.transport);
  report.stripe_id = granted.stripe_id;
  report.block_bytes = granted.block_bytes;
  report.offset = granted.part.grid.offset;
  report.cost = granted.cost;
  sink->Begin(granted.part.grid);
  absl::Status status = RunPart(granted, sink, call, &report);
  report.seconds = Seconds(Clock::System().Now() - begun);
  report.bytes = sink->verified_bytes();
  if (status.ok() && report.bytes != granted.part.grid.bytes) {
    status = absl::InternalError("the plan brought " + std::to_string(report.bytes) + " of " +
                                 std::to_string(granted.part.grid.bytes) + " bytes");
  }
  // The verdict is the coordinator's to record; the bytes are ours whether or not it hears it.
  [[maybe_unused]] const absl::Status told =
      coordinator_->FinishRepair(report.repair_id, granted.part.attempt, status, report.bytes);
  if (!status.ok()) return Annotate(status, "repair " + RepairIdText(report.repair_id));
  return report;
}

absl::Status Requestor::RunPart(const GrantedRepair& granted, Sink* sink, Call* call,
                                RepairReport* report) {
  ECPIPE_RETURN_IF_ERROR(CheckPart(granted.part));
  Transport* const transport =
      granted.part.transport == TransportKind::kRedis ? redis_.get() : tcp_.get();
  ECPIPE_ASSIGN_OR_RETURN(const std::unique_ptr<PartRunner> runner,
                          PartRunner::Create(granted.part, {}, transport, sink, options_.part));
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
}

}  // namespace ecpipe
