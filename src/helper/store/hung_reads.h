// SPDX-License-Identifier: Apache-2.0
// Reads of a directory's blocks that do not come back. A disk may answer whoever opens a file,
// since all of that is in memory, and hang whoever reads it. Nothing can interrupt such a read:
// each keeps its thread, its block and its buffers, and those of a part that has ended are in no
// other count.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "base/clock.h"
#include "helper/store/root_calls.h"
#include "pipeline/block_reader.h"

namespace ecpipe {

// Thread-safe. Readers may outlive it.
class HungReads {
 public:
  // As long as a part that ends waits for a read of its own (pipeline/read_thread.cc): until then
  // the part's session counts it.
  static constexpr Duration kPatience = std::chrono::seconds(2);
  // So many at once are no bad sector, nor a burst of work for a slow disk.
  static constexpr size_t kMost = RootCalls::kMaxThreads;

  // `path` is for errors and the log.
  explicit HungReads(const std::string& path, const Clock* clock = &Clock::System());

  const std::string& path() const;

  // The same block; its reads count while they run.
  std::unique_ptr<BlockReader> Watch(std::unique_ptr<BlockReader> block) const;

  // UNAVAILABLE: kMost reads have not come back for kPatience, so no further one may begin. OK
  // again when they have. Logs when that changes. Returns at once.
  absl::Status Check() const;

 private:
  struct State;
  class WatchedBlock;

  const std::shared_ptr<State> state_;  // shared with the readers
};

}  // namespace ecpipe
