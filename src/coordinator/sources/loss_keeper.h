// SPDX-License-Identifier: Apache-2.0
// Keeps the blocks of a storage system's dead nodes over a restart of the coordinator.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/clock.h"
#include "coordinator/cluster/node_registry.h"
#include "coordinator/sources/reported_blocks.h"
#include "coordinator/sources/sqlite_losses.h"

namespace ecpipe {

// Used by one thread at a time.
class LossKeeper {
 public:
  // A node that has been away for longer will not come back, and its system has long rebuilt it.
  static constexpr auto kKeptFor = std::chrono::hours(7 * 24);
  // At most so many nodes are stored at a time; if more die at once, the rest waits for the next
  // time.
  static constexpr auto kLongestLook = std::chrono::milliseconds(500);

  // All outlive the keeper.
  LossKeeper(SqliteLosses* store, NodeRegistry* nodes, ReportedBlocks* reported, const Clock* clock)
      : store_(store), nodes_(nodes), reported_(reported), clock_(clock) {}

  // Restores the nodes that were dead when the coordinator ended, with their blocks. Call it before
  // helpers can register.
  void Restore();
  // Stores the blocks of nodes that have died since, and forgets nodes that report again. Of nodes
  // that the registry has forgotten, or that have been dead for kKeptFor, it forgets what they
  // reported, here and in the store. Call it every second: the next coordinator does not know what
  // came after the last call.
  void Look();

 private:
  absl::Status RestoreNode(const std::string& node);
  absl::Status LookAt(const std::string& node);

  SqliteLosses* const store_;
  NodeRegistry* const nodes_;
  ReportedBlocks* const reported_;
  const Clock* const clock_;
  // What the store has of each node, as it was reported.
  std::map<std::string, std::shared_ptr<const NodeBlocks>> kept_;
  bool failing_ = false;  // the last attempt failed, and that was logged
};

}  // namespace ecpipe
