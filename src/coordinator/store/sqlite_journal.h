// SPDX-License-Identifier: Apache-2.0
// The embedded journal: repairs in a SQLite file. The file may be the catalog's, but SQLite has one
// writer a file: a record then waits for a bulk Put, up to a second, where it takes 0.1 ms in a
// file of its own.
//
// A record that was stored survives a crash of the process, and a power cut once Sync has
// returned. It is called for recoveries: an operator has asked for them, and is told that it is
// done. Of repairs a power cut may take the latest few seconds, because writing one is on the path
// of a repair's begin and is not to wait for a disk. So no commit waits for one (a file has one
// writer at a time), and Sync goes to the log of changes past SQLite, without its lock. That a
// repair is lost is acceptable: the power cut ended it too, a repair's result is judged by
// the requestor's own checks and never by the journal, and repair ids are drawn at random, so a
// forgotten one is not given out again.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/store/journal.h"
#include "coordinator/store/sqlite_db.h"

namespace ecpipe {

class SqliteJournal : public Journal {
 public:
  // Texts of a record are cut to this: the longest message that names all of a stripe's survivors
  // fits, and a peer's message cannot fill the disk.
  static constexpr size_t kMaxTextBytes = 16 << 10;

  // Opens or creates the database. Errors as in EnsureSchema and SqliteDb::Open.
  static absl::StatusOr<std::unique_ptr<SqliteJournal>> Open(const std::string& path);

  // As the interface says; INVALID_ARGUMENT as CheckRepair and CheckRecovery.
  absl::Status Record(const RepairRecord& record) override;
  absl::StatusOr<std::vector<RepairRecord>> ClaimInterrupted(int64_t now_unix_ms) override;
  absl::StatusOr<RepairRecord> Find(RepairId repair_id) override;
  absl::StatusOr<std::vector<RepairRecord>> Recent(int limit) override;
  absl::StatusOr<std::vector<RepairRecord>> RecentlyEnded(int limit) override;
  absl::Status RecordRecovery(const RecoveryRecord& record) override;
  absl::Status Sync() override { return SyncSqliteLog(path_); }
  absl::StatusOr<std::vector<RecoveryRecord>> Recoveries(int limit) override;
  absl::Status Trim(int keep) override;

 private:
  explicit SqliteJournal(std::string path) : path_(std::move(path)) {}

  const std::string path_;
  std::unique_ptr<SqlitePool> connection_;  // one: no call is long enough to be worth a second
};

}  // namespace ecpipe
