// SPDX-License-Identifier: Apache-2.0
#include "coordinator/sources/reported_blocks.h"

#include <algorithm>
#include <numeric>
#include <span>
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

// A piece's blocks with these changes; both are in order.
std::vector<InternalBlock> Changed(std::span<const InternalBlock> before,
                                   std::span<const InternalBlock> added,
                                   std::span<const int64_t> removed) {
  std::vector<InternalBlock> after;
  after.reserve(before.size() + added.size());
  // Of equal ids the first range's goes first, and that is the newer entry.
  std::set_union(added.begin(), added.end(), before.begin(), before.end(),
                 std::back_inserter(after), ByBlockId);
  std::erase_if(after, [&](const InternalBlock& block) {
    return std::binary_search(removed.begin(), removed.end(), block.id) &&
           !std::binary_search(added.begin(), added.end(), block, ByBlockId);
  });
  return after;
}

uint64_t BytesOf(std::span<const InternalBlock> blocks) {
  return std::accumulate(
      blocks.begin(), blocks.end(), uint64_t{0},
      [](uint64_t sum, const InternalBlock& block) { return sum + block.bytes; });
}

}  // namespace

BlockList::BlockList(const std::vector<InternalBlock>& blocks)
    : size_(blocks.size()), bytes_(BytesOf(blocks)) {
  Append(blocks);
}

bool operator==(const BlockList& a, const BlockList& b) {
  return a.size_ == b.size_ && std::equal(a.begin(), a.end(), b.begin());
}

BlockList::Iterator BlockList::LowerBound(int64_t id) const {
  const auto piece = std::partition_point(pieces_.begin(), pieces_.end(),
                                          [&](const auto& each) { return each->back().id < id; });
  if (piece == pieces_.end()) return end();
  const auto block =
      std::lower_bound((*piece)->begin(), (*piece)->end(), InternalBlock{id, 0, 0}, ByBlockId);
  return {piece, static_cast<size_t>(block - (*piece)->begin())};
}

void BlockList::Append(std::vector<InternalBlock> blocks) {
  // What has become small does not stay a piece by itself.
  if (!pieces_.empty() && pieces_.back()->size() + blocks.size() <= kMostOfAPiece / 2) {
    blocks.insert(blocks.begin(), pieces_.back()->begin(), pieces_.back()->end());
    pieces_.pop_back();
  }
  const size_t pieces = (blocks.size() + kMostOfAPiece - 1) / kMostOfAPiece;
  for (size_t i = 0; i < pieces; ++i) {
    const std::span piece = std::span(blocks)
                                .subspan(0, blocks.size() * (i + 1) / pieces)
                                .subspan(blocks.size() * i / pieces);
    pieces_.push_back(std::make_shared<const Piece>(piece.begin(), piece.end()));
  }
}

void BlockList::Change(const BlockChanges& changes) {
  const std::vector<InternalBlock> added = AddedInOrder(changes);
  std::vector<int64_t> removed = changes.removed;
  std::sort(removed.begin(), removed.end());
  if (added.empty() && removed.empty()) return;
  const Pieces before = std::exchange(pieces_, {});
  size_ = 0;
  auto add = added.begin();
  auto remove = removed.begin();
  // An id belongs to the last piece that does not begin above it, or else to the first one.
  for (size_t i = 0; i < std::max<size_t>(before.size(), 1); ++i) {
    auto add_end = added.end();
    auto remove_end = removed.end();
    if (i + 1 < before.size()) {
      const InternalBlock& next = before[i + 1]->front();
      add_end = std::lower_bound(add, add_end, next, ByBlockId);
      remove_end = std::lower_bound(remove, remove_end, next.id);
    }
    const std::span<const InternalBlock> old =
        before.empty() ? std::span<const InternalBlock>() : std::span(*before[i]);
    if (add == add_end && remove == remove_end) {
      pieces_.push_back(before[i]);
    } else {
      std::vector<InternalBlock> now = Changed(old, {add, add_end}, {remove, remove_end});
      bytes_ += BytesOf(now) - BytesOf(old);
      Append(std::move(now));
    }
    add = add_end;
    remove = remove_end;
  }
  for (const auto& piece : pieces_) size_ += piece->size();
}

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
  for (const auto& [pool, changes] : report.pools) after.pools[pool].Change(changes);
  std::erase_if(after.pools, [](const auto& pool) { return pool.second.empty(); });
  after.block_count = after.block_bytes = 0;
  for (const auto& [pool, blocks] : after.pools) {
    after.block_count += blocks.size();
    after.block_bytes += blocks.bytes();
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
  const BlockList::Iterator block = found->second.LowerBound(id);
  return block != found->second.end() && block->id == id ? &*block : nullptr;
}

}  // namespace ecpipe
