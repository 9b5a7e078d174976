// SPDX-License-Identifier: Apache-2.0
#include "coordinator/store/sqlite_marks.h"

#include "base/status.h"
#include "coordinator/store/sqlite_schema.h"

namespace ecpipe {
namespace {

constexpr char kTable[] =
    "CREATE TABLE IF NOT EXISTS marks("
    " block_id TEXT NOT NULL, node TEXT NOT NULL, reason TEXT NOT NULL,"
    " found_unix_ms BIGINT NOT NULL, suspect INTEGER NOT NULL, PRIMARY KEY(block_id, node))";

// An earlier version had a table with one mark a block.
absl::Status TakeOverEarlierTable(SqliteDb* db) {
  {
    ECPIPE_ASSIGN_OR_RETURN(
        SqliteStatement query,
        db->Prepare("SELECT 1 FROM sqlite_schema WHERE name = 'corrupt_blocks'"));
    ECPIPE_ASSIGN_OR_RETURN(const bool there, query.Step());
    if (!there) return absl::OkStatus();
  }
  ECPIPE_ASSIGN_OR_RETURN(SqliteTransaction transaction, SqliteTransaction::Begin(db));
  ECPIPE_RETURN_IF_ERROR(
      db->Run("INSERT OR IGNORE INTO marks SELECT block_id, node, reason, found_unix_ms, suspect"
              " FROM corrupt_blocks; DROP TABLE corrupt_blocks"));
  return transaction.Commit();
}

}  // namespace

absl::StatusOr<std::unique_ptr<SqliteMarks>> SqliteMarks::Open(const std::string& path) {
  ECPIPE_RETURN_IF_ERROR(EnsureSchema(path));
  std::unique_ptr<SqliteMarks> marks(new SqliteMarks);
  ECPIPE_ASSIGN_OR_RETURN(marks->connection_,
                          SqlitePool::Open(path, {.sync = CommitSync::kPowerSafe}, 1));
  {
    const SqlitePool::Lease db = marks->connection_->Take();
    ECPIPE_RETURN_IF_ERROR(db->Run(kTable));
    ECPIPE_RETURN_IF_ERROR(TakeOverEarlierTable(db.get()));
  }
  return marks;
}

absl::Status SqliteMarks::Keep(const CorruptBlock& block) {
  const SqlitePool::Lease db = connection_->Take();
  ECPIPE_ASSIGN_OR_RETURN(
      SqliteStatement keep,
      db->Prepare("INSERT OR REPLACE INTO marks(block_id, node, reason, found_unix_ms,"
                  " suspect) VALUES(?1, ?2, ?3, ?4, ?5)"));
  keep.BindText(1, block.block_id);
  keep.BindText(2, block.node);
  keep.BindText(3, block.reason);
  keep.Bind(4, block.found_unix_ms);
  keep.Bind(5, block.suspect ? 1 : 0);
  return keep.Execute();
}

absl::Status SqliteMarks::Forget(const std::string& block_id, const std::string& node) {
  const SqlitePool::Lease db = connection_->Take();
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement forget,
                          db->Prepare("DELETE FROM marks WHERE block_id = ?1 AND node = ?2"));
  forget.BindText(1, block_id);
  forget.BindText(2, node);
  return forget.Execute();
}

absl::StatusOr<std::vector<CorruptBlock>> SqliteMarks::Load() {
  const SqlitePool::Lease db = connection_->Take();
  ECPIPE_ASSIGN_OR_RETURN(
      SqliteStatement query,
      db->Prepare("SELECT block_id, node, reason, found_unix_ms, suspect FROM marks"
                  " ORDER BY found_unix_ms, block_id, node"));
  std::vector<CorruptBlock> kept;
  while (true) {
    ECPIPE_ASSIGN_OR_RETURN(const bool more, query.Step());
    if (!more) return kept;
    kept.push_back({std::string(query.Bytes(0)), std::string(query.Bytes(1)),
                    std::string(query.Bytes(2)), query.Int(3), query.Int(4) != 0, "", 0});
  }
}

}  // namespace ecpipe
