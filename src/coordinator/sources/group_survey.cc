// SPDX-License-Identifier: Apache-2.0
#include "coordinator/sources/group_survey.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "model/systems/hdfs_block.h"

namespace ecpipe {
namespace {

// The groups that a pool's blocks are of, each once and in order. A node has one block of a group
// at a time, and of two in haste the first one's generation is taken.
std::vector<GroupKey> GroupsOf(const BlockList& blocks) {
  std::vector<GroupKey> groups;
  for (const InternalBlock& block : blocks) {
    const int64_t group = GroupOfBlock(block.id);
    if (groups.empty() || groups.back().id != group) groups.push_back({group, block.stamp});
  }
  return groups;
}

// The blocks that a group has, a bit each.
uint16_t BlocksThatExist(const HdfsGroup& facts) {
  uint16_t blocks = 0;
  for (int i = 0; i < facts.blocks(); ++i) {
    if (facts.BlockBytes(i) > 0) blocks |= static_cast<uint16_t>(1 << i);
  }
  return blocks;
}

void MarkBlocks(const BlockList& blocks, const std::vector<GroupKey>& groups,
                std::vector<uint16_t>* found) {
  auto group = groups.begin();
  for (auto block = blocks.begin(); block != blocks.end() && group != groups.end();) {
    const int64_t id = GroupOfBlock(block->id);
    if (group->id < id) {
      group = std::lower_bound(group, groups.end(), id,
                               [](const GroupKey& a, int64_t wanted) { return a.id < wanted; });
    } else if (id < group->id) {
      block = blocks.LowerBound(group->id);
    } else {
      const auto bit = static_cast<uint16_t>(1 << IndexInGroup(block->id));
      if (block->stamp == group->stamp) {
        (*found)[static_cast<size_t>(group - groups.begin())] |= bit;
      }
      ++block;
    }
  }
}

// What became of one block, given which blocks of its group are there.
class LossCounter {
 public:
  LossCounter(const GroupKnowledge& known, const std::set<std::string>& running)
      : known_(known), running_(running) {}

  void Count(const std::string& pool, const InternalBlock& block, uint16_t found) {
    loss_.lost.Add(block.bytes);
    const BlockGroup* const group =
        known_.table == nullptr ? nullptr : known_.table->Find(pool, GroupOfBlock(block.id));
    const bool superseded = group != nullptr && group->stamp != block.stamp;
    if (superseded) return loss_.gone.Add(block.bytes);
    if ((found >> IndexInGroup(block.id) & 1) != 0) return loss_.rebuilt.Add(block.bytes);
    if (group == nullptr && known_.complete) return loss_.gone.Add(block.bytes);
    loss_.outstanding.Add(block.bytes);
    if (running_.contains(HdfsBlock{pool, block.id, block.stamp}.Name())) ++loss_.repairs_running;
    std::optional<HdfsGroup> facts;
    if (group != nullptr) {
      if (auto of = known_.table->GroupOf(*group); of.ok()) facts = *std::move(of);
    }
    if (!facts) {
      ++loss_.of_unknown_groups;
      return;
    }
    const int missing = std::popcount(static_cast<uint16_t>(BlocksThatExist(*facts) & ~found));
    const int classes = static_cast<int>(loss_.by_missing.size());
    ++loss_.by_missing[static_cast<size_t>(std::clamp(missing, 1, classes) - 1)];
    if (missing > facts->parity) ++loss_.beyond_repair;
  }

  const BlockLoss& loss() const { return loss_; }

 private:
  const GroupKnowledge& known_;
  const std::set<std::string>& running_;
  BlockLoss loss_;
};

}  // namespace

std::vector<uint16_t> BlocksAt(const std::vector<std::shared_ptr<const NodeBlocks>>& nodes,
                               const std::string& pool, const std::vector<GroupKey>& groups) {
  std::vector<uint16_t> found(groups.size(), 0);
  for (const std::shared_ptr<const NodeBlocks>& node : nodes) {
    const auto blocks = node->pools.find(pool);
    if (blocks != node->pools.end()) MarkBlocks(blocks->second, groups, &found);
  }
  return found;
}

GroupHealth HealthOf(const GroupTable& table,
                     const std::vector<std::shared_ptr<const NodeBlocks>>& live) {
  GroupHealth health;
  const std::vector<BlockGroup>& all = table.groups();
  for (auto begin = all.begin(); begin != all.end();) {
    const auto end = std::find_if(
        begin, all.end(), [&](const BlockGroup& group) { return group.pool != begin->pool; });
    std::vector<GroupKey> keys;
    for (auto group = begin; group != end; ++group) keys.push_back({group->id, group->stamp});
    const std::vector<uint16_t> found = BlocksAt(live, table.PoolOf(*begin), keys);
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto facts = table.GroupOf(*(begin + static_cast<std::ptrdiff_t>(i)));
      if (!facts.ok()) continue;
      const int missing = std::popcount(static_cast<uint16_t>(BlocksThatExist(*facts) & ~found[i]));
      if (missing > 0) ++health.degraded;
      if (missing > facts->parity) ++health.lost;
    }
    begin = end;
  }
  return health;
}

BlockLoss LossOf(const NodeBlocks& lost, const std::vector<std::shared_ptr<const NodeBlocks>>& live,
                 const GroupKnowledge& known, const std::set<std::string>& running) {
  LossCounter counter(known, running);
  for (const auto& [pool, blocks] : lost.pools) {
    const std::vector<GroupKey> groups = GroupsOf(blocks);
    const std::vector<uint16_t> found = BlocksAt(live, pool, groups);
    size_t at = 0;
    for (const InternalBlock& block : blocks) {
      while (groups[at].id != GroupOfBlock(block.id)) ++at;
      counter.Count(pool, block, block.stamp == groups[at].stamp ? found[at] : uint16_t{0});
    }
  }
  return counter.loss();
}

}  // namespace ecpipe
