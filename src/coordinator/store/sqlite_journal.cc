// SPDX-License-Identifier: Apache-2.0
#include "coordinator/store/sqlite_journal.h"

#include <algorithm>

#include "base/bytes/utf8_text.h"
#include "base/status.h"
#include "coordinator/store/packed_ids.h"
#include "coordinator/store/sqlite_recoveries.h"
#include "coordinator/store/sqlite_schema.h"
#include "coordinator/store/stripe_record.h"

namespace ecpipe {

namespace {

#define ECPIPE_REPAIR_COLUMNS                                                              \
  "repair_id, attempt, block_ids, first_byte, bytes, scheme, transport, requestor, state," \
  " started_unix_ms, ended_unix_ms, detail, hosts, recovery_id, moved"

constexpr char kStore[] = "INSERT OR REPLACE INTO repairs(" ECPIPE_REPAIR_COLUMNS
                          ") VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12,"
                          " ?13, ?14, ?15)";
constexpr char kSelectRunning[] =
    "SELECT " ECPIPE_REPAIR_COLUMNS " FROM repairs WHERE state = ?1 ORDER BY started_unix_ms";
constexpr char kSelectOne[] = "SELECT " ECPIPE_REPAIR_COLUMNS " FROM repairs WHERE repair_id = ?1";
constexpr char kSelectRecent[] = "SELECT " ECPIPE_REPAIR_COLUMNS
                                 " FROM repairs ORDER BY started_unix_ms DESC, repair_id DESC"
                                 " LIMIT ?1";
constexpr char kTrim[] =
    "DELETE FROM repairs WHERE repair_id IN (SELECT repair_id FROM repairs WHERE state <> ?1"
    " ORDER BY started_unix_ms DESC, repair_id DESC LIMIT -1 OFFSET ?2)";

// These numbers are in files: never change one.
int64_t StoredState(RepairState state) {
  switch (state) {
    case RepairState::kRunning:
      return 0;
    case RepairState::kDone:
      return 1;
    case RepairState::kFailed:
      return 2;
    case RepairState::kInterrupted:
      return 3;
  }
  return -1;
}

absl::StatusOr<RepairState> StateOfStored(int64_t stored) {
  for (const RepairState state : {RepairState::kRunning, RepairState::kDone, RepairState::kFailed,
                                  RepairState::kInterrupted}) {
    if (StoredState(state) == stored) return state;
  }
  return absl::DataLossError("unknown state " + std::to_string(stored));
}

std::string_view Cut(const std::string& text) {
  return CutText(text, SqliteJournal::kMaxTextBytes);
}

absl::Status CheckRecord(const RepairRecord& record) {
  if (record.block_ids.size() > kMaxRows) {
    return absl::InvalidArgumentError("the repair has " + std::to_string(record.block_ids.size()) +
                                      " blocks, but at most " + std::to_string(kMaxRows) +
                                      " can be repaired at once");
  }
  for (const auto& ids : {record.block_ids, record.hosts}) {
    for (const std::string& id : ids) {
      if (id.size() <= kMaxCatalogIdBytes) continue;
      return absl::InvalidArgumentError("a block id or node id is longer than " +
                                        std::to_string(kMaxCatalogIdBytes) + " bytes");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<RepairRecord> DecodeFields(const SqliteStatement& row) {
  RepairRecord record;
  record.repair_id = static_cast<RepairId>(row.Int(0));
  ECPIPE_ASSIGN_OR_RETURN(record.attempt, StoredUint32(row, 1, UINT32_MAX));
  ECPIPE_ASSIGN_OR_RETURN(record.block_ids, UnpackIds(row.Bytes(2)));
  if (record.block_ids.size() > kMaxRows) return absl::DataLossError("too many blocks");
  record.offset = static_cast<uint64_t>(row.Int(3));
  record.bytes = static_cast<uint64_t>(row.Int(4));
  record.scheme = row.Bytes(5);
  record.transport = row.Bytes(6);
  record.requestor = row.Bytes(7);
  ECPIPE_ASSIGN_OR_RETURN(record.state, StateOfStored(row.Int(8)));
  record.started_unix_ms = row.Int(9);
  record.ended_unix_ms = row.Int(10);
  record.detail = row.Bytes(11);
  ECPIPE_ASSIGN_OR_RETURN(record.hosts, UnpackIds(row.Bytes(12)));
  record.recovery_id = static_cast<RecoveryId>(row.Int(13));
  for (const char moved : row.Bytes(14)) {
    const auto moved_row = static_cast<uint8_t>(moved);
    if (moved_row >= record.hosts.size()) return absl::DataLossError("a moved row without a host");
    record.moved.push_back(moved_row);
  }
  return record;
}

absl::StatusOr<std::vector<RepairRecord>> DecodeAll(SqliteStatement* query) {
  std::vector<RepairRecord> records;
  while (true) {
    ECPIPE_ASSIGN_OR_RETURN(const bool more, query->Step());
    if (!more) return records;
    absl::StatusOr<RepairRecord> record = DecodeFields(*query);
    if (!record.ok()) {
      const auto repair_id = static_cast<RepairId>(query->Int(0));
      return Annotate(record.status(), "journal record of repair " + RepairIdText(repair_id));
    }
    records.push_back(*std::move(record));
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<SqliteJournal>> SqliteJournal::Open(const std::string& path) {
  ECPIPE_RETURN_IF_ERROR(EnsureSchema(path));
  std::unique_ptr<SqliteJournal> journal(new SqliteJournal);
  ECPIPE_ASSIGN_OR_RETURN(journal->connection_,
                          SqlitePool::Open(path, {.sync = CommitSync::kProcessSafe}, 1));
  return journal;
}

absl::Status SqliteJournal::Record(const RepairRecord& record) {
  ECPIPE_RETURN_IF_ERROR(CheckRecord(record));
  const SqlitePool::Lease db = connection_->Take();
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement store, db->Prepare(kStore));
  store.Bind(1, static_cast<int64_t>(record.repair_id));
  store.Bind(2, record.attempt);
  store.BindBlob(3, PackIds(record.block_ids));
  store.Bind(4, static_cast<int64_t>(record.offset));
  store.Bind(5, static_cast<int64_t>(record.bytes));
  store.BindText(6, Cut(record.scheme));
  store.BindText(7, Cut(record.transport));
  store.BindText(8, Cut(record.requestor));
  store.Bind(9, StoredState(record.state));
  store.Bind(10, record.started_unix_ms);
  store.Bind(11, record.ended_unix_ms);
  store.BindText(12, Cut(record.detail));
  store.BindBlob(13, PackIds(record.hosts));
  store.Bind(14, static_cast<int64_t>(record.recovery_id));
  static_assert(kMaxRows <= 256);  // one byte a row
  store.BindBlob(15, std::string(record.moved.begin(), record.moved.end()));
  return Annotate(store.Execute(), "journal repair " + RepairIdText(record.repair_id));
}

absl::StatusOr<std::vector<RepairRecord>> SqliteJournal::TakeInterrupted(int64_t now_unix_ms) {
  const SqlitePool::Lease db = connection_->Take();
  ECPIPE_ASSIGN_OR_RETURN(SqliteTransaction transaction, SqliteTransaction::Begin(db.get()));
  std::vector<RepairRecord> records;
  {
    ECPIPE_ASSIGN_OR_RETURN(SqliteStatement query, db->Prepare(kSelectRunning));
    query.Bind(1, StoredState(RepairState::kRunning));
    ECPIPE_ASSIGN_OR_RETURN(records, DecodeAll(&query));
  }
  ECPIPE_ASSIGN_OR_RETURN(
      SqliteStatement update,
      db->Prepare("UPDATE repairs SET state = ?1, ended_unix_ms = ?2 WHERE state = ?3"));
  update.Bind(1, StoredState(RepairState::kInterrupted));
  update.Bind(2, now_unix_ms);
  update.Bind(3, StoredState(RepairState::kRunning));
  ECPIPE_RETURN_IF_ERROR(update.Execute());
  ECPIPE_RETURN_IF_ERROR(transaction.Commit());
  for (RepairRecord& record : records) {
    record.state = RepairState::kInterrupted;
    record.ended_unix_ms = now_unix_ms;
  }
  return records;
}

absl::StatusOr<RepairRecord> SqliteJournal::Find(RepairId repair_id) {
  const SqlitePool::Lease db = connection_->Take();
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement query, db->Prepare(kSelectOne));
  query.Bind(1, static_cast<int64_t>(repair_id));
  ECPIPE_ASSIGN_OR_RETURN(std::vector<RepairRecord> records, DecodeAll(&query));
  if (records.empty()) {
    return absl::NotFoundError("the journal has no repair " + RepairIdText(repair_id));
  }
  return std::move(records[0]);
}

absl::StatusOr<std::vector<RepairRecord>> SqliteJournal::Recent(int limit) {
  if (limit < 1) return absl::InvalidArgumentError("the limit of a list must be 1 or more");
  const SqlitePool::Lease db = connection_->Take();
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement query, db->Prepare(kSelectRecent));
  query.Bind(1, limit);
  return DecodeAll(&query);
}

absl::Status SqliteJournal::RecordRecovery(const RecoveryRecord& record) {
  const SqlitePool::Lease db = connection_->Take();
  return Annotate(StoreRecovery(db.get(), record),
                  "journal recovery " + std::to_string(record.recovery_id));
}

absl::StatusOr<std::vector<RecoveryRecord>> SqliteJournal::Recoveries(int limit) {
  if (limit < 1) return absl::InvalidArgumentError("the limit of a list must be 1 or more");
  const SqlitePool::Lease db = connection_->Take();
  return LoadRecoveries(db.get(), limit);
}

absl::Status SqliteJournal::Trim(int keep) {
  if (keep < 0) return absl::InvalidArgumentError("the number of records to keep is negative");
  const SqlitePool::Lease db = connection_->Take();
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement trim, db->Prepare(kTrim));
  trim.Bind(1, StoredState(RepairState::kRunning));
  trim.Bind(2, keep);
  return trim.Execute();
}

}  // namespace ecpipe
