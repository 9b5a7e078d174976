// SPDX-License-Identifier: Apache-2.0
#include "coordinator/recovery/recovery_waits.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "coordinator/planning/repair_planner.h"

namespace ecpipe {
namespace {

// Blocks of the queue's head that are asked why they wait.
constexpr size_t kAsked = 32;

}  // namespace

bool ProvesLoss(const absl::Status& why, RepairStage stage) {
  if (absl::IsDataLoss(why)) return true;
  if (stage == RepairStage::kRan) return false;
  return absl::IsInvalidArgument(why) || absl::IsNotFound(why) || absl::IsUnimplemented(why);
}

WaitKind KindOf(const absl::Status& why) {
  if (absl::IsResourceExhausted(why)) return WaitKind::kLimit;
  if (absl::IsUnavailable(why) || absl::IsDeadlineExceeded(why)) return WaitKind::kHelper;
  if (!absl::IsFailedPrecondition(why)) return WaitKind::kFailed;
  return IsUnfitTarget(why) ? WaitKind::kTarget : WaitKind::kSurvivors;
}

std::vector<RecoveryWait> WaitsOf(const RecoveryQueue& queue, const PolicyInput& input,
                                  const RecoveryLoads& loads, const std::string& limit) {
  std::map<WaitKind, RecoveryWait> waits;
  for (RecoveryWait& wait : queue.Pauses()) waits[wait.kind] = std::move(wait);
  const WaitReasons reasons(input, loads, limit);
  const std::vector<const LostBlock*> head = queue.Ready(kAsked);
  for (const LostBlock* block : head) {
    RecoveryWait why = reasons.Of(*block);
    RecoveryWait& wait = waits[why.kind];
    why.blocks += wait.blocks;
    wait = std::move(why);
  }
  if (const uint64_t behind = queue.ready() - head.size(); behind > 0) {
    RecoveryWait& wait = waits[WaitKind::kNext];
    wait.kind = WaitKind::kNext;
    wait.blocks += behind;
    wait.reason = "blocks with fewer survivors to spare, or that have waited longer, go first";
  }
  std::vector<RecoveryWait> all;
  for (auto& [kind, wait] : waits) all.push_back(std::move(wait));
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.blocks > b.blocks; });
  return all;
}

std::map<WaitKind, uint64_t> WaitKindsOf(const RecoveryQueue& queue, const PolicyInput& input,
                                         const RecoveryLoads& loads) {
  std::map<WaitKind, uint64_t> kinds = queue.pausing_by_kind();
  const WaitReasons reasons(input, loads, "");
  const std::vector<const LostBlock*> head = queue.Ready(kAsked);
  for (const LostBlock* block : head) ++kinds[reasons.Of(*block).kind];
  kinds[WaitKind::kNext] += queue.ready() - head.size();
  return kinds;
}

std::vector<WaitingBlock> WaitingOf(const RecoveryQueue& queue, const PolicyInput& input,
                                    const RecoveryLoads& loads, const std::string& limit,
                                    const std::optional<RecoveryWait>& idle, size_t most,
                                    TimePoint now) {
  std::vector<WaitingBlock> blocks;
  const WaitReasons reasons(input, loads, limit);
  for (RecoveryQueue::Waiting& waiting : queue.Head(most)) {
    WaitingBlock block{.block_id = waiting.block->block_id,
                       .bytes = waiting.block->bytes,
                       .spare = waiting.spare,
                       .attempts = waiting.attempts,
                       .why = {waiting.kind, 1, std::move(waiting.reason)},
                       .joined = waiting.joined};
    if (waiting.pausing) {
      block.next_try_in_seconds = std::max(0.0, Seconds(std::max(waiting.until, now) - now));
    } else {
      block.why = idle ? *idle : reasons.Of(*waiting.block);
    }
    blocks.push_back(std::move(block));
  }
  KeepMostUrgent(&blocks, most);
  return blocks;
}

void KeepMostUrgent(std::vector<WaitingBlock>* blocks, size_t most) {
  std::stable_sort(blocks->begin(), blocks->end(),
                   [](const WaitingBlock& a, const WaitingBlock& b) {
                     return std::tie(a.spare, a.joined) < std::tie(b.spare, b.joined);
                   });
  if (blocks->size() > most) blocks->resize(most);
}

}  // namespace ecpipe
