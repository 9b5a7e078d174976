// SPDX-License-Identifier: Apache-2.0
#include "coordinator/store/sqlite_journal.h"

#include "base/status.h"
#include "coordinator/store/sqlite_recoveries.h"
#include "coordinator/store/sqlite_repairs.h"
#include "coordinator/store/sqlite_schema.h"

namespace ecpipe {

absl::StatusOr<std::unique_ptr<SqliteJournal>> SqliteJournal::Open(const std::string& path) {
  ECPIPE_RETURN_IF_ERROR(EnsureSchema(path));
  std::unique_ptr<SqliteJournal> journal(new SqliteJournal(path));
  ECPIPE_ASSIGN_OR_RETURN(journal->connection_,
                          SqlitePool::Open(path, {.sync = CommitSync::kProcessSafe}, 1));
  return journal;
}

absl::Status SqliteJournal::Record(const RepairRecord& record) {
  const SqlitePool::Lease db = connection_->Take();
  ECPIPE_ASSIGN_OR_RETURN(SqliteTransaction transaction, SqliteTransaction::Begin(db.get()));
  ECPIPE_RETURN_IF_ERROR(
      Annotate(StoreRepair(db.get(), record), "journal repair " + RepairIdText(record.repair_id)));
  return transaction.Commit();
}

absl::StatusOr<std::vector<RepairRecord>> SqliteJournal::ClaimInterrupted(int64_t now_unix_ms) {
  const SqlitePool::Lease db = connection_->Take();
  ECPIPE_ASSIGN_OR_RETURN(SqliteTransaction transaction, SqliteTransaction::Begin(db.get()));
  ECPIPE_ASSIGN_OR_RETURN(std::vector<RepairRecord> records,
                          InterruptRepairs(db.get(), now_unix_ms));
  ECPIPE_RETURN_IF_ERROR(transaction.Commit());
  return records;
}

absl::StatusOr<RepairRecord> SqliteJournal::Find(RepairId repair_id) {
  return LoadRepair(connection_->Take().get(), repair_id);
}

absl::StatusOr<std::vector<RepairRecord>> SqliteJournal::Recent(int limit) {
  if (limit < 1) return absl::InvalidArgumentError("the limit of a list must be 1 or more");
  return LoadRecentRepairs(connection_->Take().get(), limit);
}

absl::StatusOr<std::vector<RepairRecord>> SqliteJournal::RecentlyEnded(int limit) {
  if (limit < 1) return absl::InvalidArgumentError("the limit of a list must be 1 or more");
  return LoadEndedRepairs(connection_->Take().get(), limit);
}

absl::Status SqliteJournal::RecordRecovery(const RecoveryRecord& record) {
  const SqlitePool::Lease db = connection_->Take();
  ECPIPE_ASSIGN_OR_RETURN(SqliteTransaction transaction, SqliteTransaction::Begin(db.get()));
  ECPIPE_RETURN_IF_ERROR(Annotate(StoreRecovery(db.get(), record),
                                  "journal recovery " + std::to_string(record.recovery_id)));
  return transaction.Commit();
}

absl::StatusOr<std::vector<RecoveryRecord>> SqliteJournal::Recoveries(int limit) {
  if (limit < 1) return absl::InvalidArgumentError("the limit of a list must be 1 or more");
  return LoadRecoveries(connection_->Take().get(), limit);
}

absl::Status SqliteJournal::Trim(int keep) {
  if (keep < 0) return absl::InvalidArgumentError("the number of records to keep is negative");
  const SqlitePool::Lease db = connection_->Take();
  ECPIPE_ASSIGN_OR_RETURN(SqliteTransaction transaction, SqliteTransaction::Begin(db.get()));
  ECPIPE_RETURN_IF_ERROR(TrimRepairs(db.get(), keep));
  return transaction.Commit();
}

}  // namespace ecpipe
