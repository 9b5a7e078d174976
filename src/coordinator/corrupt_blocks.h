// SPDX-License-Identifier: Apache-2.0
// The blocks that somebody has found to be corrupt. Planners do not read them until they have been
// repaired.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "common/mutex.h"

namespace ecpipe {

struct CorruptBlock {
  std::string block_id;
  std::string node;    // that has it
  std::string reason;  // what was found
  int64_t found_unix_ms = 0;
};

// Thread-safe. Lives as long as the process: a coordinator that starts again learns of corrupt
// blocks when they are next read.
class CorruptBlocks {
 public:
  // Bounds what reports can make us keep, at some hundred bytes each; the oldest are dropped beyond
  // it, and found again when they are next read.
  static constexpr size_t kMost = 10'000;
  static constexpr size_t kMaxReasonBytes = 300;

  // True if the block was not known to be corrupt there. An older report stays as it is.
  bool Add(CorruptBlock block);
  // The block is good again, or will be: it was stored anew.
  void Forget(const std::string& block_id);

  // Why the node's copy of the block must not be read; empty if nothing is known against it.
  std::string Reason(const std::string& block_id, const std::string& node) const;
  // The oldest first.
  std::vector<CorruptBlock> All() const;
  // Blocks that were found since the start, each time that they were.
  uint64_t found() const;

 private:
  mutable Mutex mutex_;
  std::map<std::string, CorruptBlock> blocks_ ABSL_GUARDED_BY(mutex_);  // by id
  std::deque<std::string> order_ ABSL_GUARDED_BY(mutex_);               // ids, the oldest first
  uint64_t found_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace ecpipe
