// SPDX-License-Identifier: Apache-2.0
// The command that moves all blocks off a node that lives.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "requestor/cli/commands.h"

namespace ecpipe {

struct DrainArguments {
  RecoveryRequest request;  // its policy and transport are below
  std::string policy;       // empty: the default
  std::string transport;    // the same
  bool detach = false;
  bool dry_run = false;
};
// Follows the drain to its end unless `detach` is set, and has helpers asked for each block.
// DATA_LOSS: not all are there. FAILED_PRECONDITION: some could not be moved, or the catalog still
// has blocks on the node.
absl::Status RunDrain(const CommonArguments& common, const DrainArguments& arguments);

}  // namespace ecpipe
