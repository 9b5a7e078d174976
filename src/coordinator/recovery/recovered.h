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

// Whether nobody misses the node, which is dead: its latest recovery has rebuilt, or moved, all
// that it had, and it has taken no blocks since: it was kept out, or nothing was heard of it.
inline bool IsRecovered(const NodeView& node, const std::optional<LatestRecovery>& latest,
                        int64_t now_unix_ms) {
  if (!latest || latest->state != RecoveryState::kDone) return false;
  if (node.kept_out == KeptOut::kDrained) return true;
  const double heard_unix_ms =
      static_cast<double>(now_unix_ms) - 1000 * node.seconds_since_heartbeat;
  return heard_unix_ms <= static_cast<double>(latest->ended_unix_ms);
}

}  // namespace ecpipe
