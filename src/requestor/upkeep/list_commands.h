// SPDX-License-Identifier: Apache-2.0
// `ecpipe nodes` and `ecpipe repairs`.
#pragma once

#include "absl/status/status.h"
#include "requestor/cli/commands.h"
#include "requestor/upkeep/cluster_tables.h"

namespace ecpipe {

// Asks twice, half a second apart, for what links carry.
absl::Status RunNodes(const CommonArguments& common, const SortOrder& order);

struct RepairsArguments {
  SortOrder order;
  bool running = false;  // no others
};
absl::Status RunRepairs(const CommonArguments& common, const RepairsArguments& arguments);

}  // namespace ecpipe
