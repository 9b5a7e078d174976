// SPDX-License-Identifier: Apache-2.0
// The tables of a coordinator's database, and their version.
//
// They are ordinary tables, readable to anybody's sqlite3, and made so that another SQL engine can
// take them over: keys are numbers and texts, and nothing is packed. Ids are ordered by their
// bytes.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "coordinator/store/sqlite_db.h"

namespace ecpipe {

// Kept in the file as PRAGMA user_version. Raise it with every change of the tables or of what is
// in them, and teach UpgradeTables (sqlite_upgrade.h) the version before.
inline constexpr int kSqliteSchemaVersion = 8;

// Creates the tables in an empty database, upgrades those of an older version, leaves one of this
// version as it is. Catalog and journal share the schema, so they may live in one file.
// FAILED_PRECONDITION, with nothing changed, when the file is of a newer version or was not made by
// ecpipe. An upgrade is one transaction; a million stripes take a minute or two. Before it the file
// is copied (KeepOldVersion).
[[nodiscard]] absl::Status EnsureSchema(const std::string& path);

// The parts of the schema, for upgrades: the tables, then the indexes that are made faster once the
// rows are there.
[[nodiscard]] absl::Status CreateTables(SqliteDb* db);
[[nodiscard]] absl::Status CreateIndexes(SqliteDb* db);

}  // namespace ecpipe
