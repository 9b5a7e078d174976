// SPDX-License-Identifier: Apache-2.0
// Copies of the coordinator's databases while it works.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "coordinator/store/sqlite_db.h"

namespace ecpipe {

// The databases of [coordinator] data_directory. Others may keep files of theirs there.
inline constexpr char kCatalogFile[] = "catalog.db";
inline constexpr char kJournalFile[] = "journal.db";
inline constexpr char kLimitsFile[] = "limits.db";
inline constexpr char kLossesFile[] = "losses.db";
inline constexpr char kMarksFile[] = "marks.db";
inline constexpr char kQfsLossesFile[] = "qfs-losses.db";

// A copy of one database. Its file has no name: it goes when the descriptor is closed.
struct DatabaseCopy {
  std::string name;  // of the database's file in its directory
  uint64_t bytes = 0;
  UniqueFd fd;
};

// Copies the databases of the directory that have one of the names above, each as it was when this
// was called; writers go on meanwhile. The copies need as much room beside the databases as these
// take. RESOURCE_EXHAUSTED, with nothing written, unless twice that is free: a full disk would stop
// the coordinator. CANCELLED once `go_on`, which is told of the bytes so far, returns false. One
// call at a time.
absl::StatusOr<std::vector<DatabaseCopy>> CopyDatabases(
    const std::string& directory, const std::function<bool(uint64_t copied)>& go_on);

// Removes what a call of CopyDatabases has left behind that was killed.
absl::Status RemoveLeftCopies(const std::string& directory);

// Copies the database to "FILE.before-vN" beside it, N being the version that it is about to get.
// Durable when this returns. Replaces such a copy: of an upgrade that did not come to its end, or
// from before somebody went back.
absl::Status KeepOldVersion(SqliteDb* db, int next_version);

}  // namespace ecpipe
