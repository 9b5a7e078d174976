// SPDX-License-Identifier: Apache-2.0
// The index from block ids to stripes, as pairs (hash of the block id, row of the stripe).
//
// Hashes are spread evenly, so a batch of new pairs falls on as many pages of a large tree as it
// has pairs, and a bulk load would rewrite the whole tree once a batch. New pairs therefore go into
// a small tree, `recent`; when it is over its limit, runs of neighbouring pairs move from it into
// the main tree, going round and round over the hashes. A run meets few pages, and each page is
// rewritten once a round. A look-up costs one more descent, in a tree that stays in the page cache.
// A load of a million stripes of 14 blocks writes 7 GB to the disk, 21 GB without it.
//
// This class writes the two trees; SqliteCatalog looks up in both with a statement of its own. Not
// thread-safe: who holds the catalog's one writing connection uses it. Add and Remove run inside
// the caller's transaction, MoveOld outside of any.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/store/sqlite_db.h"

namespace ecpipe {

struct BlockIndexEntry {
  uint32_t hash = 0;
  int64_t stripe = 0;

  friend auto operator<=>(const BlockIndexEntry&, const BlockIndexEntry&) = default;
};

class SqliteBlockIndex {
 public:
  // Pairs that move in one transaction: some 100 ms. Nobody waits for that but other writers of the
  // catalog, which wait for the whole Put anyway; the journal is a database of its own.
  static constexpr int64_t kMoveEntries = 100'000;

  // `recent_limit`: pairs in the recent tree. 13 bytes each before B-tree slack.
  explicit SqliteBlockIndex(int64_t recent_limit) : recent_limit_(recent_limit) {}

  // Moves pairs to the main tree, in transactions of its own, until recent is within its limit.
  absl::Status MoveOld(SqliteDb* db);

  // Adds pairs that are not there yet; those that are there are left alone.
  absl::Status Add(SqliteDb* db, std::vector<BlockIndexEntry> entries);
  // Removes pairs; those that are not there are ignored.
  absl::Status Remove(SqliteDb* db, std::vector<BlockIndexEntry> entries);

 private:
  absl::Status MoveRun(SqliteDb* db);

  const int64_t recent_limit_;
  int64_t next_hash_ = INT64_MIN;  // where the round goes on; as stored
};

// How a hash is stored: as a signed number, which SQLite keeps in 4 bytes where an unsigned one
// takes 6.
inline int64_t StoredHash(uint32_t hash) { return static_cast<int32_t>(hash); }

}  // namespace ecpipe
