// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"

namespace ecpipe {

// A block id is 1 to 255 letters, digits, '.', '_' or '-', and does not begin with '.': it can be a
// file name and nothing else. INVALID_ARGUMENT otherwise. Everything that comes from outside as a
// block id passes here first; node ids follow the same rule.
absl::Status ValidateBlockId(const std::string& block_id);

}  // namespace ecpipe
