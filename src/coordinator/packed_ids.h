// SPDX-License-Identifier: Apache-2.0
// Lists of ids in one column: one byte of length before each id.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace ecpipe {

// Every id is at most kMaxCatalogIdBytes long.
std::string PackIds(const std::vector<std::string>& ids);
// DATA_LOSS when the bytes are no such list.
absl::StatusOr<std::vector<std::string>> UnpackIds(std::string_view packed);

}  // namespace ecpipe
