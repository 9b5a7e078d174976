// SPDX-License-Identifier: Apache-2.0
#include "net/origin_shares.h"

#include <gtest/gtest.h>

namespace ecpipe::origin_shares_test {
namespace {

TEST(OriginShares, WhoHasTheMostLosesTheOldest) {
  OriginShares shares;
  EXPECT_EQ(shares.Surplus(), std::nullopt);
  EXPECT_EQ(shares.Oldest(), std::nullopt);
  shares.Add(1, "honest");
  shares.Add(2, "flood");
  shares.Add(3, "flood");
  EXPECT_EQ(shares.Oldest(), 1u);
  EXPECT_EQ(shares.Surplus(), 2u);
  shares.Remove(2);
  EXPECT_EQ(shares.Surplus(), 1u) << "of equals the oldest";
  shares.Add(4, "flood");
  EXPECT_EQ(shares.Surplus(), 3u);
  EXPECT_EQ(shares.Of("flood"), 2u);
  EXPECT_EQ(shares.Of("nobody"), 0u);
  EXPECT_EQ(shares.size(), 3u);
}

TEST(OriginShares, CountsEachOnce) {
  OriginShares shares;
  shares.Add(1, "a");
  shares.Add(1, "a");
  EXPECT_EQ(shares.Of("a"), 1u);
  shares.Remove(1);
  shares.Remove(1);
  EXPECT_EQ(shares.Of("a"), 0u);
  EXPECT_FALSE(shares.Has(1));
}

}  // namespace
}  // namespace ecpipe::origin_shares_test
