// SPDX-License-Identifier: Apache-2.0
// Asks the coordinator about an attempt that brings no bytes, or takes long, and ends the attempt
// if the coordinator says so.
#pragma once

#include <functional>
#include <stop_token>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "pipeline/part_runner.h"
#include "requestor/client/coordinator_api.h"

namespace ecpipe {

// Watches one attempt from construction to destruction, on a thread of its own; where the system
// has none, nobody watches, and the attempt ends by its own deadlines. Destruction ends a running
// call to the coordinator.
class RepairWatch {
 public:
  struct Options {
    Duration quiet_after = std::chrono::milliseconds(500);  // without a byte
    // The same for a part of at most 1 MiB, since somebody waits for just that: first so long, and
    // after each check that finds nothing twice as long, up to `quiet_after`.
    Duration little_quiet_after = std::chrono::milliseconds(30);
    Duration check_every = std::chrono::milliseconds(1000);  // while bytes come
  };

  // `missing_bytes` says what each block lacks, from any thread. All outlive the watch.
  RepairWatch(CoordinatorApi* coordinator, PartRunner* runner,
              std::function<uint64_t()> missing_bytes, const Options& options);
  ~RepairWatch();

 private:
  void Run();
  // Returns false when it is time to stop.
  bool WaitUntil(TimePoint next);
  bool WaitsForHelpers();
  void CheckProgress(bool quiet, uint64_t received_bytes);
  bool BringsLittle() const;

  CoordinatorApi* const coordinator_;
  PartRunner* const runner_;
  const std::function<uint64_t()> missing_bytes_;
  const Options options_;
  Mutex mutex_;
  CondVar stop_;
  std::stop_source stopping_;
  Thread thread_;  // none if there was none to be had
};

}  // namespace ecpipe
