// SPDX-License-Identifier: Apache-2.0
// The tables recoveries and recovery_targets of the journal.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/store/sqlite_db.h"
#include "model/recovery.h"

namespace ecpipe {

// INVALID_ARGUMENT for a record that is not kept: a name over kMaxCatalogIdBytes, slices over
// kMaxSliceBytes, or a count over INT64_MAX.
absl::Status CheckRecovery(const RecoveryRecord& record);
// Replaces an older record of the same id, within the caller's write transaction. INVALID_ARGUMENT
// as CheckRecovery.
absl::Status StoreRecovery(SqliteDb* db, const RecoveryRecord& record);
// Only its targets.
absl::Status StoreTargets(SqliteDb* db, RecoveryId id, const std::vector<std::string>& targets);
// The newest first: the newest `limit`, and beyond them those that have not ended or keep a node
// out. Rows that make no sense, or that CheckRecovery refuses, are logged and left
// out.
absl::StatusOr<std::vector<RecoveryRecord>> LoadRecoveries(SqliteDb* db, int limit);

}  // namespace ecpipe
