// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"
#include "requestor/cli/commands.h"

namespace ecpipe {

struct BackupArguments {
  std::string file;
  bool force = false;  // replace the file
};

// Writes a backup of the coordinator to a file, which appears under its name whole and durable, or
// not at all. ALREADY_EXISTS unless `force` is set.
absl::Status RunBackup(const CommonArguments& common, const BackupArguments& arguments);

}  // namespace ecpipe
