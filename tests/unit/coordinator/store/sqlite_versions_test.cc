// SPDX-License-Identifier: Apache-2.0
// A database that a program of each version has written, as sqlite3 dumps it, and upgrades. A new
// version gets a text of its own here; older texts stay as they are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/sources/sqlite_losses.h"
#include "coordinator/store/limit_book.h"
#include "coordinator/store/sqlite_catalog.h"
#include "coordinator/store/sqlite_journal.h"
#include "coordinator/store/sqlite_schema.h"
#include "unit/coordinator/store/scratch_directory.h"

namespace ecpipe::sqlite_versions_test {
namespace {

// Stripe s1 with checksums; s2, whose third block has been moved to n4; a repair that runs, of
// which one row is stored; one that failed; a recovery that left blocks out; a drain that has
// ended, and keeps its node out; what a dead node had; limits.
constexpr const char* kVersion1 = R"sql(
CREATE TABLE nodes(node INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
INSERT INTO nodes VALUES(1,'n3');
INSERT INTO nodes VALUES(2,'n4');
INSERT INTO nodes VALUES(3,'n5');
INSERT INTO nodes VALUES(4,'n6');
INSERT INTO nodes VALUES(5,'n7');
CREATE TABLE stripes(
  stripe INTEGER PRIMARY KEY, stripe_id TEXT NOT NULL UNIQUE, code TEXT NOT NULL,
  block_bytes BIGINT NOT NULL, crc32c BIGINT NOT NULL);
INSERT INTO stripes VALUES(1,'s1','rs-cauchy(4,2)',1048576,3790360216);
INSERT INTO stripes VALUES(2,'s2','rs(3,2)',4096,2240468880);
CREATE TABLE blocks(
  stripe INTEGER NOT NULL REFERENCES stripes(stripe), position INTEGER NOT NULL,
  block_id TEXT NOT NULL, node INTEGER NOT NULL REFERENCES nodes(node), sha256 TEXT NOT NULL,
  PRIMARY KEY(stripe, position)) WITHOUT ROWID;
INSERT INTO blocks VALUES(1,0,'b-1',1,
  '7777777777777777777777777777777777777777777777777777777777777777');
INSERT INTO blocks VALUES(1,1,'b-2',2,
  '7777777777777777777777777777777777777777777777777777777777777777');
INSERT INTO blocks VALUES(1,2,'b-3',3,
  '7777777777777777777777777777777777777777777777777777777777777777');
INSERT INTO blocks VALUES(1,3,'b-4',4,
  '7777777777777777777777777777777777777777777777777777777777777777');
INSERT INTO blocks VALUES(2,0,'c-1',1,'');
INSERT INTO blocks VALUES(2,1,'c-2',3,'');
INSERT INTO blocks VALUES(2,2,'c-3',2,'');
CREATE TABLE repairs(
  repair_id BIGINT PRIMARY KEY, attempt BIGINT NOT NULL, first_byte BIGINT NOT NULL,
  bytes BIGINT NOT NULL, scheme TEXT NOT NULL, transport TEXT NOT NULL, requestor TEXT NOT NULL,
  recovery_id BIGINT NOT NULL, state TEXT NOT NULL, started_unix_ms BIGINT NOT NULL,
  ended_unix_ms BIGINT NOT NULL, detail TEXT NOT NULL);
INSERT INTO repairs VALUES(7,2,5,100,'rp','tcp','client',4,'running',50,0,'');
INSERT INTO repairs VALUES(-1,1,0,100,'ppr','redis','client',0,'failed',60,70,'why');
CREATE TABLE repair_blocks(
  repair_id BIGINT NOT NULL REFERENCES repairs(repair_id), position INTEGER NOT NULL,
  block_id TEXT, host TEXT, moved INTEGER NOT NULL, PRIMARY KEY(repair_id, position));
INSERT INTO repair_blocks VALUES(7,0,'b-1','n5',1);
INSERT INTO repair_blocks VALUES(7,1,'b-2','n6',0);
INSERT INTO repair_blocks VALUES(-1,0,'c-1',NULL,0);
CREATE TABLE recoveries(
  recovery_id BIGINT PRIMARY KEY, node TEXT NOT NULL, scheme TEXT NOT NULL, policy TEXT NOT NULL,
  slice_bytes BIGINT NOT NULL, transport TEXT NOT NULL, streams_per_node BIGINT NOT NULL,
  state TEXT NOT NULL, blocks BIGINT NOT NULL, bytes BIGINT NOT NULL, done_blocks BIGINT NOT NULL,
  done_bytes BIGINT NOT NULL, failed_blocks BIGINT NOT NULL, started_unix_ms BIGINT NOT NULL,
  ended_unix_ms BIGINT NOT NULL, rebuild_after_unix_ms BIGINT NOT NULL,
  kind TEXT NOT NULL DEFAULT 'rebuild', keeps_out INTEGER NOT NULL DEFAULT 0);
INSERT INTO recoveries VALUES(4,'n0','rp','least-recent',4096,'redis',3,'partial',10,1000,7,700,3,5,
  9,11,'rebuild',0);
INSERT INTO recoveries VALUES(5,'n9','','balanced',0,'tcp',0,'done',0,0,0,0,0,20,30,0,'move',1);
CREATE TABLE recovery_targets(
  recovery_id BIGINT NOT NULL REFERENCES recoveries(recovery_id), position INTEGER NOT NULL,
  node TEXT NOT NULL, PRIMARY KEY(recovery_id, position));
INSERT INTO recovery_targets VALUES(4,0,'n3');
INSERT INTO recovery_targets VALUES(4,1,'n4');
CREATE TABLE lost_nodes(
  node TEXT PRIMARY KEY, rack TEXT NOT NULL, control_address TEXT NOT NULL,
  data_address TEXT NOT NULL, storage_id TEXT NOT NULL, heard_unix_ms INTEGER NOT NULL);
INSERT INTO lost_nodes VALUES('n8','/r','c','d','s',12);
CREATE TABLE lost_blocks(
  node TEXT NOT NULL, pool TEXT NOT NULL, blocks BLOB NOT NULL, PRIMARY KEY(node, pool));
INSERT INTO lost_blocks VALUES('n8','BP-1',X'feffffffffffffffe9030000000000000700000000000000');
CREATE TABLE limits(
  node TEXT NOT NULL, name TEXT NOT NULL, value DOUBLE PRECISION NOT NULL,
  PRIMARY KEY(node, name));
INSERT INTO limits VALUES('','repair_bytes_per_second',125000.0);
INSERT INTO limits VALUES('','max_running',7.0);
INSERT INTO limits VALUES('n3','repair_bytes_per_second',0.0);
INSERT INTO limits VALUES('n3','max_sessions',4.0);
CREATE UNIQUE INDEX blocks_by_id ON blocks(block_id);
CREATE INDEX blocks_by_node ON blocks(node, stripe);
CREATE INDEX repairs_by_start ON repairs(started_unix_ms, state);
PRAGMA application_id = 1701015657;
PRAGMA user_version = 1;
)sql";

Stripe WithChecksums() {
  Stripe stripe = {"s1",
                   "rs-cauchy(4,2)",
                   1 << 20,
                   {{"b-1", "n3"}, {"b-2", "n4"}, {"b-3", "n5"}, {"b-4", "n6"}}};
  for (BlockPlace& place : stripe.blocks) place.sha256 = std::string(64, '7');
  return stripe;
}
Stripe WithAMovedBlock() {
  return {"s2", "rs(3,2)", 4096, {{"c-1", "n3"}, {"c-2", "n5"}, {"c-3", "n4"}}};
}

RepairRecord RunningRepair() {
  RepairRecord repair;
  repair.repair_id = 7;
  repair.attempt = 2;
  repair.block_ids = {"b-1", "b-2"};
  repair.offset = 5;
  repair.bytes = 100;
  repair.scheme = "rp";
  repair.transport = "tcp";
  repair.requestor = "client";
  repair.hosts = {"n5", "n6"};
  repair.moved = {0};
  repair.recovery_id = 4;
  repair.started_unix_ms = 50;
  return repair;
}

RecoveryRecord EndedRecovery() {
  RecoveryRecord recovery;
  recovery.recovery_id = 4;
  recovery.request = {"n0", {"n3", "n4"},          "rp", RecoveryPolicy::kLeastRecent,
                      4096, TransportKind::kRedis, 3};
  recovery.state = RecoveryState::kPartial;
  recovery.blocks = 10;
  recovery.bytes = 1000;
  recovery.done_blocks = 7;
  recovery.done_bytes = 700;
  recovery.failed_blocks = 3;
  recovery.started_unix_ms = 5;
  recovery.ended_unix_ms = 9;
  recovery.rebuild_after_unix_ms = 11;
  return recovery;
}

RecoveryRecord EndedDrain() {
  RecoveryRecord drain;
  drain.recovery_id = 5;
  drain.request.node = "n9";
  drain.request.kind = RecoveryKind::kMove;
  drain.request.transport = TransportKind::kTcp;
  drain.state = RecoveryState::kDone;
  drain.keeps_out = true;
  drain.started_unix_ms = 20;
  drain.ended_unix_ms = 30;
  return drain;
}

// "TABLE.COLUMN TYPE DEFAULT" of each column.
std::vector<std::string> Columns(const std::string& path) {
  const auto db = SqliteDb::Open(path, {}).value();
  auto query = db->Prepare(
      "SELECT t.name || '.' || c.name || ' ' || c.type || ' ' || ifnull(c.dflt_value, '')"
      " FROM sqlite_schema AS t, pragma_table_info(t.name) AS c ORDER BY 1");
  std::vector<std::string> columns;
  while (query.ok() && query->Step().value_or(false)) columns.emplace_back(query->Bytes(0));
  return columns;
}

// The first upgrade that there could be.
const SchemaUpgrades kExample = {
    "ALTER TABLE recoveries ADD COLUMN note TEXT NOT NULL DEFAULT 'none'"};

class SqliteVersionsTest : public testing::Test {
 protected:
  void SetUp() override { Run(kVersion1); }
  void Run(const std::string& sql) {
    const auto db = SqliteDb::Open(path_, {}).value();
    const absl::Status ran = db->Run(sql.c_str());
    ASSERT_TRUE(ran.ok()) << ran;
  }
  static std::string Query(const std::string& path, const char* sql) {
    const auto db = SqliteDb::Open(path, {}).value();
    auto query = db->Prepare(sql);
    return query.ok() && query->Step().value_or(false) ? std::string(query->Bytes(0)) : "nothing";
  }

