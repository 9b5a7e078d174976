// SPDX-License-Identifier: Apache-2.0
// What a requestor, and the `ecpipe` command, ask of the coordinator. coordinator_client.h speaks
// it over gRPC; tests speak it with a fake.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/checksum_kind.h"
#include "common/hdfs_block.h"
#include "common/repair_plan.h"
#include "common/stripe_facts.h"

namespace ecpipe {

// Which bytes are wanted, and how. Zeros and empty strings stand for the coordinator's defaults.
struct RepairTarget {
  std::vector<std::string> block_ids;  // of one stripe; the range is that of each
  std::optional<StripeFacts> facts;    // of that stripe; none: the coordinator's catalog has it
  uint64_t offset = 0;
  uint64_t bytes = 0;  // 0: to the end of the block
  std::string scheme;  // "auto" or empty: the best by expected time
  uint32_t slice_bytes = 0;
  std::string transport;  // "tcp" or "redis"
  std::string rack;       // where the requestor is, for schemes that look at racks
  // "none"; "parity": one more survivor is read, and no slice is handed over in which the blocks do
  // not fit together; "locate": two more, and the corrupt one is named.
  std::string verify;
  bool background = false;  // nobody waits for it: reads that somebody waits for go before it
  // That the bytes of each block must have, 64 hexadecimal digits or empty; none: as the catalog
  // has it, of whole blocks, where it is known.
  std::vector<std::string> sha256 = {};
};

struct RepairCost {
  struct Node {
    std::string node;
    uint64_t up_bytes = 0;
    uint64_t down_bytes = 0;
  };
  std::vector<Node> nodes;
  uint64_t busiest_link_bytes = 0;
  uint64_t total_bytes = 0;
  uint32_t depth = 0;
  double expected_seconds = 0;
  double timeslots = 0;
};

struct GrantedRepair {
  RepairId repair_id = 0;
  std::optional<RepairPart> part;  // valid: it has passed ValidatePart; none: nodes take the blocks
  std::string scheme;
  std::string stripe_id;
  uint64_t block_bytes = 0;  // of the shortest block
  RepairCost cost;
  std::optional<ChecksumKind> checksum;  // that a survivor's store keeps, if it does
};

struct RepairPrediction {
  std::string scheme;
  double expected_seconds = 0;
  double timeslots = 0;
  uint64_t cross_rack_bytes = 0;
};

struct ExplainedRepair {
  RepairPlan plan;
  std::string stripe_id;
  std::string code;
  std::map<int, std::string> block_ids;      // by block index, of the blocks that the plan reads
  std::map<std::string, std::string> racks;  // by node id
  RepairCost cost;
  std::vector<RepairPrediction> predictions;  // one a scheme; none for a direct read
};

struct StripeBlock {
  std::string block_id;
  std::string node;
  std::string sha256;  // of the whole block, 64 hexadecimal digits; empty: not known
};
struct StripeInfo {
  std::string stripe_id;
  std::string code;
  uint64_t block_bytes = 0;
  std::vector<StripeBlock> blocks;
};

// Live counters of one helper, from itself.
struct HelperCounters {
  uint32_t active_sessions = 0;
  uint64_t buffer_bytes = 0;
  uint64_t data_bytes_sent = 0;
  uint64_t data_bytes_received = 0;
  uint64_t block_bytes_read = 0;
  uint64_t parts_done = 0;
  uint64_t parts_failed = 0;
  double cpu_seconds = 0;
  uint64_t peak_resident_bytes = 0;
};
struct NodeStatus {
  std::string node;
  std::string rack;
  std::string state;  // "live", "draining" or "dead"
  std::string control_address;
  std::string data_address;
  std::string redis_address;
  double seconds_since_heartbeat = 0;
  uint64_t block_count = 0;
  uint64_t block_bytes = 0;
  bool answers = false;  // whether `counters` could be had from the helper
  HelperCounters counters;
};
struct RepairStatus {
  RepairId repair_id = 0;
  uint32_t attempt = 0;
  std::vector<std::string> block_ids;
  std::string scheme;
  std::string transport;
  std::string state;
  std::string requestor;
  int64_t started_unix_ms = 0;
  int64_t ended_unix_ms = 0;
  std::string detail;
  std::vector<std::string> hosts;  // that store the blocks; empty: the requestor takes them
  uint64_t recovery_id = 0;        // 0: none
};
// A block that must not be read until it has been repaired.
struct CorruptBlockStatus {
  std::string block_id;
  std::string node;
  std::string reason;
  int64_t found_unix_ms = 0;

