// SPDX-License-Identifier: Apache-2.0
#include "coordinator/store/limit_book.h"

#include <gtest/gtest.h>

#include <fstream>

#include "unit/coordinator/store/scratch_directory.h"

namespace ecpipe::limit_book_test {
namespace {

Limits Some() {
  Limits limits;
  limits.cluster = {.repair_bytes_per_second = 1e9 / 3, .max_running = 7};
  limits.nodes["node-1"] = {.repair_bytes_per_second = 0.0, .max_sessions = std::nullopt};
  limits.nodes["a.b_c"] = {.repair_bytes_per_second = 125'000.0, .max_sessions = 4096};
  return limits;
}

class LimitBookTest : public testing::Test {
 protected:
  std::unique_ptr<LimitBook> Open() {
    absl::StatusOr<std::unique_ptr<LimitBook>> book = LimitBook::Open(path_);
    EXPECT_TRUE(book.ok()) << book.status();
    return *std::move(book);
  }

  ScratchDirectory directory_;
  const std::string path_ = directory_.File("limits.db");
};

TEST_F(LimitBookTest, LimitsOutliveTheProcess) {
  const Limits some = Some();
  {
    const std::unique_ptr<LimitBook> book = Open();
    EXPECT_EQ(book->limits(), Limits{});
    EXPECT_TRUE(book->Set(some.cluster).ok());
    for (const auto& [node, limits] : some.nodes) EXPECT_TRUE(book->Set(node, limits).ok());
    EXPECT_EQ(book->limits(), some);
  }
  const std::unique_ptr<LimitBook> book = Open();
  EXPECT_EQ(book->limits(), some);
  EXPECT_TRUE(book->Set("node-1", LimitsOfNode{}).ok());
  EXPECT_EQ(Open()->limits().nodes.size(), 1u) << "nothing set is nothing kept";
}

TEST_F(LimitBookTest, ARefusedLimitChangesNothing) {
  const std::unique_ptr<LimitBook> book = Open();
  EXPECT_TRUE(absl::IsInvalidArgument(
      book->Set(LimitsOfCluster{.repair_bytes_per_second = 5.0, .max_running = 3})));
  EXPECT_TRUE(absl::IsInvalidArgument(
      book->Set("two words", LimitsOfNode{.repair_bytes_per_second = 0.0, .max_sessions = 3})));
  EXPECT_EQ(book->limits(), Limits{});
  EXPECT_EQ(Open()->limits(), Limits{});
}

TEST_F(LimitBookTest, ADamagedFileIsNotForgotten) {
  std::ofstream(path_) << "cluster max_running many, and more than a header of SQLite's is long "
                          "until its hundred bytes are full.............................\n";
  const absl::Status status = LimitBook::Open(path_).status();
  EXPECT_FALSE(status.ok());
  EXPECT_NE(std::string(status.message()).find(path_), std::string::npos) << status;
}

TEST_F(LimitBookTest, ADamagedRowIsNotForgotten) {
  ASSERT_TRUE(Open()->Set(LimitsOfCluster{.repair_bytes_per_second = {}, .max_running = 7}).ok());
  {
    auto db = SqliteDb::Open(path_, {});
    ASSERT_TRUE(db.ok() && (*db)->Run("UPDATE limits SET value = 7.5").ok());
  }
  const absl::Status status = LimitBook::Open(path_).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_NE(std::string(status.message()).find(path_), std::string::npos) << status;
}

}  // namespace
}  // namespace ecpipe::limit_book_test
