// SPDX-License-Identifier: Apache-2.0
#include "coordinator/store/sqlite_db.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/check.h"
#include "base/file_io.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace ecpipe {

namespace {

// Statement texts are literals of this program; more of them than this means that somebody builds
// texts at run time, which would grow the cache without end.
constexpr size_t kMaxCachedStatements = 64;

// How long to sleep between tries for the write lock. SQLite's own handler backs off to 100 ms,
// which lets a bulk load starve the short writes of a repair's begin.
constexpr int kLockRetryMillis = 1;

absl::StatusCode CodeFor(int sqlite_code) {
  if (sqlite_code == SQLITE_CONSTRAINT_UNIQUE || sqlite_code == SQLITE_CONSTRAINT_PRIMARYKEY) {
    return absl::StatusCode::kAlreadyExists;
  }
  switch (sqlite_code & 0xff) {  // the low byte is the primary code, the rest is detail
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return absl::StatusCode::kUnavailable;
    case SQLITE_FULL:
    case SQLITE_NOMEM:
    case SQLITE_TOOBIG:
      return absl::StatusCode::kResourceExhausted;
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_AUTH:
    case SQLITE_CANTOPEN:
      return absl::StatusCode::kPermissionDenied;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::StatusCode::kDataLoss;
    default:
      return absl::StatusCode::kInternal;
  }
}

const char* SyncPragma(CommitSync sync) {
  return sync == CommitSync::kPowerSafe ? "PRAGMA synchronous = FULL"
                                        : "PRAGMA synchronous = NORMAL";
}

// Whether there was none.
absl::StatusOr<bool> CreateEmpty(const std::string& path) {
  const UniqueFd created(
      ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, kServiceFileMode));
  if (created.valid() && ::fchmod(created.get(), kServiceFileMode) != 0) {
    return ErrnoStatus(errno, "set the mode of " + path);
  }
  return created.valid();
}

// Copies all pages of `from`. Returns SQLite's code; SQLITE_INTERRUPT when it was not to go on.
int CopyPages(sqlite3* from, sqlite3* to, const SqliteDb::GoOn& go_on) {
  constexpr int kPagesAtOnce = 1024;  // 4 MiB
  constexpr uint64_t kPageBytes = 4096;
  sqlite3_backup* const copy = sqlite3_backup_init(to, "main", from, "main");
  if (copy == nullptr) return sqlite3_extended_errcode(to);
  int code = SQLITE_OK;
  while (code == SQLITE_OK) {
    code = sqlite3_backup_step(copy, kPagesAtOnce);
    const int pages = sqlite3_backup_pagecount(copy) - sqlite3_backup_remaining(copy);
    const bool more = code == SQLITE_OK;
    if (more && !go_on(static_cast<uint64_t>(pages) * kPageBytes)) code = SQLITE_INTERRUPT;
  }
  const int finished = sqlite3_backup_finish(copy);
  return code == SQLITE_DONE ? finished : code;
}

}  // namespace

// ---- SqliteDb -------------------------------------------------------------------------------

absl::StatusOr<std::unique_ptr<SqliteDb>> SqliteDb::Open(const std::string& path,
                                                         const Options& options) {
  // Empty it is a new database; SQLite's other files get its mode.
  ECPIPE_RETURN_IF_ERROR(CreateEmpty(path).status());
  std::unique_ptr<SqliteDb> db(new SqliteDb(path, options));
  // NOMUTEX: a connection is used by one thread at a time, so SQLite need not lock it.
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  const int code = sqlite3_open_v2(path.c_str(), &db->db_, flags, nullptr);
  if (db->db_ == nullptr) return absl::ResourceExhaustedError("open " + path + ": out of memory");
  if (code != SQLITE_OK) return db->Error(code, "open");
  ECPIPE_RETURN_IF_ERROR(db->Configure());
  return db;
}

absl::Status SqliteDb::Configure() {
  sqlite3_extended_result_codes(db_, 1);
  sqlite3_busy_handler(db_, &SqliteDb::OnBusy, this);
  // cell_size_check finds damaged pages before they are used. trusted_schema is off because a
  // damaged or foreign file must not run functions. The log is cut back to 64 MiB once a large
  // transaction has left it longer.
  ECPIPE_RETURN_IF_ERROR(
      Run("PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;"
          "PRAGMA temp_store = MEMORY;"));
  ECPIPE_RETURN_IF_ERROR(EnterWalMode());
  ECPIPE_RETURN_IF_ERROR(Run("PRAGMA journal_size_limit = 67108864;"));
  ECPIPE_RETURN_IF_ERROR(Run(SyncPragma(options_.sync)));
  return Run(("PRAGMA cache_size = -" + std::to_string(options_.cache_kib)).c_str());
}

