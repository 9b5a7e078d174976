// SPDX-License-Identifier: Apache-2.0
// What is asked of a recovery, and what is kept of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/repair_plan.h"

namespace ecpipe {

// Small numbers, in the order of the requests.
using RecoveryId = uint64_t;

// How helpers and requestors are chosen; see recovery_policy.h.
enum class RecoveryPolicy { kInOrder, kLeastRecent, kBalanced };
// "in-order", "least-recent", "balanced".
const char* RecoveryPolicyName(RecoveryPolicy policy);

enum class RecoveryState {
  kRunning,
  kPaused,   // starts no more repairs; those under way go on
  kDone,     // every block is on another node
  kPartial,  // ended, and some blocks could not be repaired
  kCancelled,
  kReturned,  // the node came back; what had not been rebuilt by then is there again
};
const char* RecoveryStateName(RecoveryState state);
inline bool Ended(RecoveryState state) {
  return state != RecoveryState::kRunning && state != RecoveryState::kPaused;
}

struct RecoveryRequest {
  std::string node;             // whose blocks are lost
  std::vector<std::string> to;  // nodes that take blocks; empty: all that are live
  std::string scheme;           // as in RepairRequest
  RecoveryPolicy policy = RecoveryPolicy::kBalanced;
  uint32_t slice_bytes = 0;  // 0: the default
  TransportKind transport = TransportKind::kTcp;
  uint32_t streams_per_node = 0;  // repairs in which a node takes part at once; 0: the default
  // How long the node must have been silent before anything is rebuilt; negative: the default. Not
  // kept: the record has what follows from it.
  double delay_seconds = -1;

  friend bool operator==(const RecoveryRequest&, const RecoveryRequest&) = default;
};

struct RecoveryRecord {
  RecoveryId recovery_id = 0;
  RecoveryRequest request;
  RecoveryState state = RecoveryState::kRunning;
  uint64_t blocks = 0;  // that were on the node, as far as they have been counted
  uint64_t bytes = 0;
  // Kept once it has ended; until then the catalog says it better.
  uint64_t done_blocks = 0;
  uint64_t done_bytes = 0;
  uint64_t failed_blocks = 0;  // given up
  int64_t started_unix_ms = 0;
  int64_t ended_unix_ms = 0;  // 0 until it has ended
  // Nothing is rebuilt before, since the node may come back, and it ends when the node does. 0: the
  // node is to be emptied whether or not it is live.
  int64_t rebuild_after_unix_ms = 0;

  friend bool operator==(const RecoveryRecord&, const RecoveryRecord&) = default;
};

}  // namespace ecpipe
