// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cluster/limits.h"

#include <gtest/gtest.h>

#include <fstream>
#include <limits>

#include "unit/coordinator/store/scratch_directory.h"

namespace ecpipe {
namespace {

Limits Some() {
  Limits limits;
  limits.cluster = {.repair_bytes_per_second = 1e9 / 3, .max_running = 7};
  limits.nodes["node-1"] = {.repair_bytes_per_second = 0.0, .max_sessions = std::nullopt};
  limits.nodes["a.b_c"] = {.repair_bytes_per_second = 125'000.0, .max_sessions = 4096};
  return limits;
}

TEST(LimitsTest, WhatIsWrittenIsRead) {
  for (const Limits& limits : {Limits{}, Some()}) {
    const absl::StatusOr<Limits> read = ParseLimits(FormatLimits(limits));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, limits);
  }
}

TEST(LimitsTest, WhatIsNotALimitIsRefusedWithItsLine) {
  for (const char* line :
       {"cluster", "cluster max_running", "cluster max_running x", "cluster max_running 0",
        "cluster max_sessions 3", "cluster max_running 3 4", "cluster repair_bytes_per_second -1",
        "cluster repair_bytes_per_second 1000", "cluster repair_bytes_per_second nan",
        "cluster repair_bytes_per_second inf", "node n max_running 3", "node n max_sessions 4097",
        "node ../n max_sessions 3", "nodes n max_sessions 3"}) {
    const absl::Status status = ParseLimits(std::string("# comment\n\n") + line + "\n").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << line;
    EXPECT_NE(std::string(status.message()).find("line 3"), std::string::npos) << status;
  }
}

TEST(LimitsTest, ImpossibleRatesAreRefused) {
  for (const double rate : {-1.0, 1.0, 124'999.0, 1e300, std::numeric_limits<double>::quiet_NaN(),
                            std::numeric_limits<double>::infinity()}) {
    EXPECT_FALSE(CheckLimits(LimitsOfNode{.repair_bytes_per_second = rate,
                                          .max_sessions = std::nullopt}).ok()) << rate;
  }
  EXPECT_TRUE(CheckLimits(LimitsOfNode{}).ok());
}

TEST(LimitsTest, SharesFollowStreamsAndAddUpToTheRate) {
  EXPECT_DOUBLE_EQ(ShareOfRate(100, 3, 12, 20), 25);
  EXPECT_DOUBLE_EQ(ShareOfRate(100, 12, 12, 20), 100);
  double sum = 0;
  for (const uint64_t streams : {1, 2, 4, 9}) sum += ShareOfRate(100, streams, 16, 4);
  EXPECT_DOUBLE_EQ(sum, 100);
  EXPECT_DOUBLE_EQ(ShareOfRate(100, 0, 0, 20), 5) << "all of 20 may begin at once";
  EXPECT_DOUBLE_EQ(ShareOfRate(100, 0, 50, 20), 2);
  EXPECT_DOUBLE_EQ(ShareOfRate(100, 0, 0, 0), 100);
}

class LimitBookTest : public testing::Test {
 protected:
  std::unique_ptr<LimitBook> Open() {
    absl::StatusOr<std::unique_ptr<LimitBook>> book = LimitBook::Open(path_);
    EXPECT_TRUE(book.ok()) << book.status();
    return *std::move(book);
  }

  ScratchDirectory directory_;
  const std::string path_ = directory_.File("limits.txt");
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
  std::ofstream(path_) << "cluster max_running many\n";
  const absl::Status status = LimitBook::Open(path_).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_NE(std::string(status.message()).find(path_), std::string::npos);
}

}  // namespace
}  // namespace ecpipe
