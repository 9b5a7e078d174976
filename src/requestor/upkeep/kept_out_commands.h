// SPDX-License-Identifier: Apache-2.0
// The commands for nodes that take no blocks for a while.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "requestor/cli/commands.h"

namespace ecpipe {

struct MaintainArguments {
  std::string node;
  double seconds = 0;
  bool dry_run = false;
};
// Announces that the node may be away, or changes for how long.
absl::Status RunMaintain(const CommonArguments& common, const MaintainArguments& arguments);

struct ReadmitArguments {
  std::string node;
  bool dry_run = false;
};
// Lets a node that was drained, or is in maintenance, take blocks again.
absl::Status RunReadmit(const CommonArguments& common, const ReadmitArguments& arguments);

}  // namespace ecpipe
