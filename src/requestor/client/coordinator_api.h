// SPDX-License-Identifier: Apache-2.0
// The calls to the coordinator that requestors and the `ecpipe` command make. coordinator_client.h
// makes them over gRPC; tests use a fake.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/progress_fn.h"
#include "model/node_loss.h"
#include "model/plan/cost.h"
#include "model/plan/repair_plan.h"
#include "model/recovery.h"
#include "model/repair.h"
#include "model/scheme_info.h"
#include "model/stripe.h"
#include "model/stripe_facts.h"

namespace ecpipe {

// Which bytes are wanted, and how. Zeros and empty strings mean the coordinator's defaults.
struct RepairTarget {
  // All of one stripe; the range holds for each of them. A block that is shorter has zeros behind
  // its end.
  std::vector<std::string> block_ids;
  // Describes that stripe; none: it is in the catalog, or known to a source of the coordinator.
  std::optional<StripeFacts> facts;
  // What a storage system says of block_ids[0], for a source of the coordinator to compare with
  // what it knows (claims are in model/systems); empty: nothing. Not beside facts.
  std::string claim;
  uint64_t offset = 0;
  uint64_t bytes = 0;  // 0: to the end of the longest of the blocks
  std::string scheme;  // "auto": the scheme with the least expected time
  uint32_t slice_bytes = 0;
  std::string transport;  // "tcp" or "redis"
  std::string rack;       // the requestor's rack, for the schemes rp-rack and auto
  double link_mbit = 0;   // of the requestor's own link, for schemes that look at links; 0: unknown
  // "none"; "parity": the repair reads one more survivor and hands over no slice whose blocks do
  // not fit together; "locate": it reads two more and names the corrupt block.
  std::string verify;
  bool background = false;  // nobody waits for the bytes, so reads that somebody waits for go first
  // With scheme auto: one block that is there, and that nothing speaks against, is read itself.
  bool prefer_direct = false;
  // The SHA-256 that the bytes of each block must have: 64 hexadecimal digits, or empty for none.
  // If it is not set, whole blocks are compared with the SHA-256 in the catalog, where there is
  // one.
  std::vector<std::string> sha256 = {};
};

struct ExplainedRepair {
  RepairPlan plan;
  std::string stripe_id;
  std::string code;
  std::map<int, std::string> block_ids;      // of the blocks that the plan reads, by block index
  std::map<std::string, std::string> racks;  // by node id
  PlanCost cost;
  std::vector<SchemePrediction> predictions;  // one for each scheme; none for a direct read
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
  std::string version;  // of its program; empty: it is too old to say
};
struct NodeStatus {
  std::string node;
  std::string rack;
  std::string state;  // "live", "draining" or "dead"
  std::string control_address;
  std::string data_address;
  std::string redis_address;
  double seconds_since_heartbeat = 0;
  // None is known: none has come since the coordinator's start, and the above is the time since
  // that.
  bool heartbeat_unknown = false;
  uint64_t block_count = 0;
  uint64_t block_bytes = 0;
  bool counting = false;  // the helper has not counted all of its blocks yet
  // On the disks where the helper stores blocks; none: it stores none, or is too old to say.
  std::optional<uint64_t> free_bytes;
  std::optional<uint64_t> disk_bytes;     // that these disks hold in all; the same
  std::vector<std::string> features;      // of the language of parts that its helper has
  std::vector<std::string> failed_roots;  // directories that the helper cannot use: "PATH: reason"
  // Of a live node whose helper answers no calls of the coordinator: why, and for how long. Repairs
  // leave it out.
  std::string silent_because;
  double silent_seconds = 0;
  // "draining", "drained" or "in maintenance": it takes no blocks; empty: it takes some
  std::string kept_out;
  // It sends no heartbeats, as a maintenance has announced.
  bool Away() const { return state == "dead" && kept_out == "in maintenance"; }
  bool answers = false;  // whether the helper has answered with `counters`
  // Of a live node that does not answer: why not; whether the coordinator has tried its ports; and
  // why it does not reach them (empty: it does).
  std::string answer_error;
  bool ports_checked = false;
  std::string control_error;
  std::string data_error;
  // Of a node of a storage system.
  std::string system;            // "hdfs", "qfs"; empty: it is none
  std::string storage_id;        // as the helper registers it
  bool reported_blocks = false;  // whether its helper has reported its blocks
  std::string state_in_system;   // "live" or "dead", by the storage system; empty: it does not say
  double silent_in_system_seconds = 0;  // since the storage system has heard of it
  HelperCounters counters;
};
// A corrupt block, which repairs do not read until it has been repaired; or a suspect, which they
// avoid.
struct CorruptBlockStatus {
  std::string block_id;
  std::string node;
  std::string reason;
  int64_t found_unix_ms = 0;

