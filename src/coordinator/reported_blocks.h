// SPDX-License-Identifier: Apache-2.0
// The blocks of block groups that DataNodes' helpers say to have on their disks.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/block_report.h"
#include "common/clock.h"
#include "common/mutex.h"

namespace ecpipe {

// What a node has, or had when it was last heard of. Immutable: a new report makes a new one.
struct NodeBlocks {
  uint64_t incarnation = 0;  // of the helper
  uint64_t sequence = 0;     // of the latest report
  TimePoint reported{};      // when that came
  uint64_t block_count = 0;
  uint64_t block_bytes = 0;
  std::map<std::string, std::vector<InternalBlock>> pools;  // each in the order of ids, none twice
};

// Thread-safe. Keeps 24 bytes a block, in sorted vectors: 10 million blocks are 240 MB. A report
// takes the time and the room of a copy of what the node has, if it changes anything.
class ReportedBlocks {
 public:
  using Nodes = std::map<std::string, std::shared_ptr<const NodeBlocks>>;  // shared with readers

  // Bounds what all nodes together can make us keep: 1.6 GB.
  static constexpr uint64_t kMaxBlocks = 64'000'000;

  enum class Outcome {
    kTaken,
    kSendAll,  // the report continues one that is not known here
  };
  // Takes a report, or nothing of it. RESOURCE_EXHAUSTED: beyond BlockReport's limits, or ours.
  absl::StatusOr<Outcome> Take(BlockReport report, TimePoint now);

  // What a node has reported last, dead or not: of a dead one it is what was lost. Null: nothing
  // that this process or, of a dead node, the one before has heard.
  std::shared_ptr<const NodeBlocks> Of(const std::string& node) const;
  Nodes All() const;

 private:
  mutable Mutex mutex_;
  Nodes nodes_ ABSL_GUARDED_BY(mutex_);
  uint64_t block_count_ ABSL_GUARDED_BY(mutex_) = 0;  // of all nodes
};

// The block in that pool with that id; null if it is not there. Valid as long as `blocks`.
const InternalBlock* FindBlockIn(const NodeBlocks& blocks, const std::string& pool, int64_t id);

}  // namespace ecpipe