  // Whether it is HDFS's: nobody else may store it anew.
  bool hdfs() const { return ParseHdfsBlock(block_id).ok(); }
  // The command that repairs it where it is, unless it is HDFS's.
  std::string RepairCommand() const { return "ecpipe repair " + block_id + " --to " + node; }
};
// What is known from HDFS's NameNode.
struct HdfsFactsStatus {
  bool configured = false;
  std::optional<double> age_seconds;  // of its answer; none: there is none yet
  uint64_t groups = 0;
  std::string last_error;  // why there is no newer one; empty: it is as new as it should be
};
struct HdfsClusterStatus {
  HdfsFactsStatus facts;
  uint64_t nodes = 0;            // DataNodes whose blocks are known
  uint64_t blocks = 0;           // that they report
  uint64_t degraded_groups = 0;  // that lack a block on a live node
  uint64_t lost_groups = 0;      // that lack more than their parity
};
struct ClusterStatus {
  std::string version;
  uint64_t stripe_count = 0;
  std::vector<NodeStatus> nodes;
  std::vector<RepairStatus> repairs;               // newest first
  std::vector<CorruptBlockStatus> corrupt_blocks;  // the oldest finding first
  std::optional<HdfsClusterStatus> hdfs;           // none: there is no HDFS
};

// The rebuilding of all that a node had. Zeros and empty strings stand for the coordinator's
// defaults, and so does a negative delay.
struct RecoverySpec {
  std::string node;
  std::vector<std::string> to;  // nodes that take blocks; empty: all that are live
  std::string scheme;
  std::string policy;  // "in-order", "least-recent" or "balanced"
  uint32_t slice_bytes = 0;
  std::string transport;          // "tcp" or "redis"
  uint32_t streams_per_node = 0;  // repairs in which a node takes part at once
  double delay_seconds = -1;      // that the node is silent before anything is rebuilt
};
struct BlockedRepair {
  std::string block_id;
  std::string reason;
  uint32_t attempts = 0;
  bool given_up = false;
};
struct RecoveryStatus {
  uint64_t recovery_id = 0;
  RecoverySpec spec;
  std::string state;     // "running", "paused", "done", "partial", "cancelled" or "returned"
  bool listing = false;  // the totals are not complete yet
  uint64_t blocks = 0;
  uint64_t bytes = 0;
  uint64_t done_blocks = 0;
  uint64_t done_bytes = 0;
  uint64_t running_blocks = 0;
  uint64_t waiting_blocks = 0;
  uint64_t failed_blocks = 0;
  double bytes_per_second = 0;
  double eta_seconds = -1;       // -1: not known
  double begins_in_seconds = 0;  // while the node may still come back
  std::vector<BlockedRepair> blocked;
  int64_t started_unix_ms = 0;
  int64_t ended_unix_ms = 0;

