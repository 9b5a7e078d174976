// SPDX-License-Identifier: Apache-2.0
// RecoveryManager, moves: what a drain does that other recoveries do not.
// docs/design/023-drain.md has the reasons.
#include <algorithm>

#include "coordinator/recovery/recovery_manager.h"

namespace ecpipe {
namespace {

// Enough to keep the uplink full while one copy ends and the next begins, and while one target has
// more to receive than the others.
constexpr uint64_t kCopiesAtOnce = 8;

bool OthersCanRebuild(const LostBlock& block, const std::set<std::string>& usable) {
  const auto survivors = std::count_if(block.holders.begin(), block.holders.end(),
                                       [&](const auto& node) { return usable.contains(node); });
  return survivors >= block.needed;
}

}  // namespace

std::optional<Placement> RecoveryManager::PlaceMove(const Recovery& recovery,
                                                    const PolicyInput& input) {
  const RecoveryRequest& request = recovery.record.request;
  if (!input.usable.contains(request.node)) return Place(request.policy, input, loads_);
  const bool copy_all = request.scheme == kDirectScheme;
  std::vector<const LostBlock*> copied;
  std::vector<const LostBlock*> rebuilt;
  for (const LostBlock* block : input.blocks) {
    const bool can_rebuild = OthersCanRebuild(*block, input.usable);
    const bool may_copy = !can_rebuild || !recovery.not_copied.contains(block->block_id);
    if (may_copy) copied.push_back(block);
    if (can_rebuild && !(copy_all && may_copy)) rebuilt.push_back(block);
  }
  const auto of = [&](std::span<const LostBlock* const> blocks) {
    PolicyInput some = input;
    some.blocks = blocks;
    some.blocks_left = 0;  // copies use the links as well
    return some;
  };
  uint64_t at_once = std::min<uint64_t>(kCopiesAtOnce, input.streams_per_node);
  if (!rebuilt.empty()) {
    // Of the last ones the others rebuild half, or they would wait for the uplink.
    const RecoveryQueue::Counts counts = recovery.queue.counts();
    at_once = std::clamp<uint64_t>((counts.waiting + counts.running) / 2, 1, at_once);
  }
  if (loads_.Streams(request.node) < at_once) {
    std::optional<Placement> copy = PlaceCopy(request.policy, of(copied), loads_);
    if (copy) return copy;
  }
  return Place(request.policy, of(rebuilt), loads_);
}

bool RecoveryManager::ListsAgain(Recovery* recovery) {
  if (recovery->record.request.kind != RecoveryKind::kMove) return false;
  const uint64_t all = recovery->queue.counts().all;
  if (recovery->all_moved == all) return false;
  recovery->all_moved = all;
  recovery->list_after = "";
  return true;
}

}  // namespace ecpipe
