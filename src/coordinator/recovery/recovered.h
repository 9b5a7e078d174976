// SPDX-License-Identifier: Apache-2.0
// Whether a node that is dead is still missed. Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "coordinator/cluster/node_registry.h"
#include "model/recovery.h"

namespace ecpipe {

// Of a node, without those that are OnlyAnnounced.
struct LatestRecovery {
  RecoveryState state = RecoveryState::kRunning;
  int64_t ended_unix_ms = 0;
};

// Whether nobody misses the node, which is dead: it had been drained, or its latest recovery has
// rebuilt what it had, and nothing was heard of it since.
inline bool IsRecovered(const NodeView& node, const std::optional<LatestRecovery>& latest,
                        int64_t now_unix_ms) {
  if (node.kept_out == KeptOut::kDrained) return true;
  if (!latest || latest->state != RecoveryState::kDone) return false;
  const double heard_unix_ms =
      static_cast<double>(now_unix_ms) - 1000 * node.seconds_since_heartbeat;
  return heard_unix_ms <= static_cast<double>(latest->ended_unix_ms);
}

}  // namespace ecpipe
