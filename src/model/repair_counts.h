// SPDX-License-Identifier: Apache-2.0
// What became of repairs since the start of the process.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "base/histogram.h"
#include "model/plan/repair_plan.h"
#include "model/repair.h"

namespace ecpipe {

constexpr RepairCause kRepairCauses[] = {RepairCause::kRead,           RepairCause::kDegradedRead,
                                         RepairCause::kReconstruction, RepairCause::kNodeLoss,
                                         RepairCause::kDrain,          RepairCause::kMaintenance,
                                         RepairCause::kCorruption,     RepairCause::kCommand};

// "read": for a requestor; "recovery"; "store": else hosted by nodes.
inline const char* WorkOf(RepairCause cause) {
  if (cause <= RepairCause::kReconstruction) return "read";
  return cause <= RepairCause::kMaintenance ? "recovery" : "store";
}

// Repairs that are counted together.
struct RepairKind {
  std::string scheme;
  RepairCause cause = RepairCause::kDegradedRead;
  RepairState outcome = RepairState::kDone;

  friend auto operator<=>(const RepairKind&, const RepairKind&) = default;
};

struct RepairCounts {
  uint64_t started = 0;
  uint64_t done = 0;
  uint64_t failed = 0;
  uint64_t cancelled = 0;
  std::map<RepairKind, Histogram> seconds;  // of ended repairs, all attempts together
  std::map<RepairKind, uint64_t> bytes;     // that were wanted of all blocks
  // By scheme and cause: as RepairVerdict has it, of reads that ended well or not.
  std::map<std::pair<std::string, RepairCause>, Histogram> first_byte_seconds;
  Histogram plan_seconds{{1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1}};  // of each plan

  std::map<RepairCause, uint64_t> unplanned;  // no plan could be made for them
  uint64_t unjournaled = 0;                   // records that the journal did not take

  void AddEnded(const RepairRecord& record) {
    const bool is_done = record.state == RepairState::kDone;
    ++(is_done ? done : record.state == RepairState::kCancelled ? cancelled : failed);
    const bool there = record.scheme == kDirectScheme && record.hosts.empty();
    const RepairCause cause = there ? RepairCause::kRead : record.cause;
    const RepairKind kind{record.scheme, cause, record.state};
    const auto millis = static_cast<double>(record.ended_unix_ms - record.started_unix_ms);
    const auto added = seconds.try_emplace(
        kind, Histogram({0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000, 3000}));
    added.first->second.Add(millis / 1000);
    bytes[kind] += record.bytes * record.block_ids.size();
    if (!record.first_byte_seconds) return;
    first_byte_seconds
        .try_emplace({record.scheme, cause},
                     Histogram({0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30}))
        .first->second.Add(*record.first_byte_seconds);
  }
};

}  // namespace ecpipe
