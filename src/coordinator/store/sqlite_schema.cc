// SPDX-License-Identifier: Apache-2.0
#include "coordinator/store/sqlite_schema.h"

#include "base/process/log.h"
#include "base/status.h"
#include "coordinator/store/state_copy.h"

namespace ecpipe {

namespace {

// "ecpi": file(1) and we tell our databases from those of others by it.
constexpr int64_t kApplicationId = 0x65637069;

// stripes, blocks  a stripe and its n blocks; crc32c is told in sqlite_stripes.h, sha256 may be
//                  empty. Numbers stand for stripes and nodes in other tables.
// repairs          the journal; rows of repair_blocks are the failed blocks with the nodes that
//                  store them, and whether that has happened.
// recoveries       one row a recovery of a node, with the nodes that it may store blocks on.
// limits           what operators have set; the limits of the cluster have an empty node.
// lost_nodes, lost_blocks  what dead nodes had; see sqlite_losses.h.
constexpr const char* kTables = R"sql(
CREATE TABLE nodes(node INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE stripes(
  stripe INTEGER PRIMARY KEY, stripe_id TEXT NOT NULL UNIQUE, code TEXT NOT NULL,
  block_bytes BIGINT NOT NULL, crc32c BIGINT NOT NULL);
CREATE TABLE blocks(
  stripe INTEGER NOT NULL REFERENCES stripes(stripe), position INTEGER NOT NULL,
  block_id TEXT NOT NULL, node INTEGER NOT NULL REFERENCES nodes(node), sha256 TEXT NOT NULL,
  PRIMARY KEY(stripe, position)) WITHOUT ROWID;
CREATE TABLE repairs(
  repair_id BIGINT PRIMARY KEY, attempt BIGINT NOT NULL, first_byte BIGINT NOT NULL,
  bytes BIGINT NOT NULL, scheme TEXT NOT NULL, transport TEXT NOT NULL, requestor TEXT NOT NULL,
  recovery_id BIGINT NOT NULL, state TEXT NOT NULL, started_unix_ms BIGINT NOT NULL,
  ended_unix_ms BIGINT NOT NULL, detail TEXT NOT NULL);
CREATE TABLE repair_blocks(
  repair_id BIGINT NOT NULL REFERENCES repairs(repair_id), position INTEGER NOT NULL,
  block_id TEXT, host TEXT, moved INTEGER NOT NULL, PRIMARY KEY(repair_id, position));
CREATE TABLE recoveries(
  recovery_id BIGINT PRIMARY KEY, node TEXT NOT NULL, scheme TEXT NOT NULL, policy TEXT NOT NULL,
  slice_bytes BIGINT NOT NULL, transport TEXT NOT NULL, streams_per_node BIGINT NOT NULL,
  state TEXT NOT NULL, blocks BIGINT NOT NULL, bytes BIGINT NOT NULL, done_blocks BIGINT NOT NULL,
  done_bytes BIGINT NOT NULL, failed_blocks BIGINT NOT NULL, started_unix_ms BIGINT NOT NULL,
  ended_unix_ms BIGINT NOT NULL, rebuild_after_unix_ms BIGINT NOT NULL,
  kind TEXT NOT NULL DEFAULT 'rebuild', keeps_out INTEGER NOT NULL DEFAULT 0);
CREATE TABLE recovery_targets(
  recovery_id BIGINT NOT NULL REFERENCES recoveries(recovery_id), position INTEGER NOT NULL,
  node TEXT NOT NULL, PRIMARY KEY(recovery_id, position));
CREATE TABLE lost_nodes(
  node TEXT PRIMARY KEY, rack TEXT NOT NULL, control_address TEXT NOT NULL,
  data_address TEXT NOT NULL, storage_id TEXT NOT NULL, heard_unix_ms INTEGER NOT NULL);
CREATE TABLE lost_blocks(
  node TEXT NOT NULL, pool TEXT NOT NULL, blocks BLOB NOT NULL, PRIMARY KEY(node, pool));
CREATE TABLE limits(
  node TEXT NOT NULL, name TEXT NOT NULL, value DOUBLE PRECISION NOT NULL,
  PRIMARY KEY(node, name));
CREATE UNIQUE INDEX blocks_by_id ON blocks(block_id);
CREATE INDEX blocks_by_node ON blocks(node, stripe);
CREATE INDEX repairs_by_start ON repairs(started_unix_ms, state);
)sql";

absl::StatusOr<int64_t> QueryInt(SqliteDb* db, const char* sql) {
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement query, db->Prepare(sql));
  ECPIPE_ASSIGN_OR_RETURN(const bool found, query.Step());
  return found ? query.Int(0) : 0;
}

absl::Status Foreign(const SqliteDb& db) {
  return absl::FailedPreconditionError(
      db.path() + " is a database of another program; set another data_directory");
}

absl::Status SetVersion(SqliteDb* db, int version) {
  const std::string marks = "PRAGMA application_id = " + std::to_string(kApplicationId) +
                            "; PRAGMA user_version = " + std::to_string(version);
  return db->Run(marks.c_str());
}

bool Upgradable(int64_t owner, int64_t version, const SchemaUpgrades& upgrades) {
  return owner == kApplicationId && version >= 1 &&
         version <= static_cast<int64_t>(upgrades.size());
}

// Nobody else changes the file: a coordinator is the only one that has it open.
absl::Status KeepIfOld(SqliteDb* db, const SchemaUpgrades& upgrades) {
  ECPIPE_ASSIGN_OR_RETURN(const int64_t owner, QueryInt(db, "PRAGMA application_id"));
  ECPIPE_ASSIGN_OR_RETURN(const int64_t version, QueryInt(db, "PRAGMA user_version"));
  if (!Upgradable(owner, version, upgrades)) return absl::OkStatus();
  return Annotate(KeepOldVersion(db, VersionAfter(upgrades)),
                  "keep a copy of version " + std::to_string(version) + " before its upgrade");
}

absl::Status Upgrade(SqliteDb* db, int64_t version, const SchemaUpgrades& upgrades) {
  Log(LogLevel::kInfo, "upgrade.begin",
      {{"file", db->path()}, {"version", std::to_string(version)}});
  for (auto step = static_cast<size_t>(version) - 1; step < upgrades.size(); ++step) {
    ECPIPE_RETURN_IF_ERROR(db->Run(upgrades[step]));
  }
  ECPIPE_RETURN_IF_ERROR(SetVersion(db, VersionAfter(upgrades)));
  Log(LogLevel::kInfo, "upgrade.end", {{"file", db->path()}});
  return absl::OkStatus();
}

absl::Status CreateOrUpgrade(SqliteDb* db, const SchemaUpgrades& upgrades) {
  ECPIPE_ASSIGN_OR_RETURN(const int64_t owner, QueryInt(db, "PRAGMA application_id"));
  ECPIPE_ASSIGN_OR_RETURN(const int64_t version, QueryInt(db, "PRAGMA user_version"));
  if (owner == 0 && version == 0) {
    ECPIPE_ASSIGN_OR_RETURN(const int64_t tables,
                            QueryInt(db, "SELECT count(*) FROM sqlite_schema"));
    if (tables != 0) return Foreign(*db);
    ECPIPE_RETURN_IF_ERROR(db->Run(kTables));
    return SetVersion(db, VersionAfter(upgrades));
  }
  if (owner != kApplicationId) return Foreign(*db);
  if (version == VersionAfter(upgrades)) return absl::OkStatus();
  if (Upgradable(owner, version, upgrades)) {
    return Annotate(Upgrade(db, version, upgrades),
                    "upgrade it from version " + std::to_string(version));
  }
  return absl::FailedPreconditionError(db->path() + " has schema version " +
                                       std::to_string(version) + ", but this program knows only " +
                                       std::to_string(VersionAfter(upgrades)) +
                                       "; run the version of ecpipe that wrote it");
}

}  // namespace

absl::Status EnsureSchema(const std::string& path, const SchemaUpgrades& upgrades) {
  ECPIPE_ASSIGN_OR_RETURN(std::unique_ptr<SqliteDb> db,
                          SqliteDb::Open(path, {.cache_kib = 64 << 10}));
  ECPIPE_RETURN_IF_ERROR(KeepIfOld(db.get(), upgrades));
  // An upgrade may sort the ids of all blocks, which may be more than fits the memory.
  ECPIPE_RETURN_IF_ERROR(db->Run("PRAGMA temp_store = FILE"));
  ECPIPE_ASSIGN_OR_RETURN(SqliteTransaction transaction, SqliteTransaction::Begin(db.get()));
  ECPIPE_RETURN_IF_ERROR(CreateOrUpgrade(db.get(), upgrades));
  return transaction.Commit();
}

}  // namespace ecpipe
