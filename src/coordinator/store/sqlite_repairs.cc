// SPDX-License-Identifier: Apache-2.0
#include "coordinator/store/sqlite_repairs.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "base/bytes/utf8_text.h"
#include "base/status.h"
#include "coordinator/store/journal_rows.h"
#include "coordinator/store/sqlite_journal.h"

namespace ecpipe {
namespace {

#define ECPIPE_REPAIR_COLUMNS                                                         \
  "repair_id, attempt, first_byte, bytes, scheme, transport, requestor, recovery_id," \
  " state, started_unix_ms, ended_unix_ms, detail"

constexpr char kStoreRepair[] = "INSERT INTO repairs(" ECPIPE_REPAIR_COLUMNS
                                ") VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
constexpr char kSelectRunning[] = "SELECT " ECPIPE_REPAIR_COLUMNS
                                  " FROM repairs WHERE state = 'running' ORDER BY started_unix_ms";
constexpr char kInterrupt[] =
    "UPDATE repairs SET state = 'interrupted', ended_unix_ms = ?1 WHERE state = 'running'";
constexpr char kSelectOne[] = "SELECT " ECPIPE_REPAIR_COLUMNS " FROM repairs WHERE repair_id = ?1";
#define ECPIPE_NEWEST " ORDER BY started_unix_ms DESC, repair_id DESC LIMIT ?1"
constexpr char kNewestRunning[] =
    "SELECT " ECPIPE_REPAIR_COLUMNS " FROM repairs WHERE state = 'running'" ECPIPE_NEWEST;
constexpr char kNewestEnded[] =
    "SELECT " ECPIPE_REPAIR_COLUMNS " FROM repairs WHERE state <> 'running'" ECPIPE_NEWEST;
#define ECPIPE_OLD_REPAIRS                                  \
  "(SELECT repair_id FROM repairs WHERE state <> 'running'" \
  " ORDER BY started_unix_ms DESC, repair_id DESC LIMIT -1 OFFSET ?1)"

constexpr RepairState kRepairStates[] = {RepairState::kRunning, RepairState::kDone,
                                         RepairState::kFailed, RepairState::kInterrupted,
                                         RepairState::kCancelled};

// Cuts the texts of a record, and of nothing else.
RepairRecord Cut(RepairRecord record) {
  for (std::string* text : {&record.scheme, &record.transport, &record.requestor, &record.detail}) {
    text->resize(CutText(*text, SqliteJournal::kMaxTextBytes).size());
  }
  return record;
}

absl::Status LoadBlocks(SqliteDb* db, RepairRecord* record) {
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement query,
                          db->Prepare("SELECT position, block_id, host, moved FROM repair_blocks"
                                      " WHERE repair_id = ?1 ORDER BY position"));
  query.Bind(1, static_cast<int64_t>(record->repair_id));
  for (size_t row = 0;; ++row) {
    ECPIPE_ASSIGN_OR_RETURN(const bool more, query.Step());
    if (!more) return absl::OkStatus();
    if (row == kMaxRows || query.Int(0) != static_cast<int64_t>(row)) {
      return absl::DataLossError("a block of it is missing or too many");
    }
    for (const auto& [column, list] : {std::pair(1, &record->block_ids), {2, &record->hosts}}) {
      if (query.IsNull(column)) continue;
      if (list->size() < row) return absl::DataLossError("a list of it has a gap");
      list->emplace_back(query.Bytes(column));
    }
    if (query.Int(3) != 0) record->moved.push_back(static_cast<Row>(row));
  }
}

absl::Status DecodeFields(SqliteDb* db, const SqliteStatement& row, RepairRecord* record) {
  record->repair_id = static_cast<RepairId>(row.Int(0));
  ECPIPE_ASSIGN_OR_RETURN(record->attempt, row.Uint32(1, UINT32_MAX));
  record->offset = static_cast<uint64_t>(row.Int(2));
  record->bytes = static_cast<uint64_t>(row.Int(3));
  record->scheme = row.Bytes(4);
  record->transport = row.Bytes(5);
  record->requestor = row.Bytes(6);
  record->recovery_id = static_cast<RecoveryId>(row.Int(7));
  ECPIPE_ASSIGN_OR_RETURN(record->state, NamedIn(kRepairStates, RepairStateName, row.Bytes(8)));
  record->started_unix_ms = row.Int(9);
  record->ended_unix_ms = row.Int(10);
  record->detail = row.Bytes(11);
  ECPIPE_RETURN_IF_ERROR(LoadBlocks(db, record));
  return AsDamage(CheckRepair(*record));
}

absl::StatusOr<RepairRecord> DecodeRepair(SqliteDb* db, const SqliteStatement& row) {
  RepairRecord record;
  const absl::Status decoded = DecodeFields(db, row, &record);
  if (decoded.ok()) return record;
  return Annotate(decoded, "journal record of repair " + RepairIdText(record.repair_id));
}

absl::StatusOr<std::vector<RepairRecord>> DecodeAll(SqliteDb* db, SqliteStatement* query) {
  std::vector<RepairRecord> records;
  while (true) {
    ECPIPE_ASSIGN_OR_RETURN(const bool more, query->Step());
    if (!more) return records;
    absl::StatusOr<RepairRecord> record = DecodeRepair(db, *query);
    if (record.ok()) {
      records.push_back(*std::move(record));
    } else if (absl::IsDataLoss(record.status())) {
      LogBadRow("repair " + RepairIdText(static_cast<RepairId>(query->Int(0))), record.status());
    } else {
      return record.status();
    }
  }
}

absl::StatusOr<std::vector<RepairRecord>> LoadNewest(SqliteDb* db, const char* sql, int limit) {
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement query, db->Prepare(sql));
  query.Bind(1, limit);
  return DecodeAll(db, &query);
}

