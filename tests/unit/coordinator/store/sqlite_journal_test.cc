// SPDX-License-Identifier: Apache-2.0
#include "coordinator/store/sqlite_journal.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <thread>
#include <utility>

#include "coordinator/store/sqlite_catalog.h"
#include "coordinator/store/sqlite_db.h"
#include "unit/coordinator/store/scratch_directory.h"

namespace {
std::atomic<int> syncs = 0;
std::function<void()> during_sync;  // called once, then empty
}  // namespace

// In place of the C library's: SQLite calls these.
extern "C" int fdatasync(int fd) {
  ++syncs;
  if (const auto meanwhile = std::exchange(during_sync, nullptr)) meanwhile();
  return static_cast<int>(::syscall(SYS_fdatasync, fd));
}
extern "C" int fsync(int fd) {
  ++syncs;
  return static_cast<int>(::syscall(SYS_fsync, fd));
}

namespace ecpipe::sqlite_journal_test {
namespace {

RepairRecord Record(RepairId id, int64_t started, RepairState state = RepairState::kRunning) {
  RepairRecord record;
  record.repair_id = id;
  record.attempt = 2;
  record.block_ids = {"blk_1", std::string("a\0b", 3), ""};
  record.offset = UINT64_MAX;
  record.bytes = 1 << 20;
  record.scheme = "rp";
  record.transport = "tcp";
  record.requestor = "client-1";
  record.hosts = {"node-3", "other"};
  record.moved = {1};
  record.recovery_id = 4;
  record.state = state;
  record.started_unix_ms = started;
  if (state != RepairState::kRunning) record.ended_unix_ms = started + 5;
  return record;
}

TEST(SqliteDb, RefusesAFileThatCannotHaveAWriteAheadLog) {
  // SQLite says no error there, and keeps another mode.
  const auto db = SqliteDb::Open(":memory:", {});
  std::filesystem::remove(":memory:");  // to SQLite no file, to us an empty one
  EXPECT_TRUE(absl::IsFailedPrecondition(db.status())) << db.status();
}

TEST(SqliteDb, ItsFilesAreForTheGroupWhateverTheUmask) {
  const ScratchDirectory directory;
  const mode_t before = ::umask(0);
  auto db = SqliteDb::Open(directory.File("ecpipe.db"), {});
  ::umask(before);
  ASSERT_TRUE(db.ok()) << db.status();
  ASSERT_TRUE((*db)->Run("CREATE TABLE t (x)").ok());
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory.File(""))) {
    EXPECT_EQ(static_cast<unsigned>(entry.status().permissions()), 0640u) << entry.path();
    ++files;
  }
  EXPECT_GE(files, 2) << "the file and its log";
}

class SqliteJournalTest : public testing::Test {
 protected:
  void SetUp() override { Open(); }

  void Open() {
    journal_.reset();
    auto journal = SqliteJournal::Open(path_);
    ASSERT_TRUE(journal.ok()) << journal.status();
    journal_ = *std::move(journal);
  }

  void Store(const RepairRecord& record) {
    const absl::Status status = journal_->Record(record);
    ASSERT_TRUE(status.ok()) << status;
  }

  std::vector<RepairId> RecentIds() {
    const auto records = journal_->Recent(100);
    EXPECT_TRUE(records.ok()) << records.status();
    std::vector<RepairId> ids;
    for (const RepairRecord& record : *records) ids.push_back(record.repair_id);
    return ids;
  }

  ScratchDirectory directory_;
  const std::string path_ = directory_.File("ecpipe.db");
  std::unique_ptr<SqliteJournal> journal_;
};

TEST_F(SqliteJournalTest, FindsOneByItsId) {
  const RepairRecord record = Record(UINT64_MAX - 3, 50, RepairState::kFailed);
  Store(record);
  Store(Record(8, 60, RepairState::kRunning));
  const auto found = journal_->Find(UINT64_MAX - 3);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(*found, record);
  EXPECT_TRUE(absl::IsNotFound(journal_->Find(9).status()));
}

