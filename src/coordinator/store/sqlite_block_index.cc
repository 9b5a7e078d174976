// SPDX-License-Identifier: Apache-2.0
#include "coordinator/store/sqlite_block_index.h"

#include <algorithm>

#include "base/status.h"

namespace ecpipe {

namespace {

// In the order of the tree, so that neighbours meet the same page while it is in the cache.
bool TreeOrder(const BlockIndexEntry& a, const BlockIndexEntry& b) {
  const int64_t a_hash = StoredHash(a.hash);
  const int64_t b_hash = StoredHash(b.hash);
  return a_hash != b_hash ? a_hash < b_hash : a.stripe < b.stripe;
}

void Bind(SqliteStatement* statement, const BlockIndexEntry& entry) {
  statement->Bind(1, StoredHash(entry.hash));
  statement->Bind(2, entry.stripe);
}

absl::Status AddToRecentCount(SqliteDb* db, int64_t change) {
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement update,
                          db->Prepare("UPDATE totals SET recent = recent + ?1"));
  update.Bind(1, change);
  return update.Execute();
}

absl::StatusOr<int64_t> RecentCount(SqliteDb* db) {
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement query, db->Prepare("SELECT recent FROM totals"));
  ECPIPE_ASSIGN_OR_RETURN(const bool found, query.Step());
  if (!found) {
    return absl::DataLossError(db->path() +
                               ": the table of totals is empty, so the database is damaged");
  }
  return query.Int(0);
}

constexpr char kRunEnd[] =
    "SELECT hash FROM block_index_recent WHERE hash >= ?1 ORDER BY hash LIMIT 1 OFFSET ?2";
// OR IGNORE: a pair in both trees cannot come about, but it would do no harm either.
constexpr char kCopyRun[] =
    "INSERT OR IGNORE INTO block_index(hash, stripe) SELECT hash, stripe FROM block_index_recent"
    " WHERE hash >= ?1 AND hash <= ?2 ORDER BY hash, stripe";
constexpr char kDropRun[] = "DELETE FROM block_index_recent WHERE hash >= ?1 AND hash <= ?2";

}  // namespace

absl::Status SqliteBlockIndex::MoveOld(SqliteDb* db) {
  ECPIPE_ASSIGN_OR_RETURN(int64_t recent, RecentCount(db));
  // So many runs go once round all that is there, with a short one at the end and at the start. The
  // bound keeps a wrong count in a damaged file from holding us here.
  for (int64_t runs_left = recent / kMoveEntries + 2; runs_left > 0; --runs_left) {
    if (recent <= recent_limit_) break;
    ECPIPE_RETURN_IF_ERROR(Annotate(MoveRun(db), "move index entries"));
    ECPIPE_ASSIGN_OR_RETURN(recent, RecentCount(db));
  }
  return absl::OkStatus();
}

absl::Status SqliteBlockIndex::MoveRun(SqliteDb* db) {
  ECPIPE_ASSIGN_OR_RETURN(SqliteTransaction transaction, SqliteTransaction::Begin(db));
  int64_t last_hash = INT64_MAX;
  {
    ECPIPE_ASSIGN_OR_RETURN(SqliteStatement end, db->Prepare(kRunEnd));
    end.Bind(1, next_hash_);
    end.Bind(2, kMoveEntries - 1);
    ECPIPE_ASSIGN_OR_RETURN(const bool found, end.Step());
    if (found) last_hash = end.Int(0);
  }
  for (const char* sql : {kCopyRun, kDropRun}) {
    ECPIPE_ASSIGN_OR_RETURN(SqliteStatement run, db->Prepare(sql));
    run.Bind(1, next_hash_);
    run.Bind(2, last_hash);
    ECPIPE_RETURN_IF_ERROR(run.Execute());
  }
  // The last statement was the deletion. A round that has reached the end may have moved nothing.
  ECPIPE_RETURN_IF_ERROR(AddToRecentCount(db, -db->changed_rows()));
  ECPIPE_RETURN_IF_ERROR(transaction.Commit());
  next_hash_ = last_hash == INT64_MAX ? INT64_MIN : last_hash + 1;
  return absl::OkStatus();
}

absl::Status SqliteBlockIndex::Add(SqliteDb* db, std::vector<BlockIndexEntry> entries) {
  std::sort(entries.begin(), entries.end(), TreeOrder);
  ECPIPE_ASSIGN_OR_RETURN(
      SqliteStatement insert,
      db->Prepare("INSERT OR IGNORE INTO block_index_recent(hash, stripe) VALUES(?1, ?2)"));
  int64_t added = 0;
  for (const BlockIndexEntry& entry : entries) {
    Bind(&insert, entry);
    ECPIPE_RETURN_IF_ERROR(insert.Execute());
    added += db->changed_rows();
  }
  return AddToRecentCount(db, added);
}

absl::Status SqliteBlockIndex::Remove(SqliteDb* db, std::vector<BlockIndexEntry> entries) {
  std::sort(entries.begin(), entries.end(), TreeOrder);
  ECPIPE_ASSIGN_OR_RETURN(
      SqliteStatement from_recent,
      db->Prepare("DELETE FROM block_index_recent WHERE hash = ?1 AND stripe = ?2"));
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement from_main,
                          db->Prepare("DELETE FROM block_index WHERE hash = ?1 AND stripe = ?2"));
  int64_t recent_removed = 0;
  for (const BlockIndexEntry& entry : entries) {
    Bind(&from_recent, entry);
    ECPIPE_RETURN_IF_ERROR(from_recent.Execute());
    if (db->changed_rows() != 0) {
      ++recent_removed;
      continue;
    }
    Bind(&from_main, entry);
    ECPIPE_RETURN_IF_ERROR(from_main.Execute());
  }
  return AddToRecentCount(db, -recent_removed);
}

}  // namespace ecpipe