absl::Status RunFor(SqliteDb* db, const char* sql, int64_t parameter) {
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement statement, db->Prepare(sql));
  statement.Bind(1, parameter);
  return statement.Execute();
}

}  // namespace

absl::Status CheckRepair(const RepairRecord& record) {
  if (std::max(record.block_ids.size(), record.hosts.size()) > kMaxRows) {
    return absl::InvalidArgumentError("the repair has " + std::to_string(record.block_ids.size()) +
                                      " blocks and " + std::to_string(record.hosts.size()) +
                                      " nodes that store them, but at most " +
                                      std::to_string(kMaxRows) + " can be repaired at once");
  }
  for (const std::string& id : record.block_ids) {
    ECPIPE_RETURN_IF_ERROR(CheckName("a block of it", id));
  }
  for (const std::string& node : record.hosts) {
    ECPIPE_RETURN_IF_ERROR(CheckName("a node that stores blocks", node));
  }
  for (const Row row : record.moved) {
    if (row < record.hosts.size()) continue;
    return absl::InvalidArgumentError("row " + std::to_string(row) +
                                      " of it was moved, but no node stores it");
  }
  for (const std::string* text :
       {&record.scheme, &record.transport, &record.requestor, &record.detail}) {
    if (text->size() <= SqliteJournal::kMaxTextBytes) continue;
    return absl::InvalidArgumentError("a text of it has " + std::to_string(text->size()) +
                                      " bytes, but at most " +
                                      std::to_string(SqliteJournal::kMaxTextBytes) + " are kept");
  }
  return absl::OkStatus();
}

absl::Status StoreRepair(SqliteDb* db, const RepairRecord& whole) {
  const RepairRecord record = Cut(whole);
  ECPIPE_RETURN_IF_ERROR(CheckRepair(record));
  const auto repair_id = static_cast<int64_t>(record.repair_id);
  ECPIPE_RETURN_IF_ERROR(RunFor(db, "DELETE FROM repairs WHERE repair_id = ?1", repair_id));
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement store, db->Prepare(kStoreRepair));
  store.Bind(1, repair_id);
  store.Bind(2, record.attempt);
  store.Bind(3, static_cast<int64_t>(record.offset));
  store.Bind(4, static_cast<int64_t>(record.bytes));
  store.BindText(5, record.scheme);
  store.BindText(6, record.transport);
  store.BindText(7, record.requestor);
  store.Bind(8, static_cast<int64_t>(record.recovery_id));
  store.BindText(9, RepairStateName(record.state));
  store.Bind(10, record.started_unix_ms);
  store.Bind(11, record.ended_unix_ms);
  store.BindText(12, record.detail);
  ECPIPE_RETURN_IF_ERROR(store.Execute());
  return StoreRepairBlocks(db, record);
}