  bool ended() const { return state != "running" && state != "paused"; }
};
enum class RecoveryChange { kPause, kResume, kCancel };

// The speed of a link, from node to node; of racks where the operator wrote it down so.
struct LinkSpeed {
  std::string from;
  std::string to;
  double bytes_per_second = 0;
  uint64_t samples = 0;    // measurements; 0: written down
  double age_seconds = 0;  // of the latest measurement
};
struct ProbeOutcome {
  double bytes_per_second = 0;
  std::string error;  // empty: it was measured
};
struct ProbeReport {
  std::vector<ProbeOutcome> outcomes;  // one a link, in order
  double rest_seconds = 0;             // before the next round may begin
};

// An attempt of a repair that has failed, and where it has left it.
struct FailedAttempt {
  RepairId repair_id = 0;
  uint32_t attempt = 0;
  SliceGrid grid;
  std::vector<SliceRun> missing;
  std::string scheme;    // that it ran by
  absl::Status failure;  // with the blame (common/blame.h)
};
struct RepairAdvice {
  bool replan = false;  // give the attempt up, and resume
  std::string reason;
};

// Thread-safe. Every call has a deadline. UNAVAILABLE and DEADLINE_EXCEEDED name the coordinator;
// other errors are the coordinator's own. A call that is given a stop token ends soon with
// CANCELLED when that is asked to stop; the coordinator may have done it all the same.
class CoordinatorApi {
 public:
  virtual ~CoordinatorApi() = default;

  // With `to`, which names a node for each block, their helpers store the blocks.
  virtual absl::StatusOr<GrantedRepair> BeginRepair(const RepairTarget& target,
                                                    const std::vector<std::string>& to,
                                                    const std::string& requestor,
                                                    const std::stop_token& stop) = 0;
  // Another attempt, over what is missing; the requestor takes the bytes.
  virtual absl::StatusOr<GrantedRepair> ResumeRepair(const RepairTarget& target,
                                                     const std::string& requestor,
                                                     const FailedAttempt& from,
                                                     const std::stop_token& stop) = 0;
  // Whether an attempt is worth going on with. `quiet`: nothing has come for a while. It answers
  // within two seconds.
  virtual absl::StatusOr<RepairAdvice> InspectRepair(RepairId repair_id, uint32_t attempt,
                                                     uint64_t missing_bytes, bool quiet) = 0;
  // The verdict. If the status names a block as corrupt (corrupt_block.h) the coordinator hears it.
  // Of a repair that is CANCELLED it is told within two seconds or not at all.
  virtual absl::Status FinishRepair(RepairId repair_id, uint32_t attempt,
                                    const absl::Status& status, uint64_t verified_bytes) = 0;
  virtual absl::StatusOr<RepairStatus> Repair(RepairId repair_id, const std::stop_token& stop) = 0;
  virtual absl::StatusOr<ExplainedRepair> Explain(const RepairTarget& target,
                                                  const std::vector<std::string>& to,
                                                  const std::string& requestor) = 0;
  // In batches, each one transaction; after an error the batches before it are stored.
  virtual absl::Status PutStripes(const std::vector<StripeInfo>& stripes) = 0;
  virtual absl::StatusOr<std::vector<StripeInfo>> ListStripes(const std::string& after_stripe_id,
                                                              uint32_t limit) = 0;
  virtual absl::StatusOr<std::pair<StripeInfo, int>> LocateBlock(const std::string& block_id) = 0;
  // The recovery's id. The coordinator goes on by itself.
  virtual absl::StatusOr<uint64_t> BeginRecovery(const RecoverySpec& spec, bool even_if_live) = 0;
  virtual absl::Status ChangeRecovery(uint64_t recovery_id, RecoveryChange change) = 0;
  // The newest first; only the one that is named unless `recovery_id` is 0.
  virtual absl::StatusOr<std::vector<RecoveryStatus>> Recoveries(uint64_t recovery_id) = 0;
  // Measures these links, from node to node, all at once: a round in which each node sends once and
  // receives once at most. RESOURCE_EXHAUSTED: not now.
  virtual absl::StatusOr<ProbeReport> ProbeLinks(
      const std::vector<std::pair<std::string, std::string>>& links, uint64_t bytes) = 0;
  // What was measured, and then what is written down.
  virtual absl::StatusOr<std::vector<LinkSpeed>> Links() = 0;
  // Asks each live helper for its counters, too.
  virtual absl::StatusOr<ClusterStatus> Status() = 0;
};

}  // namespace ecpipe