TEST_F(SqliteJournalTest, RecordsSurviveARestart) {
  const RepairRecord running = Record(UINT64_MAX, 100);
  RepairRecord failed = Record(7, 200, RepairState::kFailed);
  failed.detail = "node-3: gone";
  failed.block_ids.clear();
  Store(running);
  const RepairRecord cancelled = Record(8, 300, RepairState::kCancelled);
  Store(failed);
  Store(cancelled);
  Open();
  EXPECT_EQ(journal_->Recent(10).value(), (std::vector<RepairRecord>{running, cancelled, failed}));
}

TEST_F(SqliteJournalTest, RecordReplacesTheSameRepair) {
  Store(Record(1, 100));
  const RepairRecord done = Record(1, 100, RepairState::kDone);
  Store(done);
  EXPECT_EQ(journal_->Recent(10).value(), std::vector<RepairRecord>{done});
}

TEST_F(SqliteJournalTest, RecentIsNewestFirstAndBounded) {
  for (const RepairId id : {3, 1, 2}) Store(Record(id, static_cast<int64_t>(id) * 10));
  EXPECT_EQ(RecentIds(), (std::vector<RepairId>{3, 2, 1}));
  EXPECT_EQ(journal_->Recent(1).value().size(), 1u);
  EXPECT_TRUE(absl::IsInvalidArgument(journal_->Recent(0).status()));
}

TEST_F(SqliteJournalTest, EndedRepairsHideNoneThatRuns) {
  Store(Record(1, 1));
  for (RepairId id = 2; id <= 9; ++id) {
    Store(Record(id, static_cast<int64_t>(id), RepairState::kDone));
  }
  const auto recent = journal_->Recent(3).value();
  ASSERT_EQ(recent.size(), 3u);
  EXPECT_EQ(recent[0], Record(1, 1));
  EXPECT_EQ(recent[1].repair_id, 9u);
  EXPECT_EQ(recent[2].repair_id, 8u);
  const auto ended = journal_->RecentlyEnded(2).value();
  ASSERT_EQ(ended.size(), 2u);
  EXPECT_EQ(ended[0].repair_id, 9u);
  EXPECT_EQ(ended[1].repair_id, 8u);
  EXPECT_EQ(journal_->RecentlyEnded(100).value().size(), 8u);
  EXPECT_TRUE(absl::IsInvalidArgument(journal_->RecentlyEnded(0).status()));
}

TEST_F(SqliteJournalTest, TakeInterruptedMarksWhatWasRunning) {
  Store(Record(1, 100));
  Store(Record(2, 50, RepairState::kDone));
  Store(Record(3, 70));
  Open();
  RepairRecord one = Record(1, 100, RepairState::kInterrupted);
  RepairRecord three = Record(3, 70, RepairState::kInterrupted);
  one.ended_unix_ms = three.ended_unix_ms = 999;
  EXPECT_EQ(journal_->ClaimInterrupted(999).value(), (std::vector<RepairRecord>{three, one}));
  EXPECT_EQ(journal_->Recent(10).value(),
            (std::vector<RepairRecord>{one, three, Record(2, 50, RepairState::kDone)}));
  EXPECT_TRUE(journal_->ClaimInterrupted(1000).value().empty());
}

TEST_F(SqliteJournalTest, TrimKeepsTheNewestAndTheRunning) {
  Store(Record(1, 1));
  for (RepairId id = 2; id <= 6; ++id) {
    Store(Record(id, static_cast<int64_t>(id), RepairState::kDone));
  }
  ASSERT_TRUE(journal_->Trim(2).ok());
  EXPECT_EQ(RecentIds(), (std::vector<RepairId>{1, 6, 5}));
  ASSERT_TRUE(journal_->Trim(2).ok());
  EXPECT_EQ(RecentIds().size(), 3u);
  ASSERT_TRUE(journal_->Trim(0).ok());
  EXPECT_EQ(RecentIds(), std::vector<RepairId>{1});
  EXPECT_TRUE(absl::IsInvalidArgument(journal_->Trim(-1)));
}

