// SPDX-License-Identifier: Apache-2.0
// `ecpipe watch`.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "requestor/cli/commands.h"
#include "requestor/upkeep/cluster_tables.h"

namespace ecpipe {

struct WatchArguments {
  SortOrder order;  // of the nodes
  double interval_s = 2;
  uint64_t frames = 0;  // then it ends; 0: it goes on
};

// Shows the cluster on the terminal's alternate screen until a signal ends it; that gives the
// screen back first. Where the output is no terminal it prints one frame. With --json it prints a
// frame a line, wherever to. What the coordinator does not answer is shown, and asked again.
absl::Status RunWatch(const CommonArguments& common, const WatchArguments& arguments);

}  // namespace ecpipe
