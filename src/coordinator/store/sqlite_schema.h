// SPDX-License-Identifier: Apache-2.0
// The tables of a coordinator's database, and their version.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "coordinator/store/sqlite_db.h"

namespace ecpipe {

// Kept in the file as PRAGMA user_version. Raise it with every change of the tables or of the
// bytes in them (stripe_record.h), and teach EnsureSchema to upgrade the version before.
inline constexpr int kSqliteSchemaVersion = 6;

// Creates the tables in an empty database; leaves one of this version as it is. Catalog and journal
// share the schema, so they may live in one file. FAILED_PRECONDITION, with nothing changed, when
// the file is of a newer version or was not made by ecpipe.
[[nodiscard]] absl::Status EnsureSchema(const std::string& path);

}  // namespace ecpipe
