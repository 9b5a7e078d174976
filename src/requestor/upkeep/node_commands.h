// SPDX-License-Identifier: Apache-2.0
// `ecpipe nodes`: what is done with a node that goes, stays away or has come back.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "requestor/cli/commands.h"

namespace ecpipe {

struct ForgetNodeArguments {
  std::string node;
  bool force = false;
  bool dry_run = false;
};
absl::Status RunForgetNode(const CommonArguments& common, const ForgetNodeArguments& arguments);

struct CleanArguments {
  std::string node;
  double least_age_seconds = 3600;
  bool dry_run = false;
};
// Removes copies of blocks that the catalog has on other nodes, if these live and have them. What
// stays for a reason is no error. UNAVAILABLE: of some copies no helper has said anything.
absl::Status RunClean(const CommonArguments& common, const CleanArguments& arguments);

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
