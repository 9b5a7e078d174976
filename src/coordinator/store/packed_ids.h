// SPDX-License-Identifier: Apache-2.0
// Columns with values that SQLite does not check: small numbers, and lists of ids. Each id in a
// list has its length before it, in one byte.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/store/sqlite_db.h"

namespace ecpipe {

// Every id is at most kMaxCatalogIdBytes long.
std::string PackIds(const std::vector<std::string>& ids);
// DATA_LOSS when the bytes are no such list.
absl::StatusOr<std::vector<std::string>> UnpackIds(std::string_view packed);

// A column of the row that holds a number from 0 to `most`; DATA_LOSS for any other.
absl::StatusOr<uint32_t> StoredUint32(const SqliteStatement& row, int column, uint32_t most);

}  // namespace ecpipe
