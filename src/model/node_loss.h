// SPDX-License-Identifier: Apache-2.0
// What became of the blocks that HDFS had on a DataNode.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace ecpipe {

struct BlockCount {
  uint64_t blocks = 0;
  uint64_t bytes = 0;

  void Add(uint64_t block_bytes) {
    ++blocks;
    bytes += block_bytes;
  }
  friend bool operator==(const BlockCount&, const BlockCount&) = default;
};

// What became of the blocks of a dead node. Each lost block is rebuilt, gone or outstanding.
struct BlockLoss {
  BlockCount lost;
  BlockCount rebuilt;  // a live node has it
  BlockCount gone;     // its group was deleted, or has another generation now
  BlockCount outstanding;
  // Outstanding blocks of groups that lack 1, 2, and 3 or more blocks; and outstanding blocks of
  // groups that are in no answer of the NameNode.
  std::array<uint64_t, 3> by_missing{};
  uint64_t of_unknown_groups = 0;
  uint64_t beyond_repair = 0;    // outstanding blocks of groups that lack more than their parity
  uint64_t repairs_running = 0;  // outstanding blocks that are being repaired

  friend bool operator==(const BlockLoss&, const BlockLoss&) = default;
};

// What the coordinator knows from HDFS's NameNode.
struct HdfsFacts {
  bool configured = false;
  std::optional<double> age_seconds;  // age of its last answer; none: no answer yet
  uint64_t groups = 0;
  std::string last_error;  // why there is no newer answer; empty: it is as new as it should be
  std::string safe_mode;   // what the NameNode says of it; empty: it is not in safe mode

  friend bool operator==(const HdfsFacts&, const HdfsFacts&) = default;
};

struct NodeLoss {
  std::string node;
  // "live", "draining" or "dead": by the NameNode, or by heartbeats where it does not say.
  std::string state;
  double silent_seconds = 0;  // since its last sign of life
  std::string state_in_hdfs;  // "live" or "dead", by the NameNode; empty: it does not say
  std::string helper_state;   // by the heartbeats of the helper beside the DataNode
  double helper_silent_seconds = 0;
  // Empty unless the node is dead. While nodes have not reported yet, no block counts as beyond
  // repair.
  BlockLoss loss;
  double report_age_seconds = 0;  // age of the oldest report among those of live DataNodes
  uint64_t unreported_nodes = 0;  // live DataNodes that have not reported their blocks yet
  HdfsFacts facts;
};

}  // namespace ecpipe
