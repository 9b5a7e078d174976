// SPDX-License-Identifier: Apache-2.0
// Recoveries of nodes: the request, the record that the journal keeps, and what operators see.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/plan/repair_plan.h"

namespace ecpipe {

// Small numbers, in the order of the requests.
using RecoveryId = uint64_t;

// How helpers and requestors are chosen; see recovery_policy.h.
enum class RecoveryPolicy { kInOrder, kLeastRecent, kBalanced };
// "in-order", "least-recent", "balanced".
const char* RecoveryPolicyName(RecoveryPolicy policy);
// Nothing for a name that is not one of these.
std::optional<RecoveryPolicy> RecoveryPolicyNamed(const std::string& name);

// What a recovery is for.
enum class RecoveryKind {
  kRebuild,  // the node's blocks are lost
  kMove,     // the node lives, and is to have no blocks: a drain, docs/design/023-drain.md
  // The node may be away for a while. Then what it does not have is rebuilt; see
  // docs/design/024-maintenance.md.
  kMaintenance,
};
// "rebuild", "move", "maintenance".
const char* RecoveryKindName(RecoveryKind kind);
// kRebuild for a name that this build does not know.
RecoveryKind RecoveryKindNamed(const std::string& name);

enum class RecoveryState {
  kRunning,
  kPaused,   // starts no more repairs; those under way go on
  kDone,     // every block is on another node
  kPartial,  // ended, and some blocks could not be repaired
  kCancelled,
  kReturned,  // the node has every block again that was not rebuilt: it has said so of each
};
const char* RecoveryStateName(RecoveryState state);
// For a name that this build does not know: kPartial.
RecoveryState RecoveryStateNamed(const std::string& name);
inline bool Ended(RecoveryState state) {
  return state != RecoveryState::kRunning && state != RecoveryState::kPaused;
}

struct RecoveryRequest {
  std::string node;                // the node whose blocks are lost
  std::vector<std::string> hosts;  // nodes that may store rebuilt blocks; empty: all live nodes
  std::string scheme;              // as in RepairRequest
  RecoveryPolicy policy = RecoveryPolicy::kBalanced;
  uint32_t slice_bytes = 0;                // 0: the default
  std::optional<TransportKind> transport;  // none: the default
  uint32_t streams_per_node = 0;  // repairs in which a node takes part at once; 0: the default
  // The recovery rebuilds nothing before the node has been silent for so long; negative: the
  // default. The journal does not keep it, but rebuild_after_unix_ms.
  double delay_seconds = -1;
  RecoveryKind kind = RecoveryKind::kRebuild;

  friend bool operator==(const RecoveryRequest&, const RecoveryRequest&) = default;
};

struct RecoveryRecord {
  RecoveryId recovery_id = 0;
  RecoveryRequest request;
  RecoveryState state = RecoveryState::kRunning;
  uint64_t blocks = 0;  // blocks that were on the node, as far as they have been counted
  uint64_t bytes = 0;
  // Valid once the recovery has ended; until then the catalog knows better.
  uint64_t done_blocks = 0;
  uint64_t done_bytes = 0;
  uint64_t failed_blocks = 0;  // blocks that were given up
  int64_t started_unix_ms = 0;
  int64_t ended_unix_ms = 0;  // 0 until it has ended
  // The recovery rebuilds nothing before this time, because the node may come back. If the node
  // does, only what it has not is rebuilt. 0: the blocks are rebuilt whether or not it is live.
  int64_t rebuild_after_unix_ms = 0;
  // Its node takes no blocks. A move keeps this when it has ended, until somebody readmits the
  // node; one that is cancelled loses it. A maintenance loses it at rebuild_after_unix_ms.
  bool keeps_out = false;

  friend bool operator==(const RecoveryRecord&, const RecoveryRecord&) = default;
};

// Whether it is a maintenance whose time is not over, or that was cancelled before it was: by its
// word nothing counts as lost.
inline bool OnlyAnnounced(const RecoveryRecord& record) {
  if (record.request.kind != RecoveryKind::kMaintenance) return false;
  if (!Ended(record.state)) return record.keeps_out;
  return record.state == RecoveryState::kCancelled && record.blocks == 0;
}
// Whether it is a maintenance whose time is not over.
inline bool InMaintenance(const RecoveryRecord& record) {
  return OnlyAnnounced(record) && !Ended(record.state);
}

// What to do with a node that is live when its recovery is asked for.
enum class IfLive {
  kRefuse,
  kRebuildMissing,  // what it has is left as it is
  kRebuildAll,
};

// Why a lost block waits.
enum class WaitKind {
  kNext,       // for its turn
  kPaused,     // an operator has paused the recovery
  kStarting,   // the coordinator has just started: the node may register yet
  kDelay,      // the node may come back
  kComparing,  // the node is back, and is asked what it has
  kStreams,    // its nodes take part in as many repairs as one node may
  kSurvivors,  // too few survivors can be used now
  kTarget,     // no node may take the block now
  kLimit,      // a limit, or no room at a node that would take it
  kHelper,     // a helper did not answer
  kFailed,     // its repair failed otherwise
};
// "next", "paused", "starting", "delay", "comparing", "streams", "survivors", "target", "limit",
// "helper", "failed".
const char* WaitKindName(WaitKind kind);
// kFailed for a name that this build does not know.
WaitKind WaitKindNamed(const std::string& name);

// Blocks that wait for the same reason.
struct RecoveryWait {
  WaitKind kind = WaitKind::kNext;
  uint64_t blocks = 0;
  std::string reason;  // in words, of one of the blocks; names the limit in effect and whose it is
};

// A block whose repair failed.
struct BlockedBlock {
  std::string block_id;
  std::string reason;
  int attempts = 0;
  bool given_up = false;
  WaitKind kind = WaitKind::kFailed;  // unless it is given up
  double next_try_in_seconds = 0;     // the same; 0: as soon as nodes have room
};

struct RecoveryView {
  RecoveryRecord record;  // the current numbers, also while it runs
  bool listing = false;   // record.blocks is not complete yet
  uint64_t running_blocks = 0;
  uint64_t waiting_blocks = 0;
  uint64_t there_blocks = 0;     // the node is back and has them
  double bytes_per_second = 0;   // of the last half minute
  double eta_seconds = -1;       // -1: not known
  double begins_in_seconds = 0;  // time that the node still has to come back
  // Repairs in which a node takes part at once, as it holds; 0: not known, or it has ended.
  uint32_t streams_per_node = 0;
  std::vector<BlockedBlock> blocked;  // blocks whose repair failed and is not done; not always all
  std::vector<RecoveryWait> waits;    // of all waiting blocks, the largest number first
};

}  // namespace ecpipe
