// SPDX-License-Identifier: Apache-2.0
// What the status page tells of the cluster, at one time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/cluster/node_registry.h"
#include "coordinator/pages/pipeline_rates.h"
#include "coordinator/recovery/recovery_waits.h"
#include "coordinator/repairs/tracker.h"
#include "model/recovery.h"

namespace ecpipe {

// What a node sends and receives for repairs, in bytes per second.
struct NodeUse {
  double sends = 0;
  double receives = 0;
};

struct ShownRepair {
  RunningRepair running;
  std::optional<double> heard_seconds_ago;  // by the coordinator, of its progress
  std::optional<double> bytes_per_second;   // of each block
  std::vector<PipelineLink> links;
  std::optional<HeldBack> held_back;
};

struct StatusSnapshot {
  std::string version;
  int64_t unix_ms = 0;
  double limit_bytes_per_second = 0;  // of all helpers together; 0: none
  uint32_t max_running = 0;           // repairs at once
  std::vector<NodeView> nodes;
  std::vector<RefusedNode> refused;     // helpers that may not register
  std::map<std::string, NodeUse> uses;  // by node, from the repairs below
  size_t running_repairs = 0;
  std::vector<ShownRepair> repairs;      // the first of those that run
  std::vector<RepairRecord> ended;       // the newest of those that have ended
  std::string ended_error;               // why the journal does not tell them; empty: it does
  std::vector<RecoveryView> recoveries;  // the newest first
  std::vector<WaitingBlock> queue;       // the most urgent first
  size_t suspect_blocks = 0;
  size_t corrupt_blocks = 0;
};

}  // namespace ecpipe
