// SPDX-License-Identifier: Apache-2.0
// Why the blocks of a recovery wait: for the recovery's decisions, and for people. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/recovery/recovery_policy.h"
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
// looked at; `limit` as in WhyWaits.
std::vector<RecoveryWait> WaitsOf(const RecoveryQueue& queue, const PolicyInput& input,
                                  const RecoveryLoads& loads, const std::string& limit);

}  // namespace ecpipe