TEST_F(SqliteJournalTest, LimitsOfARecord) {
  RepairRecord record = Record(1, 1);
  record.detail = std::string(SqliteJournal::kMaxTextBytes + 1, 'd');
  record.block_ids.assign(kMaxRows, std::string(kMaxCatalogIdBytes, 'b'));
  Store(record);
  record.detail.pop_back();
  EXPECT_EQ(journal_->Recent(1).value(), std::vector<RepairRecord>{record});

  record.block_ids[0] += 'b';
  EXPECT_TRUE(absl::IsInvalidArgument(journal_->Record(record)));
  record.block_ids.assign(kMaxRows + 1, "b");
  EXPECT_TRUE(absl::IsInvalidArgument(journal_->Record(record)));
}

// What could be written and not read would be lost without a word at the next start.
TEST_F(SqliteJournalTest, WhatCouldNotBeReadIsNotWritten) {
  RepairRecord record = Record(1, 1);
  record.hosts.assign(kMaxRows + 1, "node-1");
  EXPECT_TRUE(absl::IsInvalidArgument(journal_->Record(record)));
  record = Record(1, 1);
  record.moved = {2};
  EXPECT_TRUE(absl::IsInvalidArgument(journal_->Record(record))) << "no node stores row 2";
  record = Record(1, 1);
  record.hosts[1] = std::string(kMaxCatalogIdBytes + 1, 'h');
  EXPECT_TRUE(absl::IsInvalidArgument(journal_->Record(record)));
  EXPECT_TRUE(absl::IsNotFound(journal_->Find(1).status()));

  RecoveryRecord whole;
  whole.recovery_id = 1;
  whole.request.transport = TransportKind::kTcp;
  for (const auto& damage : std::vector<void (*)(RecoveryRecord*)>{
           [](RecoveryRecord* r) { r->request.slice_bytes = kMaxSliceBytes + 1; },
           [](RecoveryRecord* r) { r->request.node.assign(kMaxCatalogIdBytes + 1, 'n'); },
           [](RecoveryRecord* r) { r->request.scheme.assign(kMaxCatalogIdBytes + 1, 's'); },
           [](RecoveryRecord* r) { r->blocks = uint64_t{INT64_MAX} + 1; },
           [](RecoveryRecord* r) { r->failed_blocks = UINT64_MAX; }}) {
    RecoveryRecord recovery = whole;
    damage(&recovery);
    EXPECT_TRUE(absl::IsInvalidArgument(journal_->RecordRecovery(recovery)));
  }
  EXPECT_TRUE(journal_->Recoveries(10).value().empty());
  whole.blocks = INT64_MAX;
  whole.request.slice_bytes = kMaxSliceBytes;
  ASSERT_TRUE(journal_->RecordRecovery(whole).ok());
  EXPECT_EQ(journal_->Recoveries(10).value(), std::vector<RecoveryRecord>{whole});
}

