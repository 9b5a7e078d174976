// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/status.h"

namespace ecpipe {

// As long as a file name may be on every file system that we meet.
inline constexpr size_t kMaxBlockIdLength = 255;

// Block ids come over the network and become file names, so they are checked wherever they enter: 1 to
// kMaxBlockIdLength characters of A-Z, a-z, 0-9, '.', '_' and '-', and no '.' at the start. No such
// name leaves its directory, and none is a temporary file of ours (file_io.h). Node ids, which become
// directory names, keep the same rule.
//
// INVALID_ARGUMENT otherwise; the message does not repeat the id, which may hold anything.
[[nodiscard]] absl::Status ValidateBlockId(const std::string& block_id);

}  // namespace ecpipe
