// SPDX-License-Identifier: Apache-2.0
// Why the blocks of a recovery wait: for the recovery's decisions, and for people. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/recovery/placement/recovery_policy.h"
#include "coordinator/recovery/recovery_queue.h"
#include "model/recovery.h"

namespace ecpipe {

// How far a repair of a block had come when it failed.
enum class RepairStage { kPlanned, kRan };

// Whether the failure proves something against the block itself, or its stripe, that no node's
// coming and going changes: bytes that are wrong, a stripe that makes no sense. What is left may be
// otherwise later.
bool ProvesLoss(const absl::Status& why, RepairStage stage);

// What a block waits for after a failure that proves nothing.
WaitKind KindOf(const absl::Status& why);

// The reasons of all blocks of the queue that wait, the largest number first. `input.blocks` is not
// looked at; `limit` as in WaitReasons.
std::vector<RecoveryWait> WaitsOf(const RecoveryQueue& queue, const PolicyInput& input,
                                  const RecoveryLoads& loads, const std::string& limit);

// The same without the words.
std::map<WaitKind, uint64_t> WaitKindsOf(const RecoveryQueue& queue, const PolicyInput& input,
                                         const RecoveryLoads& loads);

// A block that waits, for people.
struct WaitingBlock {
  RecoveryId recovery_id = 0;
  std::string node;  // that lost it
  std::string block_id;
  uint64_t bytes = 0;
  int spare = 0;  // survivors that can be read, beyond those that are needed; below 0: too few
  int attempts = 0;
  RecoveryWait why;
  double next_try_in_seconds = 0;  // 0: as soon as nothing else holds it up
  TimePoint joined{};              // the queue
};

// The head of the queue, the most urgent first: at most `most` blocks. `idle`: what holds up the
// whole recovery, if something does; the other arguments are those of WaitsOf.
std::vector<WaitingBlock> WaitingOf(const RecoveryQueue& queue, const PolicyInput& input,
                                    const RecoveryLoads& loads, const std::string& limit,
                                    const std::optional<RecoveryWait>& idle, size_t most,
                                    TimePoint now);
// Keeps the `most` most urgent, in order.
void KeepMostUrgent(std::vector<WaitingBlock>* blocks, size_t most);

}  // namespace ecpipe
