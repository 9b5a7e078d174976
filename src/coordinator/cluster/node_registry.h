// SPDX-License-Identifier: Apache-2.0
// The node table with its lock, its clock, and the racks that the operator has configured.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "coordinator/cluster/node_table.h"
#include "coordinator/cluster/silent_nodes.h"
#include "coordinator/cluster/topology.h"
#include "coordinator/cluster/topology_script.h"

namespace ecpipe {

// Why a node takes no blocks: an operator has its blocks moved off it, or it may be away for a
// while.
enum class KeptOut { kNone, kDraining, kDrained, kMaintenance };
// "", "draining", "drained", "in maintenance".
const char* KeptOutName(KeptOut why);

struct NodeView {
  NodeRecord record;
  NodeState state = NodeState::kDead;
  double seconds_since_heartbeat = 0;
  // No heartbeat is known: none has come since the start of this process, and
  // seconds_since_heartbeat is the time since that.
  bool heartbeat_unknown = false;
  // Of a live node whose helper answers no calls (SilentNodes): why, and for how long.
  std::string silent_because;
  double silent_seconds = 0;
  KeptOut kept_out = KeptOut::kNone;

  // It sends no heartbeats, as an operator has announced.
  bool Away() const { return state == NodeState::kDead && kept_out == KeptOut::kMaintenance; }
};

// A helper that was refused, because another has its address or its node id.
struct RefusedNode {
  std::string node_id;
  std::string control_address;
  std::string reason;
  double seconds_ago = 0;  // since it last tried
};

// Thread-safe.
class NodeRegistry {
 public:
  // Helpers try twice a second. One that has not for this long has ended, or was taken.
  static constexpr Duration kRefusalAge = std::chrono::seconds(10);
  static constexpr size_t kMaxRefused = 100;  // they are for people

  // `racks` is by node id, or by the host of a helper's control address. The rack of a node is the
  // one in `racks`, otherwise the one that `script` (empty: none) prints for that host, otherwise
  // the one that the helper registers. `clock` outlives the registry.
  NodeRegistry(const Clock* clock, Duration dead_after, RackTable racks, std::string script)
      : clock_(clock),
        started_(clock->Now()),
        dead_after_(dead_after),
        racks_(std::move(racks)),
        table_(dead_after) {
    if (!script.empty()) script_ = std::make_unique<TopologyScript>(std::move(script));
  }

  // As in NodeTable. Register may wait for the script. A rack that comes too late for it is the
  // node's from the next Tick on.
  absl::Status Register(NodeRecord node);
  absl::Status AddDead(NodeRecord node, Duration silent);
  absl::Status Heartbeat(const std::string& node, uint64_t incarnation, const NodeReport& report);
  void Forget(const std::string& node);
  void Heard(const std::string& node);
  void Tick();
  // Replaces the table of racks. Nodes that are in it have their new racks at once; others keep
  // theirs until they register again.
  void SetRacks(RackTable racks);
  // Replaces the set of nodes that take no blocks; they need not be known. The recoveries keep it.
  void SetKeptOut(std::map<std::string, KeptOut> kept_out);
  // As in SilentNodes. A node that is unknown or dead is not noted.
  void NoAnswer(const std::string& node, const std::string& reason);
  void Answered(const std::string& node);
  // The silent nodes that are not dead, with the reason of each.
  std::map<std::string, std::string> Silent();
  // Those of them to ask now whether they answer again.
  std::vector<std::string> SilentToProbe();

  // Nodes that have not registered since this process began, with the number of blocks that should
  // be on each; replaces those of before. (upkeep/absent_nodes.h)
  void SetAbsent(std::map<std::string, uint64_t> blocks);

  // Find and All also know nodes in maintenance that have not registered since this process began,
  // and absent ones once they have had the time to register: they are dead, and of their records
  // only the node id and that number of blocks is known.
  std::optional<NodeView> Find(const std::string& node);
  // Whether the node has registered since the start of the process.
  bool HasRegistered(const std::string& node);
  std::vector<NodeView> All();
  // As at most kCountAge ago: each heartbeat asks where the cluster has a rate.
  static constexpr Duration kCountAge = std::chrono::milliseconds(100);
  size_t CountLive();
  // Grows whenever another set of nodes may be live, silent or kept out, but not when a node dies
  // of silence.
  uint64_t changes();
  // Those that still try.
  std::vector<RefusedNode> Refused();
  std::vector<std::string> WithStorage(const std::string& storage_id);

 private:
  // The configured rack; empty: none. `late_host`: whose rack the script may yet tell.
  std::string ConfiguredRack(const NodeRecord& node, std::string* late_host);
  void TakeLateRacks();
  // The one in `racks`; empty: none.
  static std::string RackIn(const RackTable& racks, const NodeRecord& node);
  struct Refusal {
    std::string reason;
    TimePoint at;
  };
  // Returns whether it is news.
  bool NoteRefused(const NodeRecord& node, const std::string& reason, TimePoint now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Dead(const std::string& node, TimePoint now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Changed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  NodeView ViewOf(const NodeRecord& record, TimePoint now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether a node that is not in the table is known all the same.
  bool Missed(const std::string& node, TimePoint now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  NodeView Unheard(const std::string& node, TimePoint now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock* const clock_;
  const TimePoint started_;
  const Duration dead_after_;
  std::unique_ptr<TopologyScript> script_;  // null: none
  Mutex mutex_;
  RackTable racks_ ABSL_GUARDED_BY(mutex_);
  NodeTable table_ ABSL_GUARDED_BY(mutex_);
  // The hosts of nodes whose rack the script has not told.
  std::map<std::string, std::string> late_hosts_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, KeptOut> kept_out_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, uint64_t> absent_ ABSL_GUARDED_BY(mutex_);  // see SetAbsent
  SilentNodes silent_ ABSL_GUARDED_BY(mutex_);
  uint64_t changes_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t live_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<TimePoint> live_counted_ ABSL_GUARDED_BY(mutex_);  // nothing: count anew
  // By node id and control address.
  std::map<std::pair<std::string, std::string>, Refusal> refused_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ecpipe