TEST_F(SqliteJournalTest, DamagedRecordIsReportedAndHoldsUpNobody) {
  const RepairRecord other = Record(2, 5, RepairState::kDone);
  for (const char* damage :
       {"UPDATE repairs SET state = 9 WHERE repair_id = 1",
        "UPDATE repairs SET attempt = 4294967296 WHERE repair_id = 1",
        "UPDATE repairs SET attempt = -1 WHERE repair_id = 1",
        "DELETE FROM repair_blocks WHERE repair_id = 1 AND position = 1",
        "UPDATE repair_blocks SET position = 64 WHERE repair_id = 1 AND position = 2",
        "UPDATE repair_blocks SET block_id = NULL WHERE repair_id = 1 AND position = 1",
        "UPDATE repair_blocks SET host = NULL WHERE repair_id = 1 AND position = 1",
        "UPDATE repair_blocks SET host = NULL WHERE repair_id = 1 AND position = 0",
        "UPDATE repair_blocks SET moved = 1 WHERE repair_id = 1 AND position = 2",
        "UPDATE repair_blocks SET host = printf('%256d', 1) WHERE repair_id = 1 AND position = 0",
        "UPDATE repair_blocks SET block_id = printf('%256d', 1) WHERE repair_id = 1"
        " AND position = 0",
        "UPDATE repairs SET detail = printf('%16385d', 1) WHERE repair_id = 1",
        "INSERT INTO repair_blocks WITH RECURSIVE c(p) AS (SELECT 3 UNION ALL SELECT p + 1 FROM c"
        " WHERE p < 64) SELECT 1, p, 'b', NULL, 0 FROM c"}) {
    Store(Record(1, 1));
    Store(other);
    auto db = SqliteDb::Open(path_, {});
    ASSERT_TRUE(db.ok() && (*db)->Run(damage).ok()) << damage;
    const absl::Status status = journal_->Find(1).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << damage << ": " << status;
    EXPECT_NE(status.message().find(RepairIdText(1).c_str()), absl::string_view::npos) << status;
    EXPECT_EQ(journal_->Recent(10).value(), std::vector<RepairRecord>{other}) << damage;
    EXPECT_TRUE(journal_->ClaimInterrupted(9).value().empty()) << damage;
  }
}

// Maintenance and drains take ids, too: a hundred of them are a month's work.
TEST_F(SqliteJournalTest, ARecoveryThatHasNotEndedIsNeverTooOld) {
  std::vector<RecoveryRecord> expected;
  RecoveryRecord record;
  record.request.transport = TransportKind::kTcp;
  for (const RecoveryState state : {RecoveryState::kRunning, RecoveryState::kPaused,
                                    RecoveryState::kDone, RecoveryState::kCancelled}) {
    ++record.recovery_id;
    record.state = state;
    ASSERT_TRUE(journal_->RecordRecovery(record).ok());
    if (state != RecoveryState::kDone) expected.insert(expected.begin(), record);
  }
  EXPECT_EQ(journal_->Recoveries(1).value(), expected);
}

TEST_F(SqliteJournalTest, ARecoveryThatKeepsANodeOutIsNeverTooOld) {
  RecoveryRecord drain;
  drain.state = RecoveryState::kDone;
  drain.recovery_id = 1;
  drain.request.node = "n0";
  drain.request.transport = TransportKind::kTcp;
  drain.request.kind = RecoveryKind::kMove;
  drain.keeps_out = true;
  ASSERT_TRUE(journal_->RecordRecovery(drain).ok());
  RecoveryRecord other = drain;
  other.request.kind = RecoveryKind::kRebuild;
  other.keeps_out = false;
  std::vector<RecoveryRecord> newest = {drain};
  for (const RecoveryId id : {2, 3, 4}) {
    other.recovery_id = id;
    ASSERT_TRUE(journal_->RecordRecovery(other).ok());
    if (id > 2) newest.insert(newest.begin(), other);
  }
  EXPECT_EQ(journal_->Recoveries(2).value(), newest);
}

