// SPDX-License-Identifier: Apache-2.0
// Which blocks of which groups are on live nodes, and what became of a node's. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "coordinator/group_table.h"
#include "coordinator/reported_blocks.h"

namespace ecpipe {

// A group, of one generation.
struct GroupKey {
  int64_t id = 0;
  uint64_t stamp = 0;
};

// For each of these groups of one pool, in the order of their ids, a bit for each of its blocks
// that some of these nodes have, in that generation. What they have of others is not there.
std::vector<uint16_t> BlocksAt(const std::vector<std::shared_ptr<const NodeBlocks>>& nodes,
                               const std::string& pool, const std::vector<GroupKey>& groups);

// Of all groups of a table.
struct GroupHealth {
  uint64_t degraded = 0;  // lack a block on a live node
  uint64_t lost = 0;      // lack more than their parity
};
GroupHealth HealthOf(const GroupTable& table,
                     const std::vector<std::shared_ptr<const NodeBlocks>>& live);

struct BlockCount {
  uint64_t blocks = 0;
  uint64_t bytes = 0;

  void Add(const InternalBlock& block) {
    ++blocks;
    bytes += block.bytes;
  }
  friend bool operator==(const BlockCount&, const BlockCount&) = default;
};

// What became of the blocks of a node that is dead. Each lost one is rebuilt, gone or outstanding.
struct BlockLoss {
  BlockCount lost;
  BlockCount rebuilt;  // a live node has it
  BlockCount gone;     // its group was deleted, or is of another generation now
  BlockCount outstanding;
  // Outstanding ones of groups that lack 1, 2, 3 and more blocks; and those that are in no answer.
  std::array<uint64_t, 3> by_missing{};
  uint64_t of_unknown_groups = 0;
  uint64_t beyond_repair = 0;    // outstanding, of groups that lack more than their parity
  uint64_t repairs_running = 0;  // of those that are outstanding
};

// What is known of groups, for LossOf.
struct GroupKnowledge {
  const GroupTable* table = nullptr;  // null: nothing
  // Whether a group that the table does not have does not exist: it tells of the whole of HDFS, as
  // it was after the node was lost.
  bool complete = false;
};
// `running` are names of blocks that are being repaired.
BlockLoss LossOf(const NodeBlocks& lost, const std::vector<std::shared_ptr<const NodeBlocks>>& live,
                 const GroupKnowledge& known, const std::set<std::string>& running);

}  // namespace ecpipe
