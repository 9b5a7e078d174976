// SPDX-License-Identifier: Apache-2.0
#include "requestor/client/repair_watch.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/status.h"
#include "model/fault.h"

namespace ecpipe {

RepairWatch::RepairWatch(CoordinatorApi* coordinator, PartRunner* runner,
                         std::function<uint64_t()> missing_bytes, const Options& options)
    : coordinator_(coordinator),
      runner_(runner),
      missing_bytes_(std::move(missing_bytes)),
      options_(options),
      thread_([this] {
        // It only asks for advice: where that fails, for want of memory say, the attempt goes on
        // without it, and the process that uses the library does too.
        try {
          Run();
        } catch (const std::exception&) {
        }
      }) {}

RepairWatch::~RepairWatch() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  stop_.NotifyAll();
  thread_.join();
}

void RepairWatch::Run() {
  const Clock& clock = Clock::System();
  const Duration poll_every = options_.quiet_after / 2;
  uint64_t bytes = 0;
  TimePoint moved = clock.Now();
  TimePoint next_check = clock.Now() + options_.check_every;
  while (WaitUntil(clock.Now() + poll_every)) {
    const TimePoint now = clock.Now();
    const uint64_t bytes_now = runner_->traffic().bytes_received;
    if (bytes_now != bytes) moved = now;
    bytes = bytes_now;
    const bool quiet = now - moved >= options_.quiet_after && WaitsForHelpers();
    if (!quiet && now < next_check) continue;
    CheckProgress(quiet);
    next_check = clock.Now() + options_.check_every;
  }
}

bool RepairWatch::WaitUntil(TimePoint next) {
  MutexLock lock(&mutex_);
  while (!stopping_ && stop_.WaitUntil(lock, next)) {
  }
  return !stopping_;
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

void RepairWatch::CheckProgress(bool quiet) {
  const RepairPart& part = runner_->part();
  // A coordinator that does not answer has no advice; the attempt may go on without it.
  const absl::StatusOr<ProgressAdvice> advice =
      coordinator_->CheckProgress(part.repair_id, part.attempt, missing_bytes_(), quiet);
  if (!advice.ok() || !advice->replan) return;
  runner_->Cancel(WithFault(absl::UnavailableError(advice->reason), kFaultUnknown));
}

}  // namespace ecpipe