  // The storage system of the block, which alone may store it anew; empty: none.
  std::string system;
  bool suspect = false;   // only others say that it is corrupt, and not its own helper
  std::string undecided;  // of a suspect: why its check could not decide; empty: it is under way
  uint32_t checks = 0;    // that have been made since the coordinator started
  // The command that repairs the block on its node. Not for blocks of a storage system.
  std::string RepairCommand() const { return "ecpipe repair " + block_id + " --to " + node; }
};
struct SystemStatus {
  std::string system;  // "hdfs", "qfs"
  SourceFacts facts;
  uint64_t nodes = 0;   // nodes that have reported their blocks
  uint64_t blocks = 0;  // blocks that these nodes report
  // Both nullopt: the system is not asked for all of its stripes, or has not answered yet.
  std::optional<uint64_t> degraded_groups;  // stripes with a block that no live node has
  std::optional<uint64_t> lost_groups;      // stripes that lack more blocks than their parity
};
// A helper that the coordinator refuses, since another one has its address or its node id.
struct RefusedNodeStatus {
  std::string node;
  std::string control_address;
  std::string reason;
  double seconds_ago = 0;  // since it last tried
};
struct ClusterStatus {
  std::string version;
  uint64_t stripe_count = 0;
  std::vector<NodeStatus> nodes;
  std::vector<RefusedNodeStatus> refused_nodes;
  std::vector<RepairRecord> repairs;               // newest first
  std::vector<CorruptBlockStatus> corrupt_blocks;  // oldest finding first
  std::vector<SystemStatus> systems;               // that the coordinator knows of
};

// A page of the catalog.
struct ListedStripes {
  std::vector<Stripe> stripes;
  std::vector<std::string> damaged;  // stripe ids, the first ones; older coordinators name none
  uint64_t damaged_count = 0;
};

enum class RecoveryChange { kPause, kResume, kCancel };

// The speed of a link from node to node, or from rack to rack if it is from the operator's file.
// Shared: what all streams have together that leave the node `from` (`to` is empty), that enter the
// node `to` (`from` is empty), or from the rack `from` to the rack `to`.
struct LinkSpeed {
  std::string from;
  std::string to;
  double bytes_per_second = 0;
  uint64_t samples = 0;    // number of measurements; 0: the speed is from the operator's file
  double age_seconds = 0;  // of the latest measurement
  bool shared = false;
};
// What a round of probes measures: how fast each link is, or what links share.
enum class ProbeKind { kEachLink, kWhatIsShared };
struct ProbeOutcome {
  double bytes_per_second = 0;
  std::string error;  // why the link was not measured; empty: it was
};
struct ProbeReport {
  std::vector<ProbeOutcome> outcomes;  // one for each link, in the order of the request
  double rest_seconds = 0;             // until the next round may begin
};

// Rates are in bytes per second that repairs send over the network; 0 is no limit.
struct ClusterLimitsView {
  struct Node {
    std::string node;
    std::string state;                   // as in NodeStatus
    double repair_bytes_per_second = 0;  // the limit at the helper, by its latest heartbeat
    uint32_t max_sessions = 0;           // the limit at the helper, by its latest heartbeat
    std::optional<double> set_repair_bytes_per_second;  // by SetLimits
    std::optional<uint32_t> set_max_sessions;
  };
  double repair_bytes_per_second = 0;  // of all helpers together
  bool rate_is_set = false;            // set by SetLimits; false: as configured
  uint32_t max_running = 0;            // repairs at once
  bool max_running_is_set = false;
  std::vector<Node> nodes;  // by id
};

// Only limits that are set here change.
struct LimitsChange {
  std::string node;    // empty: the cluster's limits
  bool reset = false;  // first go back to the limits in the configurations
  std::optional<double> repair_bytes_per_second;
  std::optional<uint32_t> max_running;   // of the cluster
  std::optional<uint32_t> max_sessions;  // of a node
};

// Thread-safe. Every call has a deadline. UNAVAILABLE and DEADLINE_EXCEEDED name the coordinator;
// other errors are the coordinator's own. A call that is given a stop token ends soon with
// CANCELLED when that is asked to stop; the coordinator may have done it all the same.
class CoordinatorApi {
 public:
  virtual ~CoordinatorApi() = default;

