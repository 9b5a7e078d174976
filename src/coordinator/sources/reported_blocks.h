// SPDX-License-Identifier: Apache-2.0
// The blocks of HDFS block groups that helpers of DataNodes have reported.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "model/block_report.h"

namespace ecpipe {

// The blocks of a node by its last report. Immutable: a new report makes a new object.
struct NodeBlocks {
  uint64_t incarnation = 0;  // incarnation of the helper
  uint64_t sequence = 0;     // number of the latest report
  TimePoint reported{};      // when that report came
  uint64_t block_count = 0;
  uint64_t block_bytes = 0;
  std::map<std::string, std::vector<InternalBlock>> pools;  // each in the order of ids, none twice
};

// Thread-safe. Keeps 24 bytes for each block, in sorted vectors: 240 MB for 10 million blocks. A
// report that changes anything takes the time and memory of a copy of the node's blocks.
class ReportedBlocks {
 public:
  using Nodes = std::map<std::string, std::shared_ptr<const NodeBlocks>>;  // shared with readers

  struct Limits {
    uint64_t blocks_of_a_node = BlockReport::kMaxBlocks;
    // Of all nodes together: 2.4 GB, which the unit's MemoryMax of 4 GB has room for beside the
    // reports that are under way. The largest cluster aimed at has 10^9.
    uint64_t blocks = 100'000'000;
  };
  ReportedBlocks() = default;
  explicit ReportedBlocks(const Limits& limits) : limits_(limits) {}

  enum class Outcome {
    kTaken,
    kSendAll,  // the report continues one that is not known here: the helper must send all blocks
  };
  // Takes a report as a whole or not at all. RESOURCE_EXHAUSTED: the node, or all nodes together,
  // would be over a limit.
  absl::StatusOr<Outcome> Record(BlockReport report, TimePoint now);

  // Forgets the node, unless it has reported since `blocks`: what it reports next continues
  // nothing, so that it is asked for all.
  void Forget(const std::string& node, const std::shared_ptr<const NodeBlocks>& blocks);

  // The blocks that a node has reported last, also if it is dead: these are then its lost blocks.
  // Null: no report is known, neither to this process nor, for a dead node, from the process
  // before.
  std::shared_ptr<const NodeBlocks> Of(const std::string& node) const;
  Nodes All() const;

 private:
  const Limits limits_;
  mutable Mutex mutex_;
  Nodes nodes_ ABSL_GUARDED_BY(mutex_);
  uint64_t block_count_ ABSL_GUARDED_BY(mutex_) = 0;  // of all nodes
};

// The block in that pool with that id; null if it is not there. Valid as long as `blocks`.
const InternalBlock* FindBlockIn(const NodeBlocks& blocks, const std::string& pool, int64_t id);

}  // namespace ecpipe
