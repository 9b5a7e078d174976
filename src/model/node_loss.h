// SPDX-License-Identifier: Apache-2.0
// What became of the blocks that a storage system had on one of its nodes.
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
  BlockCount gone;     // its stripe was deleted, or has another generation now
  BlockCount outstanding;
  // Outstanding blocks of stripes that lack 1, 2, and 3 or more blocks; and outstanding blocks of
  // stripes that the storage system did not list.
  std::array<uint64_t, 3> by_missing{};
  uint64_t of_unknown_groups = 0;
  uint64_t beyond_repair = 0;    // outstanding blocks of stripes that lack more than their parity
  uint64_t repairs_running = 0;  // outstanding blocks that are being repaired

  friend bool operator==(const BlockLoss&, const BlockLoss&) = default;
};

// What the coordinator knows from the server that manages a storage system: a NameNode, a
// metaserver.
struct SourceFacts {
  bool configured = false;
  std::optional<double> age_seconds;  // age of its last answer; none: no answer yet
  uint64_t groups = 0;                // stripes
  std::string last_error;  // why there is no newer answer; empty: it is as new as it should be
  std::string safe_mode;   // why the system orders no repairs at present; empty: it does

  friend bool operator==(const SourceFacts&, const SourceFacts&) = default;
};

struct NodeLoss {
  std::string node;
  std::string system;  // "hdfs", "qfs"
  // "live", "draining" or "dead": by that system, or by heartbeats where it does not say.
  std::string state;
  double silent_seconds = 0;    // since its last sign of life
  std::string state_in_system;  // "live" or "dead", by the system; empty: it does not say
  std::string helper_state;     // by the heartbeats of the helper beside the node
  double helper_silent_seconds = 0;
  // Empty unless the node is dead. While nodes have not reported yet, no block counts as beyond
  // repair.
  BlockLoss loss;
  double report_age_seconds = 0;  // age of the oldest report among those of live nodes
  uint64_t unreported_nodes = 0;  // live nodes that have not reported their blocks yet
  SourceFacts facts;
};

}  // namespace ecpipe
