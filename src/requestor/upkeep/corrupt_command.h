// SPDX-License-Identifier: Apache-2.0
// `ecpipe corrupt`: the marks of corrupt and suspect blocks.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "requestor/cli/commands.h"

namespace ecpipe {

absl::Status RunCorruptList(const CommonArguments& common);
struct ClearCorruptArguments {
  std::string block_id;
  bool dry_run = false;
};
absl::Status RunClearCorrupt(const CommonArguments& common, const ClearCorruptArguments& arguments);
// Waits for the check. DATA_LOSS unless the block is sound.
absl::Status RunCheckCorrupt(const CommonArguments& common, const std::string& block_id);

}  // namespace ecpipe
