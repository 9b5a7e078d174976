// SPDX-License-Identifier: Apache-2.0
// Whether a directory of blocks can be used now, as the file system says and not as the store
// remembers.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace ecpipe {

enum class RootUse { kReadBlocks, kTakeBlocks };

// Lists the directory, reads a byte of some file in or below it, and with kTakeBlocks makes a file
// there that has no name and goes at once. May hang with the disk. The error says what failed.
absl::Status CheckRoot(const std::string& path, RootUse use);

}  // namespace ecpipe
