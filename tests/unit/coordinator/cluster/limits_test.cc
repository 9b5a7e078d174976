// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cluster/limits.h"

#include <gtest/gtest.h>

#include <limits>

namespace ecpipe::limits_test {
namespace {

TEST(LimitsTest, ImpossibleRatesAreRefused) {
  for (const double rate : {-1.0, 1.0, 124'999.0, 1e300, std::numeric_limits<double>::quiet_NaN(),
                            std::numeric_limits<double>::infinity()}) {
    EXPECT_FALSE(CheckLimits("n", LimitsOfNode{.repair_bytes_per_second = rate,
                                               .max_sessions = std::nullopt})
                     .ok())
        << rate;
  }
  EXPECT_TRUE(CheckLimits("n", LimitsOfNode{}).ok());
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

}  // namespace
}  // namespace ecpipe::limits_test