TEST_F(SqliteJournalTest, DamagedRecoveryIsLeftOut) {
  RecoveryRecord other;
  other.recovery_id = 2;
  other.request.transport = TransportKind::kTcp;
  ASSERT_TRUE(journal_->RecordRecovery(other).ok());
  for (const char* damage :
       {"UPDATE recoveries SET state = 9 WHERE recovery_id = 1",
        "UPDATE recoveries SET policy = -1 WHERE recovery_id = 1",
        "UPDATE recoveries SET transport = 'pigeon' WHERE recovery_id = 1",
        "UPDATE recoveries SET slice_bytes = 67108865 WHERE recovery_id = 1",
        "UPDATE recoveries SET slice_bytes = -1 WHERE recovery_id = 1",
        "UPDATE recoveries SET streams_per_node = 4294967296 WHERE recovery_id = 1",
        "UPDATE recoveries SET done_bytes = -1 WHERE recovery_id = 1",
        "UPDATE recoveries SET node = printf('%256d', 1) WHERE recovery_id = 1",
        "UPDATE recovery_targets SET node = printf('%256d', 1) WHERE recovery_id = 1",
        "UPDATE recovery_targets SET position = 5 WHERE recovery_id = 1 AND position = 1",
        "DELETE FROM recovery_targets WHERE recovery_id = 1 AND position = 0"}) {
    RecoveryRecord record;
    record.recovery_id = 1;
    record.request.hosts = {"n1", "n2"};
    record.request.transport = TransportKind::kTcp;
    ASSERT_TRUE(journal_->RecordRecovery(record).ok());
    EXPECT_EQ(journal_->Recoveries(10).value(), (std::vector<RecoveryRecord>{other, record}));
    auto db = SqliteDb::Open(path_, {});
    ASSERT_TRUE(db.ok() && (*db)->Run(damage).ok()) << damage;
    EXPECT_EQ(journal_->Recoveries(10).value(), std::vector<RecoveryRecord>{other}) << damage;
  }
}

// These words are in files: a change of one is a new schema version.
TEST_F(SqliteJournalTest, ValuesAreStoredByName) {
  Store(Record(1, 1, RepairState::kInterrupted));
  RecoveryRecord recovery;
  recovery.recovery_id = 1;
  recovery.request.policy = RecoveryPolicy::kLeastRecent;
  recovery.request.transport = TransportKind::kRedis;
  recovery.state = RecoveryState::kReturned;
  ASSERT_TRUE(journal_->RecordRecovery(recovery).ok());
  auto db = SqliteDb::Open(path_, {});
  ASSERT_TRUE(db.ok());
  auto query = (*db)->Prepare(
      "SELECT r.state || ' ' || b.block_id || ' ' || b.host || ' ' || b.moved || ' ' || c.policy"
      " || ' ' || c.transport || ' ' || c.state FROM repairs AS r JOIN repair_blocks AS b"
      " USING (repair_id), recoveries AS c WHERE b.position = 0");
  ASSERT_TRUE(query.ok() && query->Step().value_or(false)) << query.status();
  EXPECT_EQ(query->Bytes(0), "interrupted blk_1 node-3 0 least-recent redis returned");
}

// A status that is cut within a character could be sent to nobody.
TEST_F(SqliteJournalTest, LongTextsAreCutBetweenCharacters) {
  RepairRecord record = Record(1, 1);
  record.detail = std::string(SqliteJournal::kMaxTextBytes - 1, 'd') + "\xc3\xb6";
  Store(record);
  record.detail.resize(SqliteJournal::kMaxTextBytes - 1);
  EXPECT_EQ(journal_->Recent(1).value(), std::vector<RepairRecord>{record});
}

TEST_F(SqliteJournalTest, SharesTheFileWithTheCatalog) {
  auto catalog = SqliteCatalog::Open(path_, {});
  ASSERT_TRUE(catalog.ok()) << catalog.status();
  std::thread loader([&] {
    for (int i = 0; i < 100; ++i) {
      const std::string id = std::to_string(i);
      EXPECT_TRUE((*catalog)->Put({Stripe{"s" + id, "rs(2,1)", 1, {{"b" + id, "n"}}}}).ok());
    }
  });
  for (RepairId id = 0; id < 100; ++id) Store(Record(id, 1));
  loader.join();
  EXPECT_EQ((*catalog)->CountStripes().value(), 100u);
  EXPECT_EQ(RecentIds().size(), 100u);
}

