// SPDX-License-Identifier: Apache-2.0
#include "requestor/client/repair_watch.h"

#include <algorithm>
#include <utility>

#include "base/guarded.h"
#include "base/status.h"
#include "model/fault.h"

namespace ecpipe {
namespace {

// More than this is no small read: the time until a fault is noticed hardly counts.
constexpr uint64_t kLittleBytes = 1 << 20;

}  // namespace

RepairWatch::RepairWatch(CoordinatorApi* coordinator, PartRunner* runner,
                         std::function<uint64_t()> missing_bytes, const Options& options)
    : coordinator_(coordinator),
      runner_(runner),
      missing_bytes_(std::move(missing_bytes)),
      options_(options) {
  // It only asks for advice: where there is no thread or no memory for that, the attempt goes on
  // without it, and so does the process that uses the library.
  absl::StatusOr<Thread> thread = Thread::Start([this] {
    (void)Guarded([&] {
      Run();
      return absl::OkStatus();
    });
  });
  if (thread.ok()) thread_ = *std::move(thread);
}

RepairWatch::~RepairWatch() {
  stopping_.request_stop();
  // Whoever has looked just before waits by now.
  {
    const MutexLock lock(&mutex_);
  }
  stop_.NotifyAll();
  if (thread_.joinable()) thread_.join();
}

bool RepairWatch::BringsLittle() const {
  const RepairPart& part = runner_->part();
  return part.grid.bytes * part.layout.sub_blocks <= kLittleBytes && !part.background;
}

void RepairWatch::Run() {
  const Clock& clock = Clock::System();
  Duration quiet_after = options_.quiet_after;
  if (BringsLittle()) quiet_after = std::min(quiet_after, options_.little_quiet_after);
  uint64_t bytes = 0;
  TimePoint moved = clock.Now();
  TimePoint next_check = clock.Now() + options_.check_every;
  while (WaitUntil(clock.Now() + quiet_after / 2)) {
    const TimePoint now = clock.Now();
    const uint64_t bytes_now = runner_->traffic().bytes_received;
    if (bytes_now != bytes) moved = now;
    bytes = bytes_now;
    const bool quiet = now - moved >= quiet_after && WaitsForHelpers();
    if (!quiet && now < next_check) continue;
    CheckProgress(quiet, bytes);
    if (quiet) quiet_after = std::min(2 * quiet_after, options_.quiet_after);
    next_check = clock.Now() + options_.check_every;
  }
}

bool RepairWatch::WaitUntil(TimePoint next) {
  MutexLock lock(&mutex_);
  while (!stopping_.stop_requested() && stop_.WaitUntil(lock, next)) {
  }
  return !stopping_.stop_requested();
}

// Nothing comes, either, while the caller takes its time with what came.
bool RepairWatch::WaitsForHelpers() {
  constexpr Duration kPatience = std::chrono::milliseconds(50);
  std::vector<HopProgress> hops;
  if (!runner_->Progress(kPatience, &hops)) return false;
  for (const HopProgress& hop : hops) {
    for (const StreamProgress& input : hop.inputs) {
      if (input.waiting) return true;
    }
  }
  return false;
}

void RepairWatch::CheckProgress(bool quiet, uint64_t received_bytes) {
  const RepairPart& part = runner_->part();
  // A coordinator that does not answer has no advice; the attempt may go on without it.
  const absl::StatusOr<ProgressAdvice> advice = coordinator_->CheckProgress(
      part.repair_id, part.attempt, missing_bytes_(), quiet, stopping_.get_token());
  if (!advice.ok() || !advice->replan) return;
  // Nobody but us sees what comes here. It may come now, where the coordinator saw nothing move.
  if (quiet && runner_->traffic().bytes_received != received_bytes) return;
  runner_->Cancel(WithFault(absl::UnavailableError(advice->reason), kFaultUnknown));
}

}  // namespace ecpipe
