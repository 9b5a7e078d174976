// SPDX-License-Identifier: Apache-2.0
// Finds out which blocks of which groups are on live nodes, and what became of the blocks of a
// node. Pure.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "coordinator/sources/group_table.h"
#include "coordinator/sources/reported_blocks.h"
#include "model/node_loss.h"

namespace ecpipe {

// A group, of one generation.
struct GroupKey {
  int64_t id = 0;
  uint64_t stamp = 0;
};

// For each of these groups of one pool, which are in the order of their ids: a bit for each block
// that one of these nodes has in the group's generation. Blocks of other groups are ignored.
std::vector<uint16_t> BlocksAt(const std::vector<std::shared_ptr<const NodeBlocks>>& nodes,
                               const std::string& pool, const std::vector<GroupKey>& groups);

// The health of all groups of a table.
struct GroupHealth {
  uint64_t degraded = 0;  // groups with a block that no live node has
  uint64_t lost = 0;      // groups that lack more blocks than their parity
};
GroupHealth HealthOf(const GroupTable& table,
                     const std::vector<std::shared_ptr<const NodeBlocks>>& live);

// What LossOf knows of groups.
struct GroupKnowledge {
  const GroupTable* table = nullptr;  // null: nothing
  // Whether a group that is not in the table does not exist: the table covers all of HDFS, as it
  // was after the node was lost.
  bool complete = false;
};
// `running` has the names of blocks that are being repaired.
BlockLoss LossOf(const NodeBlocks& lost, const std::vector<std::shared_ptr<const NodeBlocks>>& live,
                 const GroupKnowledge& known, const std::set<std::string>& running);

}  // namespace ecpipe
