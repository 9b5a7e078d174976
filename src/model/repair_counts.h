// SPDX-License-Identifier: Apache-2.0
// What became of repairs since the start of the process.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>

#include "base/histogram.h"
#include "model/repair.h"

namespace ecpipe {

// Repairs that are counted together.
struct RepairKind {
  std::string scheme;
  std::string work;  // "read": for a requestor; "recovery"; "store": else hosted by nodes
  RepairState outcome = RepairState::kDone;

  friend auto operator<=>(const RepairKind&, const RepairKind&) = default;
};

struct RepairCounts {
  uint64_t started = 0;
  uint64_t done = 0;
  uint64_t failed = 0;
  std::map<RepairKind, Histogram> seconds;  // of ended repairs, all attempts together
  std::map<RepairKind, uint64_t> bytes;     // that were wanted of all blocks
  Histogram plan_seconds{{1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1}};  // of each plan

  std::map<std::string, uint64_t> unplanned;  // by work: no plan could be made for them

  static const char* WorkOf(const RepairRecord& record) {
    if (record.recovery_id != 0) return "recovery";
    return record.hosts.empty() ? "read" : "store";
  }

  void AddEnded(const RepairRecord& record) {
    const bool is_done = record.state == RepairState::kDone;
    ++(is_done ? done : failed);
    const RepairKind kind{record.scheme, WorkOf(record), record.state};
    const auto millis = static_cast<double>(record.ended_unix_ms - record.started_unix_ms);
    const auto added = seconds.try_emplace(
        kind, Histogram({0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000, 3000}));
    added.first->second.Add(millis / 1000);
    bytes[kind] += record.bytes * record.block_ids.size();
  }
};

}  // namespace ecpipe
