// SPDX-License-Identifier: Apache-2.0
#include "coordinator/repairs/slow_helpers.h"

#include <gtest/gtest.h>

#include <chrono>

namespace ecpipe::slow_helpers_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(SpeedHistory, AChangeHasToPay) {
  SpeedHistory history;
  EXPECT_FALSE(history.IsWorthPlanningAnew(TimePoint{}, 10, 9));
  EXPECT_TRUE(history.IsWorthPlanningAnew(TimePoint{}, 10, 2));
}

TEST(SpeedHistory, IsWeighedAnewEverLessOftenAndSixTimesAtMost) {
  SpeedHistory history;
  TimePoint now = TimePoint{} + seconds(1000);
  for (Duration pause = seconds(1); pause <= seconds(32); pause *= 2) {
    EXPECT_TRUE(history.IsWorthPlanningAnew(now, 100, 1));
    EXPECT_FALSE(history.IsWorthPlanningAnew(now + pause - milliseconds(1), 100, 1));
    now += pause;
  }
  EXPECT_FALSE(history.IsWorthPlanningAnew(now + seconds(10'000), 100, 1));
}

}  // namespace
}  // namespace ecpipe::slow_helpers_test