TEST_F(SqliteJournalTest, RecoveriesWaitForTheDiskAndRepairsDoNot) {
  Store(Record(1, 1));
  int before = syncs;
  Store(Record(2, 2));
  EXPECT_EQ(syncs, before) << "a repair's begin waits for no disk";
  RecoveryRecord recovery;
  recovery.recovery_id = 1;
  recovery.request.node = "node-1";
  for (const RecoveryState state : {RecoveryState::kRunning, RecoveryState::kPaused}) {
    before = syncs;
    recovery.state = state;
    ASSERT_TRUE(journal_->RecordRecovery(recovery).ok());
    ASSERT_TRUE(journal_->Sync().ok());
    EXPECT_GT(syncs, before);
  }
}

TEST_F(SqliteJournalTest, NothingWaitsForADiskThatIsSlow) {
  RecoveryRecord recovery;
  recovery.recovery_id = 1;
  recovery.request.transport = TransportKind::kTcp;
  ASSERT_TRUE(journal_->RecordRecovery(recovery).ok());
  absl::Status meanwhile = absl::InternalError("nothing was synced");
  during_sync = [&] {
    recovery.state = RecoveryState::kPaused;
    meanwhile = journal_->Record(Record(1, 1));
    if (meanwhile.ok()) meanwhile = journal_->RecordRecovery(recovery);
  };
  ASSERT_TRUE(journal_->Sync().ok());
  EXPECT_TRUE(meanwhile.ok()) << meanwhile;
  EXPECT_EQ(journal_->Recoveries(1).value(), std::vector<RecoveryRecord>{recovery});
  EXPECT_EQ(RecentIds(), std::vector<RepairId>{1});
}

TEST_F(SqliteJournalTest, ALogThatCannotBeSyncedMeansThatTheOutcomeIsUnknown) {
  EXPECT_TRUE(absl::IsUnknown(SyncSqliteLog(directory_.File("none.db"))));
}

TEST(RepairStateTest, Names) {
  EXPECT_STREQ(RepairStateName(RepairState::kRunning), "running");
  EXPECT_STREQ(RepairStateName(RepairState::kDone), "done");
  EXPECT_STREQ(RepairStateName(RepairState::kFailed), "failed");
  EXPECT_STREQ(RepairStateName(RepairState::kInterrupted), "interrupted");
  EXPECT_STREQ(RepairStateName(RepairState::kCancelled), "cancelled");
  EXPECT_EQ(RepairStateNamed("cancelled"), RepairState::kCancelled);
}

TEST_F(SqliteJournalTest, KeepsRecoveries) {
  RecoveryRecord first;
  first.recovery_id = 1;
  first.request = {"node-1", {"node-2", "node-3"},  "rp", RecoveryPolicy::kLeastRecent,
                   4096,     TransportKind::kRedis, 3};
  first.blocks = 10;
  first.bytes = 1 << 30;
  first.started_unix_ms = 5;
  RecoveryRecord second = first;
  second.recovery_id = 2;
  second.request.hosts.clear();
  second.state = RecoveryState::kPartial;
  second.done_blocks = 7;
  second.done_bytes = 700;
  second.failed_blocks = 3;
  second.ended_unix_ms = 9;
  ASSERT_TRUE(journal_->RecordRecovery(first).ok());
  ASSERT_TRUE(journal_->RecordRecovery(second).ok());
  first.state = RecoveryState::kPaused;
  ASSERT_TRUE(journal_->RecordRecovery(first).ok());
  Open();
  EXPECT_EQ(journal_->Recoveries(10).value(), (std::vector<RecoveryRecord>{second, first}));
  EXPECT_EQ(journal_->Recoveries(1).value(), (std::vector<RecoveryRecord>{second, first}));
  first.request.hosts = {std::string(256, 'x')};
  EXPECT_TRUE(absl::IsInvalidArgument(journal_->RecordRecovery(first)));
}

}  // namespace
}  // namespace ecpipe::sqlite_journal_test
