// SPDX-License-Identifier: Apache-2.0
#include "coordinator/sources/reported_blocks.h"

#include <algorithm>
#include <utility>

#include "base/status.h"

namespace ecpipe {
namespace {

bool ByBlockId(const InternalBlock& a, const InternalBlock& b) { return a.id < b.id; }

// Of a block that is named twice the last entry counts.
std::vector<InternalBlock> AddedInOrder(const BlockChanges& changes) {
  std::vector<InternalBlock> added;
  added.reserve(changes.added.size());
  for (auto it = changes.added.rbegin(); it != changes.added.rend(); ++it) {
    added.push_back(it->block);
  }
  std::stable_sort(added.begin(), added.end(), ByBlockId);
  const auto same = [](const InternalBlock& a, const InternalBlock& b) { return a.id == b.id; };
  added.erase(std::unique(added.begin(), added.end(), same), added.end());
  return added;
}

std::vector<InternalBlock> Changed(const std::vector<InternalBlock>& before, BlockChanges changes) {
  const std::vector<InternalBlock> added = AddedInOrder(changes);
  std::sort(changes.removed.begin(), changes.removed.end());
  std::vector<InternalBlock> after;
  after.reserve(before.size() + added.size());
  // Of equal ids the first range's goes first, and that is the newer entry.
  std::set_union(added.begin(), added.end(), before.begin(), before.end(),
                 std::back_inserter(after), ByBlockId);
  std::erase_if(after, [&](const InternalBlock& block) {
    return std::binary_search(changes.removed.begin(), changes.removed.end(), block.id) &&
           !std::binary_search(added.begin(), added.end(), block, ByBlockId);
  });
  after.shrink_to_fit();
  return after;
}

}  // namespace

absl::StatusOr<ReportedBlocks::Outcome> ReportedBlocks::Record(BlockReport report, TimePoint now) {
  const std::shared_ptr<const NodeBlocks> before = Of(report.node);
  const bool continues = before != nullptr && before->incarnation == report.incarnation &&
                         before->sequence == report.after;
  if (report.after != 0 && !continues) return Outcome::kSendAll;
  NodeBlocks after;
  if (report.after != 0) after = *before;
  after.incarnation = report.incarnation;
  after.sequence = report.sequence;
  after.reported = now;
  for (auto& [pool, changes] : report.pools) {
    std::vector<InternalBlock>& blocks = after.pools[pool];
    blocks = Changed(blocks, std::move(changes));
  }
  std::erase_if(after.pools, [](const auto& pool) { return pool.second.empty(); });
  after.block_count = after.block_bytes = 0;
  for (const auto& [pool, blocks] : after.pools) {
    after.block_count += blocks.size();
    for (const InternalBlock& block : blocks) after.block_bytes += block.bytes;
  }
  if (after.block_count > limits_.blocks_of_a_node || after.pools.size() > BlockReport::kMaxPools) {
    return absl::ResourceExhaustedError(
        "node " + report.node + " has " + std::to_string(after.block_count) + " blocks in " +
        std::to_string(after.pools.size()) + " block pools; at most " +
        std::to_string(limits_.blocks_of_a_node) + " of " + std::to_string(BlockReport::kMaxPools) +
        " are kept");
  }
  MutexLock lock(&mutex_);
  std::shared_ptr<const NodeBlocks>& known = nodes_[report.node];
  // Another report of the node has overtaken this one.
  if (known != before) return Outcome::kSendAll;
  const uint64_t others = block_count_ - (before == nullptr ? 0 : before->block_count);
  if (after.block_count > limits_.blocks - std::min(limits_.blocks, others)) {
    if (known == nullptr) nodes_.erase(report.node);
    return absl::ResourceExhaustedError(
        "all nodes together report more than " + std::to_string(limits_.blocks) +
        " blocks; raise [limits] max_reported_blocks, and MemoryMax of the coordinator's unit");
  }
  block_count_ = others + after.block_count;
  known = std::make_shared<const NodeBlocks>(std::move(after));
  return Outcome::kTaken;
}

void ReportedBlocks::Forget(const std::string& node,
                            const std::shared_ptr<const NodeBlocks>& blocks) {
  MutexLock lock(&mutex_);
  const auto found = nodes_.find(node);
  if (found == nodes_.end() || found->second != blocks) return;
  block_count_ -= blocks->block_count;
  nodes_.erase(found);
}

std::shared_ptr<const NodeBlocks> ReportedBlocks::Of(const std::string& node) const {
  MutexLock lock(&mutex_);
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? nullptr : found->second;
}

ReportedBlocks::Nodes ReportedBlocks::All() const {
  MutexLock lock(&mutex_);
  return nodes_;
}

const InternalBlock* FindBlockIn(const NodeBlocks& blocks, const std::string& pool, int64_t id) {
  const auto found = blocks.pools.find(pool);
  if (found == blocks.pools.end()) return nullptr;
  const auto block = std::lower_bound(found->second.begin(), found->second.end(),
                                      InternalBlock{id, 0, 0}, ByBlockId);
  return block != found->second.end() && block->id == id ? &*block : nullptr;
}

}  // namespace ecpipe
