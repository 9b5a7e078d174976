// SPDX-License-Identifier: Apache-2.0
// Keeps the slices that failed parts have stored, for a while, so that the next attempt of the
// repair can go on from them. docs/design/008-attempts.md has the reasoning.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "helper/sessions/store_sink.h"
#include "model/plan/repair_plan.h"

namespace ecpipe {

// Thread-safe.
class KeptBlocks {
 public:
  struct Options {
    Duration keep_for = std::chrono::seconds(30);
    // The most repairs to keep. Each has its half-written blocks on disk, and a byte of memory for
    // each slice.
    size_t most = 64;
  };

  explicit KeptBlocks(const Options& options) : options_(options) {}
  // Discards all.
  ~KeptBlocks();

  // Keeps the sink of a part that has ended, in the place of the sink of an older attempt of the
  // same repair. Discards it at once if there are `most` others.
  void Keep(RepairId repair_id, uint32_t attempt, std::unique_ptr<StoreSink> sink);
  // Takes the sink that an earlier attempt has left, for this attempt; null if there is none.
  std::unique_ptr<StoreSink> Remove(RepairId repair_id, uint32_t attempt);
  // The slices that a kept attempt lacks; nothing if the attempt is not kept.
  std::optional<std::vector<SliceRun>> Missing(RepairId repair_id, uint32_t attempt);
  // Discards what attempts up to this one have left.
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
  Thread thread_ ABSL_GUARDED_BY(mutex_);  // started when the first sink is kept
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace ecpipe