absl::Status StoreRepairBlocks(SqliteDb* db, const RepairRecord& record) {
  const auto repair_id = static_cast<int64_t>(record.repair_id);
  ECPIPE_RETURN_IF_ERROR(RunFor(db, "DELETE FROM repair_blocks WHERE repair_id = ?1", repair_id));
  ECPIPE_ASSIGN_OR_RETURN(
      SqliteStatement store,
      db->Prepare("INSERT INTO repair_blocks(repair_id, position, block_id, host, moved)"
                  " VALUES(?1, ?2, ?3, ?4, ?5)"));
  const auto bind = [&](int parameter, const std::vector<std::string>& ids, size_t i) {
    i < ids.size() ? store.BindText(parameter, ids[i]) : store.BindNull(parameter);
  };
  for (size_t i = 0; i < std::max(record.block_ids.size(), record.hosts.size()); ++i) {
    store.Bind(1, repair_id);
    store.Bind(2, static_cast<int64_t>(i));
    bind(3, record.block_ids, i);
    bind(4, record.hosts, i);
    store.Bind(5, std::count(record.moved.begin(), record.moved.end(), i) == 0 ? 0 : 1);
    ECPIPE_RETURN_IF_ERROR(store.Execute());
  }
  return absl::OkStatus();
}

absl::StatusOr<RepairRecord> LoadRepair(SqliteDb* db, RepairId repair_id) {
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement query, db->Prepare(kSelectOne));
  query.Bind(1, static_cast<int64_t>(repair_id));
  ECPIPE_ASSIGN_OR_RETURN(const bool found, query.Step());
  if (found) return DecodeRepair(db, query);
  return absl::NotFoundError("the journal has no repair " + RepairIdText(repair_id));
}

absl::StatusOr<std::vector<RepairRecord>> LoadRecentRepairs(SqliteDb* db, int limit) {
  ECPIPE_ASSIGN_OR_RETURN(std::vector<RepairRecord> recent, LoadNewest(db, kNewestRunning, limit));
  const int left = limit - static_cast<int>(recent.size());
  ECPIPE_ASSIGN_OR_RETURN(std::vector<RepairRecord> ended, LoadEndedRepairs(db, left));
  std::move(ended.begin(), ended.end(), std::back_inserter(recent));
  return recent;
}

absl::StatusOr<std::vector<RepairRecord>> LoadEndedRepairs(SqliteDb* db, int limit) {
  return LoadNewest(db, kNewestEnded, limit);
}

absl::StatusOr<std::vector<RepairRecord>> InterruptRepairs(SqliteDb* db, int64_t now_unix_ms) {
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement query, db->Prepare(kSelectRunning));
  ECPIPE_ASSIGN_OR_RETURN(std::vector<RepairRecord> records, DecodeAll(db, &query));
  query.Reset();
  ECPIPE_RETURN_IF_ERROR(RunFor(db, kInterrupt, now_unix_ms));
  for (RepairRecord& record : records) {
    record.state = RepairState::kInterrupted;
    record.ended_unix_ms = now_unix_ms;
  }
  return records;
}

absl::Status TrimRepairs(SqliteDb* db, int keep) {
  ECPIPE_RETURN_IF_ERROR(
      RunFor(db, "DELETE FROM repair_blocks WHERE repair_id IN " ECPIPE_OLD_REPAIRS, keep));
  return RunFor(db, "DELETE FROM repairs WHERE repair_id IN " ECPIPE_OLD_REPAIRS, keep);
}

}  // namespace ecpipe
