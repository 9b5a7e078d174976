// SPDX-License-Identifier: Apache-2.0
// The tables repairs and repair_blocks of the journal. Functions that write run within the caller's
// write transaction.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/store/journal.h"
#include "coordinator/store/sqlite_db.h"

namespace ecpipe {

// INVALID_ARGUMENT for a record that is not kept: more than kMaxRows blocks, a name over
// kMaxCatalogIdBytes, a moved row that no node stores, or a text over kMaxTextBytes.
absl::Status CheckRepair(const RepairRecord& record);
// Replaces an older record of the same id. Cuts its texts; else INVALID_ARGUMENT as CheckRepair.
absl::Status StoreRepair(SqliteDb* db, const RepairRecord& record);
// Only its blocks, hosts and moved rows.
absl::Status StoreRepairBlocks(SqliteDb* db, const RepairRecord& record);

// NOT_FOUND: there is none. DATA_LOSS, naming the repair: its rows make no sense, or CheckRepair
// refuses it.
absl::StatusOr<RepairRecord> LoadRepair(SqliteDb* db, RepairId repair_id);
// The newest first. Rows that make no sense are logged and left out, here and below.
absl::StatusOr<std::vector<RepairRecord>> LoadRecentRepairs(SqliteDb* db, int limit);
absl::StatusOr<std::vector<RepairRecord>> LoadEndedRepairs(SqliteDb* db, int limit);
// Those that were running, the oldest first, as they were; all become interrupted.
absl::StatusOr<std::vector<RepairRecord>> InterruptRepairs(SqliteDb* db, int64_t now_unix_ms);

// Removes all but the newest `keep` of those that do not run.
absl::Status TrimRepairs(SqliteDb* db, int keep);

}  // namespace ecpipe
