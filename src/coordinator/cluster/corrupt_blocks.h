// SPDX-License-Identifier: Apache-2.0
// The blocks that were found corrupt. Planners do not read them until they have been repaired.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "base/mutex.h"

namespace ecpipe {

struct CorruptBlock {
  std::string block_id;
  std::string node;    // the node that has the corrupt block
  std::string reason;  // what was found wrong
  int64_t found_unix_ms = 0;
};

// Thread-safe. Lives as long as the process: a coordinator that starts again learns of corrupt
// blocks when they are next read.
class CorruptBlocks {
 public:
  // Bounds the memory that reports can take, at some hundred bytes each. Beyond it the oldest are
  // dropped; they are found again when they are next read.
  static constexpr size_t kMost = 10'000;
  static constexpr size_t kMaxReasonBytes = 300;

  // Returns true if the block was not known to be corrupt there. An older report stays as it is.
  bool Add(CorruptBlock block);
  // The block was stored anew, so it no longer counts as corrupt.
  void Forget(const std::string& block_id);

  // Why the node's copy of the block must not be read; empty if it may be read.
  std::string Reason(const std::string& block_id, const std::string& node) const;
  // The oldest first.
  std::vector<CorruptBlock> All() const;
  // The number of findings since the start; a block that was found twice counts twice.
  uint64_t found() const;

 private:
  mutable Mutex mutex_;
  std::map<std::string, CorruptBlock> blocks_ ABSL_GUARDED_BY(mutex_);  // by id
  std::deque<std::string> order_ ABSL_GUARDED_BY(mutex_);               // ids, the oldest first
  uint64_t found_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace ecpipe
