// SPDX-License-Identifier: Apache-2.0
// The recoveries table of the journal.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/store/sqlite_db.h"
#include "model/recovery.h"

namespace ecpipe {

// Replaces an older row of the same id. INVALID_ARGUMENT for a node id over kMaxCatalogIdBytes.
absl::Status StoreRecovery(SqliteDb* db, const RecoveryRecord& record);
// The newest first. DATA_LOSS for a row that makes no sense.
absl::StatusOr<std::vector<RecoveryRecord>> LoadRecoveries(SqliteDb* db, int limit);

}  // namespace ecpipe
