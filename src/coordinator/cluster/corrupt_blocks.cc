// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cluster/corrupt_blocks.h"

#include <utility>

namespace ecpipe {

bool CorruptBlocks::Add(CorruptBlock block) {
  if (block.reason.size() > kMaxReasonBytes) block.reason.resize(kMaxReasonBytes);
  MutexLock lock(&mutex_);
  const auto known = blocks_.find(block.block_id);
  if (known != blocks_.end() && known->second.node == block.node) return false;
  ++found_;
  if (known != blocks_.end()) {  // it has moved, and is bad there, too
    known->second = std::move(block);
    return true;
  }
  if (blocks_.size() == kMost) {
    blocks_.erase(order_.front());
    order_.pop_front();
  }
  order_.push_back(block.block_id);
  blocks_.emplace(order_.back(), std::move(block));
  return true;
}

void CorruptBlocks::Forget(const std::string& block_id) {
  MutexLock lock(&mutex_);
  if (blocks_.erase(block_id) > 0) std::erase(order_, block_id);
}

std::string CorruptBlocks::Reason(const std::string& block_id, const std::string& node) const {
  MutexLock lock(&mutex_);
  const auto known = blocks_.find(block_id);
  return known != blocks_.end() && known->second.node == node ? known->second.reason : "";
}

std::vector<CorruptBlock> CorruptBlocks::All() const {
  MutexLock lock(&mutex_);
  std::vector<CorruptBlock> all;
  for (const std::string& id : order_) all.push_back(blocks_.at(id));
  return all;
}

uint64_t CorruptBlocks::found() const {
  MutexLock lock(&mutex_);
  return found_;
}

}  // namespace ecpipe
