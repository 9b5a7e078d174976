// SPDX-License-Identifier: Apache-2.0
#include "coordinator/store/state_copy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/file_io.h"
#include "coordinator/store/sqlite_db.h"
#include "unit/coordinator/store/scratch_directory.h"

namespace ecpipe::state_copy_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class StateCopyTest : public testing::Test {
 protected:
  std::unique_ptr<SqliteDb> OpenAt(const std::string& path) {
    auto db = SqliteDb::Open(path, {});
    EXPECT_TRUE(db.ok()) << db.status();
    return db.ok() ? *std::move(db) : nullptr;
  }
  static void Run(SqliteDb* db, const char* sql) {
    const absl::Status status = db->Run(sql);
    EXPECT_TRUE(status.ok()) << status;
  }
  // So large that it is copied in several pieces.
  void Fill(const std::string& name) {
    const auto db = OpenAt(directory_.File(name));
    Run(db.get(),
        "CREATE TABLE t(x INTEGER, y BLOB); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL"
        " SELECT i + 1 FROM n WHERE i < 5000) INSERT INTO t SELECT i, zeroblob(2000) FROM n");
  }
  // Sum over the rows of a copy, by way of a file of its own.
  int64_t SumOf(const DatabaseCopy& copy) {
    std::vector<uint8_t> bytes(copy.bytes);
    EXPECT_TRUE(ReadFully(copy.fd.get(), 0, bytes).ok());
    const std::string path = directory_.File("unpacked-" + copy.name);
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    const auto db = OpenAt(path);
    auto query = db->Prepare("SELECT sum(x) FROM t");
    EXPECT_TRUE(query.ok() && query->Step().value_or(false)) << query.status();
    return query->Int(0);
  }
  std::vector<std::string> Files() {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(directory_.File(""))) {
      const std::string name = entry.path().filename();
      if (name.starts_with(".")) names.push_back(name);
    }
    return names;
  }

  ScratchDirectory directory_;
  static constexpr int64_t kSum = 5000 * 5001 / 2;
};

TEST_F(StateCopyTest, CopiesEveryDatabaseAsItWasAtTheBeginning) {
  Fill("catalog.db");
  Fill("journal.db");
  std::ofstream(directory_.File("not-a-database.txt")) << "x";
  std::ofstream(directory_.File("others.db")) << "somebody else's, and no database";
  const auto writer = OpenAt(directory_.File("journal.db"));
  int told = 0;
  // While the first is copied, the second changes.
  const auto copies = CopyDatabases(directory_.File(""), [&](uint64_t) {
    if (told++ == 0) Run(writer.get(), "DELETE FROM t; INSERT INTO t VALUES(7, x'')");
    return true;
  });
  ASSERT_TRUE(copies.ok()) << copies.status();
  EXPECT_GT(told, 1);
  ASSERT_EQ(copies->size(), 2u);
  EXPECT_EQ((*copies)[0].name, "catalog.db");
  EXPECT_EQ((*copies)[1].name, "journal.db");
  EXPECT_EQ(SumOf((*copies)[0]), kSum);
  EXPECT_EQ(SumOf((*copies)[1]), kSum);
  EXPECT_THAT(Files(), IsEmpty()) << "copies have no names";
}

TEST_F(StateCopyTest, ACopyThatIsGivenUpLeavesNothing) {
  Fill("catalog.db");
  const auto copies = CopyDatabases(directory_.File(""), [](uint64_t) { return false; });
  EXPECT_TRUE(absl::IsCancelled(copies.status())) << copies.status();
  EXPECT_THAT(Files(), IsEmpty());
}

TEST_F(StateCopyTest, WhatAKilledCopyLeftIsRemoved) {
  Fill("catalog.db");
  std::ofstream(directory_.File(".copy-of-catalog.db")) << "half";
  EXPECT_THAT(Files(), ElementsAre(".copy-of-catalog.db"));
  ASSERT_TRUE(RemoveLeftCopies(directory_.File("")).ok());
  EXPECT_THAT(Files(), IsEmpty());
  std::ofstream(directory_.File(".copy-of-catalog.db")) << "half";
  EXPECT_TRUE(CopyDatabases(directory_.File(""), [](uint64_t) { return true; }).ok());
  EXPECT_THAT(Files(), IsEmpty());
}

TEST_F(StateCopyTest, AFileThatIsThereIsNotWrittenOver) {
  Fill("catalog.db");
  std::ofstream(directory_.File("there")) << "x";
  const auto db = OpenAt(directory_.File("catalog.db"));
  EXPECT_FALSE(db->CopyTo(directory_.File("there"), [](uint64_t) { return true; }).ok());
  EXPECT_EQ(std::filesystem::file_size(directory_.File("there")), 1u);
}

}  // namespace
}  // namespace ecpipe::state_copy_test
