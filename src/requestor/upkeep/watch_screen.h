// SPDX-License-Identifier: Apache-2.0
// What `ecpipe watch` shows at one time. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "model/recovery.h"
#include "requestor/cli/table.h"
#include "requestor/client/coordinator_api.h"
#include "requestor/upkeep/cluster_tables.h"

namespace ecpipe {

struct WatchFrame {
  std::string coordinator;  // its address
  std::string time;         // of the day, as people write it
  std::string error;        // why what follows is not newer; empty: it is as new as `time`
  int64_t now_unix_ms = 0;
  bool answered = false;  // ever; without an answer nothing follows
  ClusterStatus status;
  std::vector<RecoveryView> recoveries;
  LinkUses uses;
};

// Lines for a terminal with so many rows (0: as many as it takes): troubles, recoveries that have
// not ended, repairs, nodes. What has no room is counted. `order` is that of the nodes.
std::string WatchScreen(WatchFrame frame, const SortOrder& order, const OutputStyle& style,
                        size_t rows);

}  // namespace ecpipe