  // `hosts` names a node for each block whose helper stores the block; empty: the requestor takes
  // the bytes.
  virtual absl::StatusOr<RepairGrant> BeginRepair(const RepairTarget& target,
                                                  const std::vector<std::string>& hosts,
                                                  const std::string& requestor,
                                                  const std::stop_token& stop) = 0;
  // Asks for another attempt for the missing slices. The requestor takes the bytes.
  virtual absl::StatusOr<RepairGrant> ResumeRepair(const RepairTarget& target,
                                                   const std::string& requestor,
                                                   const ResumePoint& from,
                                                   const std::stop_token& stop) = 0;
  // Asks whether to go on with an attempt. `quiet`: no bytes have come for a while. Answers within
  // two seconds, and when `stop` is asked to stop.
  virtual absl::StatusOr<ProgressAdvice> CheckProgress(RepairId repair_id, uint32_t attempt,
                                                       uint64_t missing_bytes, bool quiet,
                                                       const std::stop_token& stop) = 0;
  // Reports how the repair ended. If the status names a corrupt block (corrupt_block.h), the
  // coordinator learns of it. A CANCELLED repair, or one for which `stop` was asked to stop before,
  // is reported within a second or not at all, and the token does not end the call. Returns the
  // sources of the target's facts whose replicas are known to be corrupt by now.
  virtual absl::StatusOr<std::vector<StripeFacts::Source>> FinishRepair(
      RepairId repair_id, uint32_t attempt, const RepairVerdict& verdict,
      const std::stop_token& stop) = 0;
  virtual absl::StatusOr<RepairRecord> Repair(RepairId repair_id, const std::stop_token& stop) = 0;
  virtual absl::StatusOr<ExplainedRepair> Explain(const RepairTarget& target,
                                                  const std::vector<std::string>& hosts,
                                                  const std::string& requestor) = 0;
  // The schemes that a target can name. UNIMPLEMENTED: the coordinator is too old to list them.
  virtual absl::StatusOr<std::vector<SchemeInfo>> Schemes() = 0;
  // Stores the stripes in batches, each in one transaction. After an error the batches before it
  // are stored. `progress` is told of stripes and may be null.
  virtual absl::Status PutStripes(const std::vector<Stripe>& stripes,
                                  const ProgressFn& progress) = 0;
  // Damaged stripes do not count: only the end of the catalog gives a page without stripes.
  virtual absl::StatusOr<ListedStripes> ListStripes(const std::string& after_stripe_id,
                                                    uint32_t limit) = 0;
  virtual absl::StatusOr<BlockLocation> LocateBlock(const std::string& block_id) = 0;
  // Returns the id of the recovery. The coordinator goes on by itself.
  virtual absl::StatusOr<uint64_t> BeginRecovery(const RecoveryRequest& request,
                                                 IfLive if_live) = 0;
  virtual absl::Status ChangeRecovery(uint64_t recovery_id, RecoveryChange change) = 0;
  // The recovery with this id, or for 0 all recoveries, newest first.
  virtual absl::StatusOr<std::vector<RecoveryView>> Recoveries(uint64_t recovery_id) = 0;
  // Measures these links at the same time, in one round in which each node may send once and
  // receive once; twice where it is asked what they share. RESOURCE_EXHAUSTED: not now, try again
  // later.
  virtual absl::StatusOr<ProbeReport> ProbeLinks(
      const std::vector<std::pair<std::string, std::string>>& links, uint64_t bytes,
      ProbeKind kind) = 0;
  // The measured speeds, what streams were found to share, then the speeds of the operator's file.
  virtual absl::StatusOr<std::vector<LinkSpeed>> Links() = 0;
  // The blocks that a storage system had on a node. Nothing: it belongs to none, or the coordinator
  // does not know it. NOT_FOUND: the DataNode never reported its blocks.
  virtual absl::StatusOr<std::optional<NodeLoss>> LossOf(const std::string& node) = 0;
  virtual absl::StatusOr<ClusterLimitsView> Limits() = 0;
  // The new limits hold when this returns; for running repairs they hold within about a second.
  virtual absl::Status SetLimits(const LimitsChange& change) = 0;
  // The corrupt and the suspect blocks, the oldest first.
  virtual absl::StatusOr<std::vector<CorruptBlockStatus>> CorruptBlocks() = 0;
  // Takes the operator's word that the block is sound. NOT_FOUND: it is not marked.
  virtual absl::Status ClearCorruptBlock(const std::string& block_id) = 0;
  // Has the block's helper read it. CorruptBlocks() tells what came of it: a sound block is in the
  // list no longer. NOT_FOUND: the block is neither in the list nor in the catalog.
  virtual absl::Status CheckCorruptBlock(const std::string& block_id) = 0;
  // Also asks each live helper for its counters.
  virtual absl::StatusOr<ClusterStatus> Status() = 0;
};

}  // namespace ecpipe
