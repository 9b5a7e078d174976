// SPDX-License-Identifier: Apache-2.0
// The state of the whole cluster in a word and a sentence. Pure.
#pragma once

#include <string>

#include "coordinator/pages/status_snapshot.h"

namespace ecpipe {

enum class ClusterState {
  kEmpty,      // no helper has registered
  kHealthy,    // nothing is lost, and nothing runs
  kRepairing,  // repairs or recoveries run
  kThrottled,  // the same, and a limit holds them back
  kDegraded,   // nodes are dead, disks fail or blocks are corrupt, and nothing is done about it
  kStuck,      // blocks wait, and none comes forward
};
// "empty", "healthy", "repairing", "throttled", "degraded", "stuck".
const char* ClusterStateName(ClusterState state);

struct ClusterVerdict {
  ClusterState state = ClusterState::kHealthy;
  std::string text;  // a sentence: why
};
ClusterVerdict Judge(const StatusSnapshot& snapshot);

// As in recovered.h, of a node that is dead.
bool IsRecovered(const StatusSnapshot& snapshot, const NodeView& node);

}  // namespace ecpipe
