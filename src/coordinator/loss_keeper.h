// SPDX-License-Identifier: Apache-2.0
// Carries what dead DataNodes had over a restart of the coordinator.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "common/clock.h"
#include "coordinator/node_registry.h"
#include "coordinator/reported_blocks.h"
#include "coordinator/sqlite_losses.h"

namespace ecpipe {

// Used by one thread at a time.
class LossKeeper {
 public:
  // A node that has been away for longer will not come back, and HDFS has long rebuilt it.
  static constexpr auto kKeptFor = std::chrono::hours(7 * 24);
  // When many die at once, the rest is for the next time.
  static constexpr auto kLongestLook = std::chrono::milliseconds(500);

  // All outlive the keeper.
  LossKeeper(SqliteLosses* store, NodeRegistry* nodes, ReportedBlocks* reported, const Clock* clock)
      : store_(store), nodes_(nodes), reported_(reported), clock_(clock) {}

  // Makes the nodes known that were dead when the coordinator ended, with what they had. Before
  // helpers can register.
  void Restore();
  // Stores what nodes had that have died since, and forgets those that report again. To be called
  // every second: what has not been found dead by then is not known after the next start.
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
  bool failing_ = false;  // and the log says so
};

}  // namespace ecpipe
