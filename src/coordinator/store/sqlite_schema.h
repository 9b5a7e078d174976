// SPDX-License-Identifier: Apache-2.0
// The tables of a coordinator's database, and their version.
//
// They are ordinary tables, readable to anybody's sqlite3, and made so that another SQL engine can
// take them over: keys are numbers and texts, and nothing is packed. Ids are ordered by their
// bytes.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/store/sqlite_db.h"

namespace ecpipe {

// What makes version 2 of version 1, version 3 of version 2, and so on: SQL, each within one
// transaction. A change of the tables, or of what is in them, is made in kTables
// (sqlite_schema.cc), for new files, and added here, for those that there are.
// sqlite_versions_test.cc has an example, and keeps a file of each version.
using SchemaUpgrades = std::vector<const char*>;
inline const SchemaUpgrades kSchemaUpgrades = {};

// The version of the tables after all of them, which the file keeps as PRAGMA user_version.
inline int VersionAfter(const SchemaUpgrades& upgrades) {
  return static_cast<int>(upgrades.size()) + 1;
}

// Creates the tables in an empty database, upgrades those of an older version, leaves one of this
// version as it is. Catalog and journal share the schema, so they may live in one file.
// FAILED_PRECONDITION, with nothing changed, when the file is of a newer version or was not made by
// ecpipe. An upgrade is one transaction. Before it the file is copied (KeepOldVersion).
[[nodiscard]] absl::Status EnsureSchema(const std::string& path,
                                        const SchemaUpgrades& upgrades = kSchemaUpgrades);

}  // namespace ecpipe
