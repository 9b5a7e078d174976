// SPDX-License-Identifier: Apache-2.0
// The node table with its lock, its clock, and the racks that the operator has configured.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "coordinator/cluster/node_table.h"
#include "coordinator/cluster/topology.h"
#include "coordinator/cluster/topology_script.h"

namespace ecpipe {

struct NodeView {
  NodeRecord record;
  NodeState state = NodeState::kDead;
  double seconds_since_heartbeat = 0;
};

// Thread-safe.
class NodeRegistry {
 public:
  // `racks` is by node id, or by the host of a helper's control address. The rack of a node is the
  // one in `racks`, otherwise the one that `script` (empty: none) prints for that host, otherwise
  // the one that the helper registers. `clock` outlives the registry.
  NodeRegistry(const Clock* clock, Duration dead_after, RackTable racks, std::string script)
      : clock_(clock), racks_(std::move(racks)), table_(dead_after) {
    if (!script.empty()) script_ = std::make_unique<TopologyScript>(std::move(script));
  }

  // As in NodeTable. Register may run the script.
  absl::Status Register(NodeRecord node);
  absl::Status AddDead(NodeRecord node, Duration silent);
  absl::Status Heartbeat(const std::string& node, uint64_t incarnation, const NodeReport& report);
  void Heard(const std::string& node);
  void Tick();

  std::optional<NodeView> Find(const std::string& node);
  // Whether the node has registered since the start of the process.
  bool HasRegistered(const std::string& node);
  std::vector<NodeView> All();
  std::vector<std::string> WithStorage(const std::string& storage_id);

 private:
  // The configured rack; empty: none.
  std::string ConfiguredRack(const NodeRecord& node) const;
  NodeView ViewOf(const NodeRecord& record, TimePoint now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock* const clock_;
  const RackTable racks_;
  std::unique_ptr<TopologyScript> script_;  // null: none
  Mutex mutex_;
  NodeTable table_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ecpipe