// SQLite keeps another mode without an error where the file system cannot share memory.
absl::Status SqliteDb::EnterWalMode() {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v2(db_, "PRAGMA journal_mode = WAL", -1, &statement, nullptr);
  if (code != SQLITE_OK) return Error(code, "set the journal mode of");
  const int stepped = sqlite3_step(statement);
  const unsigned char* text = stepped == SQLITE_ROW ? sqlite3_column_text(statement, 0) : nullptr;
  const std::string mode = text == nullptr ? "" : reinterpret_cast<const char*>(text);
  sqlite3_finalize(statement);
  if (stepped != SQLITE_ROW) return Error(stepped, "set the journal mode of");
  if (mode == "wal") return absl::OkStatus();
  return absl::FailedPreconditionError(
      path_ + " is in journal mode " + mode +
      " and cannot be put into WAL mode; keep it on a local file system");
}

SqliteDb::~SqliteDb() {
  for (auto& [sql, cached] : statements_) {
    ECPIPE_CHECK(!cached.in_use);
    sqlite3_finalize(cached.statement);
  }
  sqlite3_close(db_);
}

int SqliteDb::OnBusy(void* self, int earlier_calls) {
  auto* db = static_cast<SqliteDb*>(self);
  const TimePoint now = Clock::System().Now();
  if (earlier_calls == 0) db->busy_deadline_ = now + db->options_.lock_timeout;
  if (now >= db->busy_deadline_) return 0;
  sqlite3_sleep(kLockRetryMillis);
  return 1;
}

absl::Status SqliteDb::Error(int code, const std::string& doing) const {
  std::string text = doing + " " + path_ + ": " + sqlite3_errmsg(db_);
  text += " (SQLite code " + std::to_string(code) + ")";
  return absl::Status(CodeFor(code), text);
}

