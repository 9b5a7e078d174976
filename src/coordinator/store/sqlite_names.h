// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "coordinator/store/sqlite_db.h"

namespace ecpipe {

// A table of names (nodes or codes) to which stripes refer by a small number. Names are never
// removed or renamed, so all of them are kept in memory. Thread-safe once loaded.
class SqliteNames {
 public:
  // Ten times the nodes that a coordinator may have live, so that nodes can come and go for years.
  // It bounds the memory of the cache.
  static constexpr int64_t kMaxNames = 100'000;

  enum class Table { kNodes, kCodes };
  explicit SqliteNames(Table table) : table_(table) {}

  // Reads all names; call it before any other use.
  absl::Status Load(SqliteDb* db);

  // DATA_LOSS when no name has this number.
  absl::StatusOr<std::string> Name(SqliteDb* db, int64_t ref);

  // Numbers for the names of one write transaction. What it adds is kept only by Publish, since a
  // rollback frees the numbers for other names.
  class Writer {
   public:
    Writer(SqliteNames* names, SqliteDb* db) : names_(names), db_(db) {}
    // The number of a name, which is added when it is new. RESOURCE_EXHAUSTED past kMaxNames.
    absl::StatusOr<uint32_t> Ref(const std::string& name);
    // Call once the transaction is committed.
    void Publish();

   private:
    absl::StatusOr<uint32_t> ReadOrAdd(const std::string& name);

    SqliteNames* names_;
    SqliteDb* db_;
    std::unordered_map<std::string, uint32_t> refs_;  // asked for in this transaction
  };

 private:
  const Table table_;
  Mutex mutex_;
  std::unordered_map<int64_t, std::string> names_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ecpipe