  ScratchDirectory directory_;
  const std::string path_ = directory_.File("ecpipe.db");
  const std::string kept_ = path_ + ".before-v2";
};

TEST_F(SqliteVersionsTest, CatalogIsRead) {
  for (int restart = 0; restart < 2; ++restart) {
    auto opened = SqliteCatalog::Open(path_, {});
    ASSERT_TRUE(opened.ok()) << opened.status();
    const auto catalog = *std::move(opened);
    EXPECT_EQ(catalog->List("", 9).value().stripes,
              (std::vector<Stripe>{WithChecksums(), WithAMovedBlock()}));
    EXPECT_EQ(catalog->FindBlock("c-3").value().block_index, 2);
    EXPECT_EQ(catalog->ListNode("n4", "", 9).value().blocks.size(), 2u);
    EXPECT_EQ(catalog->CountStripes().value(), 2u);
  }
}

TEST_F(SqliteVersionsTest, JournalIsRead) {
  const auto journal = SqliteJournal::Open(path_).value();
  EXPECT_EQ(journal->Find(7).value(), RunningRepair());
  const RepairRecord failed = journal->Find(UINT64_MAX).value();
  EXPECT_EQ(failed.state, RepairState::kFailed);
  EXPECT_EQ(failed.detail, "why");
  EXPECT_TRUE(failed.hosts.empty());
  EXPECT_EQ(journal->Recoveries(9).value(),
            (std::vector<RecoveryRecord>{EndedDrain(), EndedRecovery()}));
}

TEST_F(SqliteVersionsTest, LossesAndLimitsAreRead) {
  const LostNode lost = SqliteLosses::Open(path_).value()->Load("n8").value();
  EXPECT_EQ(lost.record.rack, "/r");
  EXPECT_EQ(lost.heard_unix_ms, 12);
  const std::map<std::string, BlockList> pools = {{"BP-1", BlockList({{-2, 1001, 7}})}};
  EXPECT_EQ(lost.blocks.pools, pools);
  Limits limits;
  limits.cluster = {.repair_bytes_per_second = 125'000.0, .max_running = 7};
  limits.nodes["n3"] = {.repair_bytes_per_second = 0.0, .max_sessions = 4};
  EXPECT_EQ(LimitBook::Open(path_).value()->limits(), limits);
}

TEST_F(SqliteVersionsTest, ItsTablesAreThoseOfANewFile) {
  const std::string fresh = directory_.File("fresh.db");
  ASSERT_TRUE(EnsureSchema(fresh).ok());
  ASSERT_TRUE(EnsureSchema(path_).ok());
  EXPECT_GT(Columns(fresh).size(), 50u);
  EXPECT_EQ(Columns(path_), Columns(fresh));
  EXPECT_EQ(Query(fresh, "PRAGMA user_version"), std::to_string(VersionAfter(kSchemaUpgrades)));
}

TEST_F(SqliteVersionsTest, AnUpgradeRunsOnceAndKeepsTheOldFile) {
  std::ofstream(kept_) << "of an upgrade that was killed";
  for (int restart = 0; restart < 2; ++restart) {
    ASSERT_TRUE(EnsureSchema(path_, kExample).ok());
    EXPECT_EQ(Query(path_, "PRAGMA user_version"), "2");
    EXPECT_EQ(Query(path_, "SELECT note FROM recoveries"), "none");
    // It is as good as the file: one can go back to it.
    EXPECT_EQ(std::filesystem::exists(kept_), restart == 0);
    if (restart > 0) continue;
    EXPECT_EQ(Query(kept_, "PRAGMA user_version"), "1");
    EXPECT_EQ(Query(kept_, "SELECT count(*) FROM stripes"), "2");
    std::filesystem::remove(kept_);
  }
  const absl::Status older = EnsureSchema(path_);
  EXPECT_TRUE(absl::IsFailedPrecondition(older)) << older;
  EXPECT_THAT(std::string(older.message()), testing::HasSubstr("version 2"));
  EXPECT_EQ(Query(path_, "SELECT note FROM recoveries"), "none");
}

TEST_F(SqliteVersionsTest, AFailedUpgradeChangesNothing) {
  const SchemaUpgrades two = {kExample[0], "INSERT INTO nodes VALUES(1, 'twice')"};
  EXPECT_FALSE(EnsureSchema(path_, two).ok());
  EXPECT_EQ(Query(path_, "PRAGMA user_version"), "1");
  EXPECT_EQ(Query(path_, "SELECT note FROM recoveries"), "nothing");
  EXPECT_TRUE(EnsureSchema(path_).ok());
}

TEST_F(SqliteVersionsTest, FilesOfOthersAreRefused) {
  const std::string foreign = directory_.File("foreign.db");
  ASSERT_TRUE(SqliteDb::Open(foreign, {}).value()->Run("CREATE TABLE theirs(x)").ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(EnsureSchema(foreign)));
  const std::string garbage = directory_.File("garbage.db");
  std::ofstream(garbage) << std::string(8192, 'g');
  EXPECT_TRUE(absl::IsDataLoss(EnsureSchema(garbage)));
  EXPECT_TRUE(absl::IsPermissionDenied(EnsureSchema(directory_.File("no/such/directory.db"))));
}

}  // namespace
}  // namespace ecpipe::sqlite_versions_test
