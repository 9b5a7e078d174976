// SPDX-License-Identifier: Apache-2.0
#include "coordinator/store/sqlite_schema.h"

#include "base/status.h"

namespace ecpipe {

namespace {

// "ecpi": file(1) and we tell our databases from those of others by it.
constexpr int64_t kApplicationId = 0x65637069;

// stripes       one row a stripe; `members` is written by stripe_record.h.
// nodes, codes  names, so that a stripe holds small numbers instead.
// block_index   (hash of a block id, row of a stripe that holds it); see sqlite_block_index.h.
// totals        one row of counts, which save counting millions of rows.
// repairs       the journal; repairs_by_start serves Recent and Trim without touching the table.
// recoveries    one row a recovery of a node.
// lost_nodes, lost_blocks  what dead nodes had; see sqlite_losses.h.
constexpr const char* kCreateTables = R"sql(
CREATE TABLE stripes(
  row INTEGER PRIMARY KEY, stripe_id TEXT NOT NULL UNIQUE, code INTEGER NOT NULL,
  block_bytes INTEGER NOT NULL, members BLOB NOT NULL);
CREATE TABLE nodes(ref INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE codes(ref INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE block_index(
  hash INTEGER NOT NULL, stripe INTEGER NOT NULL, PRIMARY KEY(hash, stripe)) WITHOUT ROWID;
CREATE TABLE block_index_recent(
  hash INTEGER NOT NULL, stripe INTEGER NOT NULL, PRIMARY KEY(hash, stripe)) WITHOUT ROWID;
CREATE TABLE totals(
  one INTEGER PRIMARY KEY CHECK(one = 1), stripes INTEGER NOT NULL, recent INTEGER NOT NULL);
INSERT INTO totals VALUES(1, 0, 0);
CREATE TABLE repairs(
  repair_id INTEGER PRIMARY KEY, attempt INTEGER NOT NULL, block_ids BLOB NOT NULL,
  first_byte INTEGER NOT NULL, bytes INTEGER NOT NULL, scheme TEXT NOT NULL,
  transport TEXT NOT NULL, requestor TEXT NOT NULL, hosts BLOB NOT NULL, moved BLOB NOT NULL,
  recovery_id INTEGER NOT NULL, state INTEGER NOT NULL,
  started_unix_ms INTEGER NOT NULL, ended_unix_ms INTEGER NOT NULL, detail TEXT NOT NULL);
CREATE INDEX repairs_by_start ON repairs(started_unix_ms, state);
CREATE TABLE recoveries(
  recovery_id INTEGER PRIMARY KEY, node TEXT NOT NULL, targets BLOB NOT NULL,
  scheme TEXT NOT NULL, policy INTEGER NOT NULL, slice_bytes INTEGER NOT NULL,
  transport INTEGER NOT NULL, streams_per_node INTEGER NOT NULL, state INTEGER NOT NULL,
  blocks INTEGER NOT NULL, bytes INTEGER NOT NULL, done_blocks INTEGER NOT NULL,
  done_bytes INTEGER NOT NULL, failed_blocks INTEGER NOT NULL,
  started_unix_ms INTEGER NOT NULL, ended_unix_ms INTEGER NOT NULL,
  rebuild_after_unix_ms INTEGER NOT NULL DEFAULT 0);
)sql";

constexpr const char* kCreateLosses = R"sql(
CREATE TABLE IF NOT EXISTS lost_nodes(
  node TEXT PRIMARY KEY, rack TEXT NOT NULL, control_address TEXT NOT NULL,
  data_address TEXT NOT NULL, storage_id TEXT NOT NULL, heard_unix_ms INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS lost_blocks(
  node TEXT NOT NULL, pool TEXT NOT NULL, blocks BLOB NOT NULL, PRIMARY KEY(node, pool));
)sql";

// Version 2 had one host, as text. An id over 127 bytes, which this cannot pack, is dropped: that
// repair counts as a requestor's.
constexpr const char* kUpgradeFrom2 = R"sql(
ALTER TABLE repairs RENAME COLUMN host TO hosts;
ALTER TABLE repairs ADD COLUMN moved BLOB NOT NULL DEFAULT x'';
UPDATE repairs SET hosts = CASE
  WHEN length(CAST(hosts AS BLOB)) BETWEEN 1 AND 127
  THEN CAST(char(length(CAST(hosts AS BLOB))) || hosts AS BLOB) ELSE x'' END;
)sql";

constexpr const char* kUpgradeFrom3 = R"sql(
ALTER TABLE recoveries ADD COLUMN rebuild_after_unix_ms INTEGER NOT NULL DEFAULT 0;
)sql";

// Version 5 only told older programs that members may be of their second format.

absl::StatusOr<int64_t> QueryInt(SqliteDb* db, const char* sql) {
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement query, db->Prepare(sql));
  ECPIPE_ASSIGN_OR_RETURN(const bool found, query.Step());
  return found ? query.Int(0) : 0;
}

absl::Status SetVersion(SqliteDb* db) {
  const std::string marks = "PRAGMA application_id = " + std::to_string(kApplicationId) +
                            "; PRAGMA user_version = " + std::to_string(kSqliteSchemaVersion);
  return db->Run(marks.c_str());
}

absl::Status Create(SqliteDb* db) {
  ECPIPE_ASSIGN_OR_RETURN(const int64_t tables, QueryInt(db, "SELECT count(*) FROM sqlite_schema"));
  if (tables != 0) {
    return absl::FailedPreconditionError(
        db->path() + " is a database of another program; set another data_directory");
  }
  ECPIPE_RETURN_IF_ERROR(db->Run(kCreateTables));
  ECPIPE_RETURN_IF_ERROR(db->Run(kCreateLosses));
  return SetVersion(db);
}

}  // namespace

absl::Status EnsureSchema(const std::string& path) {
  ECPIPE_ASSIGN_OR_RETURN(std::unique_ptr<SqliteDb> db, SqliteDb::Open(path, {}));
  ECPIPE_ASSIGN_OR_RETURN(SqliteTransaction transaction, SqliteTransaction::Begin(db.get()));
  ECPIPE_ASSIGN_OR_RETURN(const int64_t owner, QueryInt(db.get(), "PRAGMA application_id"));
  ECPIPE_ASSIGN_OR_RETURN(const int64_t version, QueryInt(db.get(), "PRAGMA user_version"));
  if (owner == 0 && version == 0) {
    ECPIPE_RETURN_IF_ERROR(Create(db.get()));
    return transaction.Commit();
  }
  if (owner != kApplicationId) {
    return absl::FailedPreconditionError(
        path + " is a database of another program; set another data_directory");
  }
  if (version == kSqliteSchemaVersion) return absl::OkStatus();
  if (version >= 2 && version < kSqliteSchemaVersion) {
    if (version == 2) ECPIPE_RETURN_IF_ERROR(db->Run(kUpgradeFrom2));
    if (version <= 3) ECPIPE_RETURN_IF_ERROR(db->Run(kUpgradeFrom3));
    ECPIPE_RETURN_IF_ERROR(db->Run(kCreateLosses));
    ECPIPE_RETURN_IF_ERROR(SetVersion(db.get()));
    return transaction.Commit();
  }
  return absl::FailedPreconditionError(
      path + " has schema version " + std::to_string(version) + ", but this program knows only " +
      std::to_string(kSqliteSchemaVersion) + "; run the version of ecpipe that wrote it");
}

}  // namespace ecpipe
