// SPDX-License-Identifier: Apache-2.0
// Databases as versions 2 to 6 wrote them; sqlite_versions_test.cc has those after.
#include "coordinator/store/sqlite_upgrade.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/escaping.h"
#include "base/bytes/crc32c.h"
#include "coordinator/sources/sqlite_losses.h"
#include "coordinator/store/sqlite_catalog.h"
#include "coordinator/store/sqlite_journal.h"
#include "coordinator/store/sqlite_schema.h"
#include "unit/coordinator/store/scratch_directory.h"

namespace ecpipe::sqlite_upgrade_test {
namespace {

using ::testing::HasSubstr;

std::string Number(uint64_t value, size_t bytes) {
  std::string out;
  for (size_t i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
  return out;
}

// Puts the right checksum behind any body, so that the checks after it are what must hold.
std::string WithCrc(const Stripe& stripe, const std::string& body) {
  const std::string covered = Number(stripe.stripe_id.size(), 4) + stripe.stripe_id +
                              Number(stripe.code.size(), 4) + stripe.code +
                              Number(stripe.block_bytes, 8) + body;
  const uint32_t crc = Crc32c({reinterpret_cast<const uint8_t*>(covered.data()), covered.size()});
  return body + Number(crc, 4);
}

const std::map<int64_t, std::string> kNodes = {{3, "n3"}, {4, "n4"}, {300, "n300"}};

Stripe SomeStripe() {
  return {"s1", "rs-cauchy(4,2)", 1 << 20, {{"b-1", "n3"}, {"b-2", "n4"}, {"b-2x", "n300"}}};
}
const std::string kBody = std::string("\x01\x03", 2) + std::string("\x03\x00\x03", 3) + "b-1" +
                          std::string("\x04\x02\x01", 3) + "2" + "\xac\x02\x03\x01" + "x";

// As SomeStripe, with checksums, in the second format.
Stripe CheckedStripe() {
  Stripe stripe = SomeStripe();
  for (BlockPlace& place : stripe.blocks)
    place.sha256 = std::string(64, place.block_id.back() == 'x' ? 'a' : '7');
  return stripe;
}
std::string CheckedBody() {
  const std::string seven(32, '\x77');
  return std::string("\x02\x03", 2) + std::string("\x03\x00\x03", 3) + "b-1" + seven +
         std::string("\x04\x02\x01", 3) + "2" + seven + "\xac\x02\x03\x01" + "x" +
         std::string(32, '\xaa');
}

absl::Status Unpack(const std::string& members, Stripe stripe = SomeStripe()) {
  const std::vector<BlockPlace> blocks = stripe.blocks;
  stripe.blocks.clear();
  absl::Status status = UnpackMembers(members, kNodes, &stripe);
  EXPECT_EQ(stripe.blocks, status.ok() ? blocks : std::vector<BlockPlace>{});
  return status;
}

TEST(UnpackMembersTest, ReadsBothFormats) {
  EXPECT_TRUE(Unpack(WithCrc(SomeStripe(), kBody)).ok());
  EXPECT_TRUE(Unpack(WithCrc(SomeStripe(), CheckedBody()), CheckedStripe()).ok());
}

TEST(UnpackMembersTest, EveryFieldIsUnderTheChecksum) {
  const std::string bytes = WithCrc(SomeStripe(), kBody);
  std::vector<Stripe> others(4, SomeStripe());
  others[0].stripe_id = "s2";
  others[1].code = "rs-cauchy(4,3)";
  others[2].block_bytes = 1;
  others[3].stripe_id = "s1r";
  others[3].code = "s-cauchy(4,2)";
  for (const Stripe& other : others) EXPECT_TRUE(absl::IsDataLoss(Unpack(bytes, other)));
}

TEST(UnpackMembersTest, EveryFlippedBitAndEveryLengthIsFound) {
  const std::string bytes = WithCrc(SomeStripe(), kBody);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_TRUE(absl::IsDataLoss(Unpack(damaged))) << "bit " << bit;
  }
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_TRUE(absl::IsDataLoss(Unpack(bytes.substr(0, size))));
  }
  EXPECT_TRUE(absl::IsDataLoss(Unpack(bytes + '\0')));
}

TEST(UnpackMembersTest, MalformedBodiesUnderARightChecksum) {
  const std::string max_varint = "\xff\xff\xff\xff\x0f";
  const std::string zero(1, '\0');
  const std::vector<std::string> bodies = {
      "",
      "\x01",
      "\x01" + zero,                    // no members
      "\x03\x01\x03" + zero + "\x01x",  // another format
      "\x02\x01\x03" + zero + "\x01x",  // a checksum is missing
      "\x02\x01\x03" + zero + "\x01x" + std::string(31, 's'),
      "\x01\x80\x02",                      // 256 members
      "\x01\x01\x03" + zero + zero,        // an empty id
      "\x01\x01\x05" + zero + "\x01x",     // a node that there is not
      "\x01\x01\x03\x05\x01x",             // shares bytes with nothing
      "\x01\x01\x03" + zero + max_varint,  // a suffix of 4 GiB
      "\x01\x01\x03" + max_varint + "\x01x",
      "\x01\x01\xff\xff\xff\xff\x1f" + zero + "\x01x",  // over 32 bits
      "\x01\x01\x83\x80\x80\x80\x80\x80" + zero + "\x01x",
      "\x01\x01\x03" + zero + "\x01xy",                            // a byte too many
      "\x01\x01\x03" + zero + "\x80\x02" + std::string(256, 'x'),  // an id that is too long
  };
  for (const std::string& body : bodies) {
    Stripe stripe = SomeStripe();
    stripe.blocks.clear();
    EXPECT_TRUE(absl::IsDataLoss(UnpackMembers(WithCrc(stripe, body), kNodes, &stripe)))
        << testing::PrintToString(body);
  }
}

TEST(UnpackIdsTest, ListsOfIds) {
  EXPECT_EQ(UnpackIds(std::string("\x02"
                                  "b1"
                                  "\x00"
                                  "\x01"
                                  "c",
                                  6))
                .value(),
            (std::vector<std::string>{"b1", "", "c"}));
  EXPECT_TRUE(absl::IsDataLoss(UnpackIds("\x05"
                                         "b1")
                                   .status()));
}

// ---- Whole files ----------------------------------------------------------------------------

constexpr const char* kVersion6 = R"sql(
CREATE TABLE stripes(
  row INTEGER PRIMARY KEY, stripe_id TEXT NOT NULL UNIQUE, code INTEGER NOT NULL,
  block_bytes INTEGER NOT NULL, members BLOB NOT NULL);
CREATE TABLE nodes(ref INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE codes(ref INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE block_index(
  hash INTEGER NOT NULL, stripe INTEGER NOT NULL, PRIMARY KEY(hash, stripe)) WITHOUT ROWID;
CREATE TABLE block_index_recent(
  hash INTEGER NOT NULL, stripe INTEGER NOT NULL, PRIMARY KEY(hash, stripe)) WITHOUT ROWID;
CREATE TABLE totals(
  one INTEGER PRIMARY KEY CHECK(one = 1), stripes INTEGER NOT NULL, recent INTEGER NOT NULL);
INSERT INTO totals VALUES(1, 1, 0);
CREATE TABLE repairs(
  repair_id INTEGER PRIMARY KEY, attempt INTEGER NOT NULL, block_ids BLOB NOT NULL,
  first_byte INTEGER NOT NULL, bytes INTEGER NOT NULL, scheme TEXT NOT NULL,
  transport TEXT NOT NULL, requestor TEXT NOT NULL, hosts BLOB NOT NULL, moved BLOB NOT NULL,
  recovery_id INTEGER NOT NULL, state INTEGER NOT NULL,
  started_unix_ms INTEGER NOT NULL, ended_unix_ms INTEGER NOT NULL, detail TEXT NOT NULL);
CREATE INDEX repairs_by_start ON repairs(started_unix_ms, state);
CREATE TABLE recoveries(
  recovery_id INTEGER PRIMARY KEY, node TEXT NOT NULL, targets BLOB NOT NULL,
  scheme TEXT NOT NULL, policy INTEGER NOT NULL, slice_bytes INTEGER NOT NULL,
  transport INTEGER NOT NULL, streams_per_node INTEGER NOT NULL, state INTEGER NOT NULL,
  blocks INTEGER NOT NULL, bytes INTEGER NOT NULL, done_blocks INTEGER NOT NULL,
  done_bytes INTEGER NOT NULL, failed_blocks INTEGER NOT NULL,
  started_unix_ms INTEGER NOT NULL, ended_unix_ms INTEGER NOT NULL,
  rebuild_after_unix_ms INTEGER NOT NULL DEFAULT 0);
CREATE TABLE lost_nodes(
  node TEXT PRIMARY KEY, rack TEXT NOT NULL, control_address TEXT NOT NULL,
  data_address TEXT NOT NULL, storage_id TEXT NOT NULL, heard_unix_ms INTEGER NOT NULL);
CREATE TABLE lost_blocks(
  node TEXT NOT NULL, pool TEXT NOT NULL, blocks BLOB NOT NULL, PRIMARY KEY(node, pool));
INSERT INTO nodes VALUES(3, 'n3'), (4, 'n4'), (300, 'n300');
INSERT INTO codes VALUES(9, 'rs-cauchy(4,2)');
-- Blocks b1, b2 and two empty ids, the first of which node-3 has stored.
INSERT INTO repairs VALUES(7, 2, x'0262310262320000', 5, 100, 'rp', 'tcp', 'client',
  x'066e6f64652d33', x'00', 4, 0, 50, 0, '');
INSERT INTO repairs VALUES(-1, 1, x'026231', 0, 100, 'ppr', 'redis', 'client', x'', x'', 0, 2, 60,
  70, 'why');
INSERT INTO recoveries VALUES(4, 'n0', x'026e33026e34', 'rp', 1, 4096, 1, 3, 3, 10, 1000, 7, 700, 3,
  5, 9, 11);
INSERT INTO lost_nodes VALUES('n8', '/r', 'c', 'd', 's', 12);
PRAGMA application_id = 1701015657;
)sql";

// What makes a file of a version before 6 of that.
const std::map<int, const char*> kBack = {
    {6, ""},
    {5, "DROP TABLE lost_nodes; DROP TABLE lost_blocks"},
    {4, "DROP TABLE lost_nodes; DROP TABLE lost_blocks"},
    {3,
     "DROP TABLE lost_nodes; DROP TABLE lost_blocks;"
     "ALTER TABLE recoveries DROP COLUMN rebuild_after_unix_ms"},
    {2,
     "DROP TABLE lost_nodes; DROP TABLE lost_blocks;"
     "ALTER TABLE recoveries DROP COLUMN rebuild_after_unix_ms;"
     "ALTER TABLE repairs DROP COLUMN moved; ALTER TABLE repairs RENAME COLUMN hosts TO host;"
     "UPDATE repairs SET host = CASE repair_id WHEN 7 THEN 'node-3' ELSE '' END"}};

class SqliteUpgradeTest : public testing::Test {
 protected:
  void Write(int version, const std::string& more = "") {
    Run(kVersion6 + StripeSql("1", WithCrc(SomeStripe(), kBody)) + more);
    Run(kBack.at(version));
    Run("PRAGMA user_version = " + std::to_string(version));
  }
  static std::string StripeSql(const std::string& number, const std::string& members) {
    return "INSERT INTO stripes VALUES(" + number + ", 's" + number + "', 9, 1048576, x'" +
           absl::BytesToHexString({members.data(), members.size()}) + "');";
  }
  void Run(const std::string& sql) {
    auto db = SqliteDb::Open(path_, {});
    ASSERT_TRUE(db.ok()) << db.status();
    const absl::Status status = (*db)->Run(sql.c_str());
    ASSERT_TRUE(status.ok()) << status;
  }
  int64_t Query(const char* sql) {
    auto db = SqliteDb::Open(path_, {});
    auto query = (*db)->Prepare(sql);
    EXPECT_TRUE(query.ok() && query->Step().value_or(false)) << query.status();
    return query->Int(0);
  }
  std::unique_ptr<SqliteCatalog> Catalog() {
    auto catalog = SqliteCatalog::Open(path_, {});
    EXPECT_TRUE(catalog.ok()) << catalog.status();
    return catalog.ok() ? *std::move(catalog) : nullptr;
  }

  ScratchDirectory directory_;
  std::string path_ = directory_.File("ecpipe.db");
};

class SqliteUpgradeFromTest : public SqliteUpgradeTest, public testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Versions, SqliteUpgradeFromTest, testing::Values(2, 3, 4, 5, 6));

TEST_P(SqliteUpgradeFromTest, NothingIsLost) {
  Write(GetParam());
  for (int restart = 0; restart < 2; ++restart) {
    auto catalog = Catalog();
    ASSERT_NE(catalog, nullptr);
    EXPECT_EQ(catalog->FindStripe("s1").value_or(Stripe{}), SomeStripe());
    EXPECT_EQ(catalog->FindBlock("b-2x").value().block_index, 2);
    EXPECT_EQ(catalog->ListNode("n300", "", 9).value().blocks.size(), 1u);
    EXPECT_EQ(catalog->CountStripes().value(), 1u);

    const auto journal = SqliteJournal::Open(path_).value();
    RepairRecord repair;
    repair.repair_id = 7;
    repair.attempt = 2;
    repair.block_ids = {"b1", "b2", "", ""};
    repair.offset = 5;
    repair.bytes = 100;
    repair.scheme = "rp";
    repair.transport = "tcp";
    repair.requestor = "client";
    repair.hosts = {"node-3"};
    if (GetParam() > 2) repair.moved = {0};
    repair.recovery_id = 4;
    repair.started_unix_ms = 50;
    EXPECT_EQ(journal->Find(7).value(), repair);
    const RepairRecord failed = journal->Find(UINT64_MAX).value();
    EXPECT_EQ(failed.state, RepairState::kFailed);
    EXPECT_EQ(failed.transport, "redis");
    EXPECT_EQ(failed.detail, "why");
    EXPECT_TRUE(failed.hosts.empty());

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
    if (GetParam() > 3) recovery.rebuild_after_unix_ms = 11;
    EXPECT_EQ(journal->Recoveries(9).value(), std::vector<RecoveryRecord>{recovery});
  }
  EXPECT_EQ(Query("SELECT count(*) FROM lost_nodes"), GetParam() == 6 ? 1 : 0);
  EXPECT_EQ(Query("PRAGMA user_version"), kSqliteSchemaVersion);
  // The tables are those of a new file.
  const std::string fresh = directory_.File("fresh.db");
  ASSERT_TRUE(EnsureSchema(fresh).ok());
  Run("ATTACH '" + fresh +
      "' AS fresh; CREATE TABLE same AS SELECT count(*) AS n FROM"
      " (SELECT type, name, tbl_name FROM sqlite_schema EXCEPT"
      " SELECT type, name, tbl_name FROM fresh.sqlite_schema) WHERE name <> 'same'");
  EXPECT_EQ(Query("SELECT n FROM same"), 0);
}

TEST_P(SqliteUpgradeFromTest, TheOldFileIsKept) {
  Write(GetParam());
  const std::string kept = path_ + ".before-v" + std::to_string(kSqliteSchemaVersion);
  std::ofstream(kept) << "of an upgrade that was killed";
  ASSERT_NE(Catalog(), nullptr);
  const std::string newer = std::exchange(path_, kept);
  EXPECT_EQ(Query("PRAGMA user_version"), GetParam());
  EXPECT_EQ(Query("SELECT count(*) FROM stripes WHERE length(members) > 0"), 1);
  // It is as good as the file: one can go back to it, and upgrade again.
  auto catalog = Catalog();
  ASSERT_NE(catalog, nullptr);
  EXPECT_EQ(catalog->FindStripe("s1").value_or(Stripe{}), SomeStripe());
  catalog.reset();
  // A file of today's version is not copied.
  path_ = newer;
  std::filesystem::remove(kept);
  ASSERT_NE(Catalog(), nullptr);
  EXPECT_FALSE(std::filesystem::exists(kept));
}

TEST_P(SqliteUpgradeFromTest, LossesCanBeKept) {
  Write(GetParam());
  const auto losses = SqliteLosses::Open(path_).value();
  NodeRecord node;
  node.node_id = "n1";
  EXPECT_TRUE(losses->Keep(node, 1, {}).ok());
  EXPECT_EQ(losses->Nodes().value(), GetParam() == 6 ? (std::vector<std::string>{"n1", "n8"})
                                                     : std::vector<std::string>{"n1"});
}

TEST_F(SqliteUpgradeTest, DamageStaysDamageAndHoldsUpNobody) {
  Write(
      6,
      StripeSql("2", "rubbish") +
          "INSERT INTO repairs SELECT 8, attempt, x'05', first_byte, bytes, scheme, transport,"
          " requestor, hosts, moved, recovery_id, state, 1, 0, '' FROM repairs WHERE repair_id = 7;"
          "INSERT INTO recoveries SELECT 5, node, x'05', scheme, policy, slice_bytes, transport,"
          " streams_per_node, state, blocks, bytes, 0, 0, 0, 1, 0, 0 FROM recoveries;"
          "UPDATE repairs SET state = 9 WHERE repair_id = -1;");
  auto catalog = Catalog();
  ASSERT_NE(catalog, nullptr);
  EXPECT_EQ(catalog->List("", 10).value().stripes, std::vector<Stripe>{SomeStripe()});
  const absl::Status damaged = catalog->FindStripe("s2").status();
  EXPECT_TRUE(absl::IsDataLoss(damaged)) << damaged;
  EXPECT_THAT(std::string(damaged.message()), HasSubstr("\"s2\""));
  Stripe again = SomeStripe();
  again.stripe_id = "s2";
  for (BlockPlace& place : again.blocks) place.block_id += "-of-s2";
  ASSERT_TRUE(catalog->Put({again}).ok());
  EXPECT_EQ(catalog->FindStripe("s2").value(), again);

  const auto journal = SqliteJournal::Open(path_).value();
  EXPECT_TRUE(absl::IsDataLoss(journal->Find(8).status()));
  EXPECT_TRUE(absl::IsDataLoss(journal->Find(UINT64_MAX).status()));
  EXPECT_EQ(journal->Recent(10).value().size(), 1u);
  // A recovery without its targets would store blocks anywhere.
  EXPECT_EQ(journal->Recoveries(10).value().size(), 1u);
}

TEST_F(SqliteUpgradeTest, AFailedUpgradeChangesNothing) {
  // Two stripes claim a block, which no program has stored.
  Stripe twin = SomeStripe();
  twin.stripe_id = "s2";
  Write(6, StripeSql("2", WithCrc(twin, kBody)));
  EXPECT_FALSE(SqliteCatalog::Open(path_, {}).ok());
  EXPECT_EQ(Query("PRAGMA user_version"), 6);
  EXPECT_EQ(Query("SELECT count(*) FROM stripes WHERE length(members) > 0"), 2);
  Run("DELETE FROM stripes WHERE row = 2");
  ASSERT_NE(Catalog(), nullptr);
  EXPECT_EQ(Query("PRAGMA user_version"), kSqliteSchemaVersion);
}

TEST_F(SqliteUpgradeTest, ANewerSchemaIsRefused) {
  Write(6);
  ASSERT_NE(Catalog(), nullptr);
  Run("PRAGMA user_version = 99");
  const absl::Status status = SqliteCatalog::Open(path_, {}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("99"));
  Run("PRAGMA user_version = " + std::to_string(kSqliteSchemaVersion));
  EXPECT_EQ(Catalog()->FindStripe("s1").value(), SomeStripe());
}

TEST_F(SqliteUpgradeTest, ForeignFilesAreRefused) {
  const std::string foreign = directory_.File("foreign.db");
  auto db = SqliteDb::Open(foreign, {});
  ASSERT_TRUE(db.ok());
  ASSERT_TRUE((*db)->Run("CREATE TABLE theirs(x)").ok());
  db->reset();
  EXPECT_TRUE(absl::IsFailedPrecondition(SqliteCatalog::Open(foreign, {}).status()));

  const std::string garbage = directory_.File("garbage.db");
  std::ofstream(garbage) << std::string(8192, 'g');
  EXPECT_TRUE(absl::IsDataLoss(SqliteCatalog::Open(garbage, {}).status()));
  EXPECT_TRUE(absl::IsPermissionDenied(
      SqliteCatalog::Open(directory_.File("no/such/directory.db"), {}).status()));
}

}  // namespace
}  // namespace ecpipe::sqlite_upgrade_test
