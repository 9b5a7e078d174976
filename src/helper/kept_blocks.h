// SPDX-License-Identifier: Apache-2.0
// What parts that failed have of the blocks that they were to store: it waits a while for the next
// attempt of its repair. docs/design/008-attempts.md.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "common/clock.h"
#include "common/mutex.h"
#include "common/repair_plan.h"
#include "common/thread.h"
#include "helper/store_sink.h"

namespace ecpipe {

// Thread-safe.
class KeptBlocks {
 public:
  struct Options {
    Duration keep_for = std::chrono::seconds(30);
    // Repairs. Each keeps its half-written blocks on disk, and a byte a slice.
    size_t most = 64;
  };

  explicit KeptBlocks(const Options& options) : options_(options) {}
  // Discards all.
  ~KeptBlocks();

  // Keeps the sink of a part that has ended, instead of what an older attempt of the repair left.
  // Discards it at once when there are `most` others.
  void Keep(RepairId repair_id, uint32_t attempt, std::unique_ptr<StoreSink> sink);
  // For an attempt: what one before it has left; null if there is nothing.
  std::unique_ptr<StoreSink> Take(RepairId repair_id, uint32_t attempt);
  // Which slices an attempt that has ended lacks; nothing if it is not kept.
  std::optional<std::vector<SliceRun>> Missing(RepairId repair_id, uint32_t attempt);
  // What attempts up to this one have left.
  void Discard(RepairId repair_id, uint32_t attempt);
  void DiscardAll();
  size_t count();

 private:
  struct Kept {
    uint32_t attempt = 0;
    std::unique_ptr<StoreSink> sink;
    TimePoint until;
  };
  void DiscardInTime();

  const Options options_;
  Mutex mutex_;
  CondVar changed_;
  std::map<RepairId, Kept> kept_ ABSL_GUARDED_BY(mutex_);
  Thread thread_ ABSL_GUARDED_BY(mutex_);  // from the first time that something is kept on
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace ecpipe
