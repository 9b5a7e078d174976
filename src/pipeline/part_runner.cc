// SPDX-License-Identifier: Apache-2.0
#include "pipeline/part_runner.h"

#include <algorithm>
#include <cerrno>
#include <limits>

#include "base/check.h"
#include "base/guarded.h"
#include "base/simulator.h"
#include "base/status.h"
#include "model/fault.h"

namespace ecpipe {
namespace {

// For the frames under way of all outputs together: each is small, and a receiver that takes no
// more of it does not wait for the cause either.
constexpr Duration kPatienceForErrors = std::chrono::milliseconds(500);

// A part with many lanes shares the bytes of one with a single lane among them, since each lane
// flows so much slower; but every ring has a whole slice, so that large slices of many lanes need
// more. Two slots are the least with which a hop receives and sends at once; of many hops some send
// while others receive.
RingShare RingOfHop(const RepairPart& part, const PartOptions& options) {
  constexpr size_t kFewHops = 16;
  if (part.serial) return {.bytes = 0, .least_slots = 1};
  const size_t hops = std::max<size_t>(1, part.hops.size());
  return {.bytes = options.ring_bytes / hops, .least_slots = hops > kFewHops ? 1u : 2u};
}

}  // namespace

uint64_t PartBufferBytes(const RepairPart& part, const PartOptions& options) {
  uint64_t bytes = 0;
  for (const HopSpec& hop : part.hops) {
    bytes += HopBufferBytes(part.grid, hop, RingOfHop(part, options));
    bytes += (hop.inputs.size() + hop.outputs.size()) * options.stream_bytes;
  }
  return bytes;
}

absl::StatusOr<std::unique_ptr<PartRunner>> PartRunner::Create(RepairPart part, Blocks blocks,
                                                               Transport* transport,
                                                               SliceSink* sink,
                                                               const PartOptions& options) {
  std::unique_ptr<PartRunner> runner(new PartRunner(std::move(part), options));
  if (!runner->wakeup_->valid()) {
    return ErrnoStatus(EMFILE, "make an eventfd");
  }
  const uint64_t bytes = PartBufferBytes(runner->part_, options);
  if (options.buffers != nullptr && !runner->buffers_.emplace(options.buffers.get()).Take(bytes)) {
    return OwnShortage(absl::ResourceExhaustedError(
        "the reads that are under way here hold the " + std::to_string(options.buffers->most()) +
        " bytes that there are for their buffers; try again later"));
  }
  const HopRunner::Context context{&runner->part_,
                                   transport,
                                   sink,
                                   runner->wakeup_,
                                   runner->read_thread_,
                                   RingOfHop(runner->part_, options),
                                   runner->part_.probe ? nullptr : options.send_limiter,
                                   options.receive_limiter};
  for (size_t i = 0; i < runner->part_.hops.size(); ++i) {
    ECPIPE_ASSIGN_OR_RETURN(
        std::unique_ptr<HopRunner> hop,
        HopRunner::Create(context, runner->part_.hops[i], std::move(blocks[i])));
    runner->hops_.push_back(std::move(hop));
  }
  return runner;
}

absl::Status PartRunner::Run() {
  absl::Status status = Guarded([&] { return Loop(); });
  if (IsOwnShortage(status)) status = WithFault(std::move(status), kFaultSelf);
  PublishTraffic();
  if (!status.ok()) {
    const TimePoint deadline = Clock::System().Now() + kPatienceForErrors;
    (void)Guarded([&] {
      for (const auto& hop : hops_) hop->SendError(status, deadline);
      return absl::OkStatus();
    });
  }
  hops_.clear();
  read_thread_.reset();
  return status;
}

absl::Status PartRunner::Loop() {
  const Clock& clock = Clock::System();
  TimePoint deadline = clock.Now() + options_.stall_timeout;
  const auto least_bytes = std::max<uint64_t>(
      1, static_cast<uint64_t>(kLeastBytesPerSecond * Seconds(options_.stall_timeout)));
  uint64_t bytes_before = 0;
  while (true) {
    ECPIPE_RETURN_IF_ERROR(cancelled());
    AnswerProgress();
    ECPIPE_ASSIGN_OR_RETURN(const bool moved, StepAll());
    if (hops_.empty()) return absl::OkStatus();
    PublishTraffic();
    const PartTraffic now = traffic();
    const uint64_t bytes = now.bytes_sent + now.bytes_received + now.block_bytes_read;
    if (moved || bytes - bytes_before >= least_bytes || HeldBackFor()) {
      deadline = clock.Now() + options_.stall_timeout;
      bytes_before = bytes;
    }
    if (!moved) ECPIPE_RETURN_IF_ERROR(WaitForEvents(deadline));
  }
}

// The lanes of a part go on together: none sends more than some slices ahead of the last one. They
// share the node's links, and left to themselves the one with the most streams would have the most
// of them, finish early and leave the others' links empty at the end. The first slice that is
// missing anywhere may always go on, so nobody waits for each other in a circle.
uint32_t PartRunner::SendLimit() const {
  constexpr uint64_t kLeadOfEachLane = 4;
  if (hops_.size() == 1) return std::numeric_limits<uint32_t>::max();
  uint64_t first = std::numeric_limits<uint32_t>::max();
  for (const auto& hop : hops_) {
    if (!hop->Done()) first = std::min<uint64_t>(first, hop->FirstUnsent());
  }
  const uint64_t limit = first + kLeadOfEachLane * hops_.size();
  return static_cast<uint32_t>(std::min<uint64_t>(limit, std::numeric_limits<uint32_t>::max()));
}

absl::StatusOr<bool> PartRunner::StepAll() {
  bool moved = false;
  bool all_done = true;
  const uint32_t send_limit = SendLimit();
  for (const auto& hop : hops_) {
    if (hop->Done()) continue;
    ECPIPE_ASSIGN_OR_RETURN(const bool hop_moved, hop->Step(send_limit));
    moved |= hop_moved;
    all_done &= hop->Done();
  }
  if (all_done) {
    PublishTraffic();
    for (const auto& hop : hops_) {
      link_timings_.insert(link_timings_.end(), hop->link_timings().begin(),
                           hop->link_timings().end());
    }
    hops_.clear();
  }
  return moved;
}

std::optional<Duration> PartRunner::HeldBackFor() const {
  std::optional<Duration> shortest;
  for (const auto& hop : hops_) {
    const std::optional<Duration> held_back = hop->HeldBackFor();
    if (held_back) shortest = std::min(shortest.value_or(*held_back), *held_back);
  }
  return shortest;
}

absl::Status PartRunner::WaitForEvents(TimePoint deadline) {
  polled_.clear();
  polled_.push_back({wakeup_->fd(), POLLIN, 0});
  for (const auto& hop : hops_) {
    if (!hop->Done()) hop->AddPollFds(&polled_);
  }
  Duration rest = deadline - Clock::System().Now();
  if (const std::optional<Duration> held_back = HeldBackFor()) rest = std::min(rest, *held_back);
  const int ready = Poll(polled_, rest);
  if (ready == 0 && Clock::System().Now() >= deadline) return Stalled();
  if (polled_[0].revents != 0) wakeup_->Drain();
  const bool hang_up = std::any_of(polled_.begin() + 1, polled_.end(), [](const pollfd& polled) {
    return (polled.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
  });
  if (!hang_up) return absl::OkStatus();
  for (const auto& hop : hops_) {
    if (!hop->Done()) ECPIPE_RETURN_IF_ERROR(hop->CheckOutputs());
  }
  return absl::OkStatus();
}

absl::Status PartRunner::Stalled() const {
  std::string waiting;
  for (const auto& hop : hops_) {
    if (hop->Done()) continue;
    const std::string text = hop->WaitingFor();
    if (!text.empty()) waiting += (waiting.empty() ? "" : "; ") + text;
  }
  return absl::DeadlineExceededError("no progress for " +
                                     std::to_string(Seconds(options_.stall_timeout)) +
                                     " s, waiting for " + waiting);
}

void PartRunner::Cancel(absl::Status reason) {
  ECPIPE_CHECK(!reason.ok());
  {
    MutexLock lock(&mutex_);
    if (cancel_reason_.ok()) cancel_reason_ = std::move(reason);
  }
  wakeup_->Signal();
}

bool PartRunner::Progress(Duration timeout, std::vector<HopProgress>* progress) {
  const TimePoint deadline = Clock::System().Now() + timeout;
  const uint32_t question = ++progress_asked_;
  wakeup_->Signal();
  MutexLock lock(&mutex_);
  while (progress_of_ < question && progress_answered_.WaitUntil(lock, deadline)) {
  }
  if (progress_of_ < question) return false;
  *progress = progress_;
  return true;
}

void PartRunner::AnswerProgress() {
  const uint32_t question = progress_asked_;
  if (progress_given_ == question) return;
  progress_given_ = question;
  MutexLock lock(&mutex_);
  progress_.clear();
  for (const auto& hop : hops_) {
    if (!hop->Done()) progress_.push_back(hop->Progress());
  }
  progress_of_ = question;
  progress_answered_.NotifyAll();
}

absl::Status PartRunner::cancelled() {
  MutexLock lock(&mutex_);
  return cancel_reason_;
}

PartTraffic PartRunner::traffic() const {
  return {bytes_sent_, bytes_received_, block_bytes_read_};
}

void PartRunner::PublishTraffic() {
  if (hops_.empty()) return;
  PartTraffic total;
  for (const auto& hop : hops_) {
    total.bytes_sent += hop->bytes_sent();
    total.bytes_received += hop->bytes_received();
    total.block_bytes_read += hop->block_bytes_read();
  }
  bytes_sent_ = total.bytes_sent;
  bytes_received_ = total.bytes_received;
  block_bytes_read_ = total.block_bytes_read;
}

}  // namespace ecpipe
