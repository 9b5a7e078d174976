// SPDX-License-Identifier: Apache-2.0
// World: faults that nobody mends. What can end ends; what cannot says why it waits.
#include <algorithm>

#include "sim/world.h"

namespace ecpipe::sim {
namespace {

// The longest delay of a recovery, the longest pause before a block is tried again, and some tries.
constexpr Duration kPatience = std::chrono::seconds(600);

// How many blocks of the stripe bring back any other; 0: that depends on which they are.
size_t NeededOf(const std::string& code_name) {
  if (!code_name.starts_with("rs(") && !code_name.starts_with("rotated-rs(")) return 0;
  return static_cast<size_t>((*CreateErasureCode(code_name))->k());
}

}  // namespace

bool World::Works(const std::string& node) const {
  const auto helper = helpers_.find(node);
  return helper != helpers_.end() && helper->second != nullptr && network_.Unharmed(node) &&
         !older_.contains(node);
}

bool World::CanBeRebuilt(const Stripe& stripe, const std::string& block_id) {
  std::set<std::string> called_corrupt;
  for (const CorruptBlock& mark : coordinator_->repairs().corrupt().All()) {
    called_corrupt.insert(mark.block_id);
  }
  size_t survivors = 0;
  std::set<std::string> holders;
  for (const BlockPlace& place : stripe.blocks) {
    holders.insert(place.node);
    if (place.block_id == block_id || !Works(place.node)) continue;
    const Disk& disk = disks_[place.node];
    if (disk.blocks.contains(place.block_id) &&
        disk.FaultOf(place.block_id) == Disk::Fault::kNone &&
        !called_corrupt.contains(place.block_id)) {
      ++survivors;
    }
  }
  const size_t needed = NeededOf(stripe.code);
  if (needed == 0 || survivors < needed) return false;
  return std::any_of(disks_.begin(), disks_.end(), [&](const auto& disk) {
    return Works(disk.first) && !holders.contains(disk.first) && !wiped_.contains(disk.first);
  });
}

void World::AwaitWhatCanEnd() {
  if (!scenario_.lasting) return;
  RunUntil([this] { return RecoveriesEnded(); }, kPatience);
  // It may have crashed just now, and then lists all anew.
  if (coordinator_ == nullptr) RunUntil([this] { return RecoveriesEnded(); }, kPatience);
  if (coordinator_ == nullptr) return;
  for (const auto& [id, record] : state_.recoveries) {
    if (record.state == RecoveryState::kCancelled) continue;
    if (record.state == RecoveryState::kRunning) CheckSaysWhy(id);
    // The network loses things where there is much trouble, so luck decides there.
    if (scenario_.trouble != Scenario::Trouble::kSome) continue;
    for (const auto& [stripe_id, stripe] : state_.stripes) {
      for (const BlockPlace& place : stripe.blocks) {
        checks_.Expect(place.node != record.request.node || !CanBeRebuilt(stripe, place.block_id),
                       "block " + place.block_id + " could be rebuilt and is not");
      }
    }
  }
}

void World::CheckSaysWhy(RecoveryId id) {
  const absl::StatusOr<RecoveryView> view = coordinator_->recoveries().Get(id);
  const std::string recovery = "recovery " + std::to_string(id);
  if (!view.ok()) return checks_.Violation(recovery + " is not known");
  uint64_t explained = 0;
  for (const RecoveryWait& wait : view->waits) {
    scheduler_.Trace(recovery + ": " + std::to_string(wait.blocks) + " blocks wait (" +
                     WaitKindName(wait.kind) + "): " + wait.reason);
    checks_.Expect(!wait.reason.empty(), recovery + " waits and does not say why");
    explained += wait.blocks;
  }
  checks_.Expect(explained == view->waiting_blocks,
                 recovery + " has " + std::to_string(view->waiting_blocks) +
                     " waiting blocks, and says why of " + std::to_string(explained));
  checks_.Expect(view->waiting_blocks + view->running_blocks > 0 || !view->waits.empty(),
                 recovery + " does not end, and nothing of it waits");
}

}  // namespace ecpipe::sim
