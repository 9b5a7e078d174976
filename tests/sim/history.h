// SPDX-License-Identifier: Apache-2.0
// What has happened to blocks and repairs, in order, and whether it may happen. Pure: a history is
// judged by itself, whoever wrote it down.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/plan/repair_plan.h"
#include "model/recovery.h"

namespace ecpipe::sim {

struct HistoryEvent {
  enum class Kind {
    kPlaced,      // the catalog begins with `block` of `stripe` on `node`
    kMoved,       // the catalog has `block` of `stripe` on `node`, by `recovery` if that is not 0
    kRecovered,   // `recovery` says that all blocks of `node` are on other nodes
    kNodeStarts,  // the helper of `node` remembers nothing of parts before this
    kPartBegins,  // `node` runs its part of `attempt` of `repair`
    kPartEnds,    // and has ended it well
    kHandedOver,  // `reader` gets `bytes` from `offset` on
    kGoesOn,      // `attempt` of `repair` is planned, of which `bytes` are missing
  };
  Kind kind = Kind::kPlaced;
  std::string stripe;  // empty: not known, and so no other block is of it
  std::string block;
  std::string node;
  std::string reader;
  RecoveryId recovery = 0;
  RepairId repair = 0;
  uint32_t attempt = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

// What of it must not happen, in words; empty if the history is good:
// - a recovery rebuilds a block twice, or calls a node recovered whose block is still there;
// - two blocks of a stripe get to one node;
// - a reader's bytes do not follow on each other;
// - a node begins or ends a part of an attempt when it has begun a later attempt of the repair;
// - a repair misses more bytes than it did in an earlier attempt.
std::vector<std::string> JudgeHistory(const std::vector<HistoryEvent>& history);

}  // namespace ecpipe::sim
