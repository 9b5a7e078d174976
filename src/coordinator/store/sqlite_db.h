// SPDX-License-Identifier: Apache-2.0
// SQLite behind a thin RAII wrapper; sqlite_db.cc is the one file that includes sqlite3.h.
//
// Every database is in WAL mode: readers never wait for the writer, and a crash of the process at
// any point leaves the last committed state. What a power cut may take is the choice of CommitSync.
//
// Errors: UNAVAILABLE when another connection kept the lock past the timeout (nothing was done, try
// again), RESOURCE_EXHAUSTED for a full disk, PERMISSION_DENIED for a file that may not be written,
// DATA_LOSS for a damaged file or one that is no database, ALREADY_EXISTS for a row whose key
// another row has, INTERNAL for anything else, and UNKNOWN from Commit alone: the disk failed while
// the transaction was being made durable.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"

struct sqlite3;
struct sqlite3_stmt;

namespace ecpipe {

enum class CommitSync {
  kPowerSafe,    // fsync in every commit: a commit that returned survives a power cut
  kProcessSafe,  // fsync in checkpoints only: a power cut may undo the latest commits, in whole
                 // transactions and newest first; the file stays consistent
};

class SqliteStatement;

// One connection. Used by one thread at a time; SqlitePool shares them out.
class SqliteDb {
 public:
  struct Options {
    CommitSync sync = CommitSync::kPowerSafe;
    Duration lock_timeout = std::chrono::seconds(30);
    int cache_kib = 2048;  // upper bound of this connection's page cache
  };

  // Opens or creates the file and puts it into WAL mode.
  static absl::StatusOr<std::unique_ptr<SqliteDb>> Open(const std::string& path,
                                                        const Options& options);
  // All statements and transactions of this connection must have gone.
  ~SqliteDb();
  SqliteDb(const SqliteDb&) = delete;
  SqliteDb& operator=(const SqliteDb&) = delete;

  // Runs one or more statements that take no parameters and whose rows nobody wants.
  absl::Status Run(const char* sql);

  // The compiled form of `sql`, kept for the life of the connection, so `sql` has to be one of a
  // fixed set of texts. A text may be in use once at a time.
  absl::StatusOr<SqliteStatement> Prepare(std::string_view sql);

  // From here on this connection reads the database as it is now, whatever others write, until
  // EndReading(). The log of changes grows meanwhile.
  absl::Status BeginReading();
  absl::Status EndReading();

  // Copies the database into a new file at `path`, which must not be there, in pieces of some MiB.
  // Between BeginReading() and EndReading() it is that state; otherwise a write by others begins
  // the copy anew. `go_on` is told of the bytes so far and ends the copy with CANCELLED when it
  // returns false. After an error the file is gone. It is not synced.
  using GoOn = std::function<bool(uint64_t copied)>;
  absl::Status CopyTo(const std::string& path, const GoOn& go_on);

  const std::string& path() const { return path_; }

 private:
  friend class SqliteStatement;
  friend class SqliteTransaction;
  struct Cached {
    sqlite3_stmt* statement = nullptr;
    bool in_use = false;
  };

  SqliteDb(std::string path, const Options& options) : path_(std::move(path)), options_(options) {}
  static int OnBusy(void* self, int earlier_calls);
  absl::Status Configure();
  absl::Status EnterWalMode();
  absl::Status Error(int code, const std::string& doing) const;

  const std::string path_;
  const Options options_;
  sqlite3* db_ = nullptr;
  TimePoint busy_deadline_{};
  std::map<std::string, Cached, std::less<>> statements_;
};

// A statement borrowed from its connection; goes back, reset, when destroyed. Parameters count from
// 1, columns from 0. Bind copies. A failed Bind is reported by the next Step.
class SqliteStatement {
 public:
  SqliteStatement(SqliteStatement&& other) noexcept
      : db_(other.db_),
        cached_(std::exchange(other.cached_, nullptr)),
        bind_code_(other.bind_code_) {}
  SqliteStatement& operator=(SqliteStatement&&) = delete;
  ~SqliteStatement();

  void Bind(int parameter, int64_t value);
  void BindDouble(int parameter, double value);
  void BindText(int parameter, std::string_view text);
  void BindBlob(int parameter, std::string_view bytes);
  void BindNull(int parameter);

  // True: there is a row to look at. False: the statement is complete.
  absl::StatusOr<bool> Step();
  // Step for statements that return no rows, then Reset.
  absl::Status Execute();
  // Makes the statement ready for other parameters.
  void Reset();

  bool IsNull(int column) const;
  int64_t Int(int column) const;
  double Double(int column) const;
  // A number from 0 to `most`; DATA_LOSS for any other.
  absl::StatusOr<uint32_t> Uint32(int column, uint32_t most) const;
  // Bytes of a text or blob; valid until the next Step, Reset or destruction.
  std::string_view Bytes(int column) const;

 private:
  friend class SqliteDb;
  SqliteStatement(SqliteDb* db, SqliteDb::Cached* cached) : db_(db), cached_(cached) {}
  void NoteBind(int code);

  SqliteDb* db_;
  SqliteDb::Cached* cached_;
  int bind_code_ = 0;  // SQLITE_OK
};

// A write transaction: takes the write lock at once and rolls back unless committed. Declare it
// before the statements that run in it.
class SqliteTransaction {
 public:
  static absl::StatusOr<SqliteTransaction> Begin(SqliteDb* db);
  SqliteTransaction(SqliteTransaction&& other) noexcept : db_(std::exchange(other.db_, nullptr)) {}
  SqliteTransaction& operator=(SqliteTransaction&&) = delete;
  ~SqliteTransaction();

  // After an error nothing is stored, except that UNKNOWN says it may have been.
  absl::Status Commit();

 private:
  explicit SqliteTransaction(SqliteDb* db) : db_(db) {}
  SqliteDb* db_;
};

// What was committed with kProcessSafe to the database before, and whose log a connection has open,
// survives a power cut when this returns OK. It waits for the disk, without any lock of SQLite's:
// the log that is synced here may be written meanwhile. UNKNOWN: a power cut may take it.
absl::Status SyncSqliteLog(const std::string& database_path);

// Connections to one database. Thread-safe. Take waits while all are out; that ends because each
// holder runs a few statements and none waits longer than lock_timeout.
class SqlitePool {
 public:
  class Lease {
   public:
    Lease(SqlitePool* pool, std::unique_ptr<SqliteDb> db) : pool_(pool), db_(std::move(db)) {}
    Lease(Lease&&) noexcept = default;
    Lease& operator=(Lease&&) = delete;
    ~Lease();
    SqliteDb* get() const { return db_.get(); }
    SqliteDb* operator->() const { return db_.get(); }

   private:
    SqlitePool* pool_;
    std::unique_ptr<SqliteDb> db_;
  };

  static absl::StatusOr<std::unique_ptr<SqlitePool>> Open(const std::string& path,
                                                          const SqliteDb::Options& options,
                                                          int connection_count);
  Lease Take();

 private:
  Mutex mutex_;
  CondVar returned_;
  std::vector<std::unique_ptr<SqliteDb>> idle_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ecpipe