absl::Status SqliteDb::Run(const char* sql) {
  const int code = sqlite3_exec(db_, sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return Error(code, "run a statement on");
  return absl::OkStatus();
}

absl::Status SqliteDb::BeginReading() { return Run("BEGIN; SELECT count(*) FROM sqlite_schema"); }

absl::Status SqliteDb::EndReading() { return Run("COMMIT"); }

absl::Status SqliteDb::CopyTo(const std::string& path, const GoOn& go_on) {
  ECPIPE_ASSIGN_OR_RETURN(const bool created, CreateEmpty(path));
  if (!created) return ErrnoStatus(errno, "create " + path);
  sqlite3* to = nullptr;
  int code =
      sqlite3_open_v2(path.c_str(), &to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
  // A copy that is not finished is nothing worth, so that it needs no journal.
  constexpr const char* kFast = "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF";
  if (code == SQLITE_OK) code = sqlite3_exec(to, kFast, nullptr, nullptr, nullptr);
  if (code == SQLITE_OK) code = CopyPages(db_, to, go_on);
  const std::string reason = to == nullptr ? "out of memory" : sqlite3_errmsg(to);
  sqlite3_close(to);
  if (code == SQLITE_OK) return absl::OkStatus();
  ::unlink(path.c_str());
  const std::string what = "copy " + path_ + " to " + path;
  if (code == SQLITE_INTERRUPT) return absl::CancelledError(what + ": given up");
  return absl::Status(CodeFor(code),
                      what + ": " + reason + " (SQLite code " + std::to_string(code) + ")");
}

absl::StatusOr<SqliteStatement> SqliteDb::Prepare(std::string_view sql) {
  auto found = statements_.find(sql);
  if (found == statements_.end()) {
    sqlite3_stmt* statement = nullptr;
    const int code = sqlite3_prepare_v3(db_, sql.data(), static_cast<int>(sql.size()),
                                        SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
    if (code != SQLITE_OK) return Error(code, "prepare a statement on");
    ECPIPE_CHECK(statement != nullptr);
    ECPIPE_CHECK(statements_.size() < kMaxCachedStatements);
    found = statements_.emplace(std::string(sql), Cached{statement, false}).first;
  }
  ECPIPE_CHECK(!found->second.in_use);
  found->second.in_use = true;
  return SqliteStatement(this, &found->second);
}

// ---- SqliteStatement ------------------------------------------------------------------------

SqliteStatement::~SqliteStatement() {
  if (cached_ == nullptr) return;
  Reset();
  sqlite3_clear_bindings(cached_->statement);
  cached_->in_use = false;
}

void SqliteStatement::NoteBind(int code) {
  if (bind_code_ == SQLITE_OK) bind_code_ = code;
}

void SqliteStatement::Bind(int parameter, int64_t value) {
  NoteBind(sqlite3_bind_int64(cached_->statement, parameter, value));
}

void SqliteStatement::BindDouble(int parameter, double value) {
  NoteBind(sqlite3_bind_double(cached_->statement, parameter, value));
}

void SqliteStatement::BindText(int parameter, std::string_view text) {
  NoteBind(sqlite3_bind_text64(cached_->statement, parameter, text.empty() ? "" : text.data(),
                               text.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
}

void SqliteStatement::BindBlob(int parameter, std::string_view bytes) {
  NoteBind(sqlite3_bind_blob64(cached_->statement, parameter, bytes.empty() ? "" : bytes.data(),
                               bytes.size(), SQLITE_TRANSIENT));
}

void SqliteStatement::BindNull(int parameter) {
  NoteBind(sqlite3_bind_null(cached_->statement, parameter));
}

absl::StatusOr<bool> SqliteStatement::Step() {
  if (bind_code_ != SQLITE_OK) return db_->Error(bind_code_, "bind a parameter for");
  const int code = sqlite3_step(cached_->statement);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return db_->Error(code, "run a statement on");
}

absl::Status SqliteStatement::Execute() {
  absl::StatusOr<bool> row = Step();
  ECPIPE_CHECK(!row.ok() || !*row);
  Reset();
  return row.status();
}

void SqliteStatement::Reset() {
  // Its result repeats the error of the last Step, which has been reported.
  sqlite3_reset(cached_->statement);
  bind_code_ = SQLITE_OK;
}

bool SqliteStatement::IsNull(int column) const {
  return sqlite3_column_type(cached_->statement, column) == SQLITE_NULL;
}

int64_t SqliteStatement::Int(int column) const {
  return sqlite3_column_int64(cached_->statement, column);
}

double SqliteStatement::Double(int column) const {
  return sqlite3_column_double(cached_->statement, column);
}

absl::StatusOr<uint32_t> SqliteStatement::Uint32(int column, uint32_t most) const {
  const int64_t value = Int(column);
  if (value >= 0 && value <= int64_t{most}) return static_cast<uint32_t>(value);
  return absl::DataLossError("column " + std::to_string(column) + " holds " +
                             std::to_string(value));
}

std::string_view SqliteStatement::Bytes(int column) const {
  // The pointer is asked for first: sqlite3_column_bytes then tells the length of that form.
  const void* bytes = sqlite3_column_blob(cached_->statement, column);
  const int size = sqlite3_column_bytes(cached_->statement, column);
  if (bytes == nullptr) return {};
  return {static_cast<const char*>(bytes), static_cast<size_t>(size)};
}

// ---- SqliteTransaction ----------------------------------------------------------------------

absl::StatusOr<SqliteTransaction> SqliteTransaction::Begin(SqliteDb* db) {
  // One that could not be rolled back would keep all others out for ever.
  if (sqlite3_get_autocommit(db->db_) == 0) ECPIPE_RETURN_IF_ERROR(db->Run("ROLLBACK"));
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement begin, db->Prepare("BEGIN IMMEDIATE"));
  ECPIPE_RETURN_IF_ERROR(begin.Execute());
  return SqliteTransaction(db);
}

SqliteTransaction::~SqliteTransaction() {
  // An error may have rolled it back already; then there is nothing left to undo.
  if (db_ == nullptr || sqlite3_get_autocommit(db_->db_) != 0) return;
  db_->Run("ROLLBACK").IgnoreError();  // Begin tries again
}

absl::Status SqliteTransaction::Commit() {
  ECPIPE_ASSIGN_OR_RETURN(SqliteStatement commit, db_->Prepare("COMMIT"));
  const absl::Status status = commit.Execute();
  if (status.ok()) {
    db_ = nullptr;
    return status;
  }
  // The commit record may have reached the log although the disk reported an error; then the
  // transaction comes back when the database is next opened.
  if (absl::IsInternal(status)) {
    return absl::UnknownError(std::string(status.message()) +
                              "; the transaction may or may not have been stored");
  }
  return status;
}

// ---- SqlitePool -----------------------------------------------------------------------------

absl::StatusOr<std::unique_ptr<SqlitePool>> SqlitePool::Open(const std::string& path,
                                                             const SqliteDb::Options& options,
                                                             int connection_count) {
  ECPIPE_CHECK(connection_count > 0);
  auto pool = std::make_unique<SqlitePool>();
  for (int i = 0; i < connection_count; ++i) {
    ECPIPE_ASSIGN_OR_RETURN(std::unique_ptr<SqliteDb> db, SqliteDb::Open(path, options));
    MutexLock lock(&pool->mutex_);
    pool->idle_.push_back(std::move(db));
  }
  return pool;
}

SqlitePool::Lease SqlitePool::Take() {
  MutexLock lock(&mutex_);
  while (idle_.empty()) returned_.Wait(lock);
  std::unique_ptr<SqliteDb> db = std::move(idle_.back());
  idle_.pop_back();
  return Lease(this, std::move(db));
}

SqlitePool::Lease::~Lease() {
  if (db_ == nullptr) return;  // moved from
  MutexLock lock(&pool_->mutex_);
  pool_->idle_.push_back(std::move(db_));
  pool_->returned_.NotifyOne();
}

absl::Status SyncSqliteLog(const std::string& database_path) {
  // SQLite syncs the log's beginning and its name itself, and the log whole before it moves changes
  // to the database and begins the log anew. It takes no locks on this file, so that closing our
  // descriptor gives none of them up.
  const std::string log = database_path + "-wal";
  const UniqueFd fd(::open(log.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (fd.valid() && ::fdatasync(fd.get()) == 0) return absl::OkStatus();
  return absl::UnknownError(ErrnoStatus(errno, "sync " + log).message());
}

}  // namespace ecpipe
