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
// each block.
class Requestor::Sink : public SliceSink {
 public:
  Sink(const ByteSink* in_order, std::vector<AtomicFile>* files, const ProgressFn& progress)
      : in_order_(in_order), files_(files), progress_(progress) {}

  // The part brings bytes [offset, offset + bytes) of each block, and perhaps some around them.
  absl::Status Begin(const RepairPart& part, uint64_t offset, uint64_t bytes, size_t blocks) {
    grid_ = part.grid;
    layout_ = part.layout;
    offset_ = offset;
    bytes_ = bytes;
    total_bytes_ = bytes * blocks;
    const uint32_t unit = layout_.unit_bytes;
    if (unit > 0 && (grid_.offset % unit != 0 || grid_.slice_bytes % unit != 0)) {
      return absl::InternalError("the part's slices are not whole units");
    }
    if (in_order_ != nullptr && layout_.sub_blocks > 1) {
      const uint64_t slice_bytes = std::min<uint64_t>(grid_.slice_bytes, grid_.bytes);
      held_.resize(slice_bytes * layout_.sub_blocks);
    }
    return absl::OkStatus();
  }

  bool Ready(Row, uint32_t slice_index) override {
    return in_order_ == nullptr || slice_index == next_slice_;
  }

  absl::Status Write(Row row, uint32_t slice_index, std::span<const uint8_t> bytes) override {
    const uint32_t block = row / layout_.sub_blocks;
    if (block >= (in_order_ != nullptr ? 1 : files_->size())) {
      return absl::InternalError("a row that nobody asked for");
    }
    absl::Status written;
    layout_.ForEachPiece(row % layout_.sub_blocks, grid_.SliceOffset(slice_index), bytes.size(),
                         [&](uint64_t place, uint64_t at, uint64_t piece_bytes) {
                           written =
                               Take(block, slice_index, place, bytes.subspan(at, piece_bytes));
                           return written.ok();
                         });
    ECPIPE_RETURN_IF_ERROR(written);
    if (in_order_ != nullptr) ECPIPE_RETURN_IF_ERROR(HandOn(slice_index));
    ShowProgress();
    return absl::OkStatus();
  }

  uint64_t verified_bytes() const { return verified_bytes_; }
  uint64_t total_bytes() const { return total_bytes_; }

 private:
  // What of a piece of the block was asked for.
  std::span<const uint8_t> Wanted(uint64_t place, std::span<const uint8_t> piece) const {
    const uint64_t begin = std::clamp(offset_, place, place + piece.size());
    const uint64_t end = std::clamp(offset_ + bytes_, begin, place + piece.size());
    return piece.subspan(begin - place, end - begin);
  }

  absl::Status Take(size_t block, uint32_t slice_index, uint64_t place,
                    std::span<const uint8_t> piece) {
    if (!held_.empty()) {
      const uint64_t begin = grid_.SliceOffset(slice_index) * layout_.sub_blocks;
      std::copy(piece.begin(), piece.end(), held_.begin() + static_cast<ptrdiff_t>(place - begin));
      held_bytes_ += piece.size();
      return absl::OkStatus();
    }
    const std::span<const uint8_t> wanted = Wanted(place, piece);
    if (wanted.empty()) return absl::OkStatus();
    verified_bytes_ += wanted.size();
    if (in_order_ != nullptr) return (*in_order_)(wanted);
    return (*files_)[block].WriteAt(std::max(place, offset_) - offset_, wanted);
  }

  // The slice, once all its sub-blocks are there.
  absl::Status HandOn(uint32_t slice_index) {
    const uint64_t slice_bytes = grid_.SliceBytes(slice_index) * layout_.sub_blocks;
    if (!held_.empty()) {
      if (held_bytes_ < slice_bytes) return absl::OkStatus();
      held_bytes_ = 0;
      const std::span<const uint8_t> wanted =
          Wanted(grid_.SliceOffset(slice_index) * layout_.sub_blocks,
                 std::span<const uint8_t>(held_).first(slice_bytes));
      verified_bytes_ += wanted.size();
      if (!wanted.empty()) ECPIPE_RETURN_IF_ERROR((*in_order_)(wanted));
    }
    next_slice_ = slice_index + 1;
    return absl::OkStatus();
  }

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
  BlockLayout layout_;
  uint64_t offset_ = 0;
  uint64_t bytes_ = 0;
  std::vector<uint8_t> held_;  // in order and of several sub-blocks: the slice that is coming
  uint64_t held_bytes_ = 0;
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
  report.offset = target.offset;
  const uint64_t bytes = target.bytes == 0 ? granted.block_bytes - target.offset : target.bytes;
  absl::Status status = sink->Begin(part, target.offset, bytes, target.block_ids.size());
  if (status.ok()) status = RunPart(part, sink, &registration.call, &report);
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
