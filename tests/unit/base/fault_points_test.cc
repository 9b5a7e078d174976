// SPDX-License-Identifier: Apache-2.0
#include "base/fault_points.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace ecpipe::fault_points_test {
namespace {

class FaultPoints : public testing::Test {
 protected:
  void TearDown() override { DisarmAllFaults(); }
};

TEST_F(FaultPoints, PassUnlessArmed) {
  EXPECT_TRUE(FaultPoint("test.a").ok());
  ArmFault("test.b", {});
  EXPECT_TRUE(FaultPoint("test.a").ok()) << "another one is armed";
}

TEST_F(FaultPoints, FailByNameEveryTime) {
  ArmFault("test.a", {});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(FaultPoint("test.a"), absl::InternalError("fault point test.a"));
  }
  DisarmAllFaults();
  EXPECT_TRUE(FaultPoint("test.a").ok());
}

TEST_F(FaultPoints, PassAsOftenAsTheyWereTold) {
  ArmFault("test.a", {.after_hits = 2});
  EXPECT_TRUE(FaultPoint("test.a").ok());
  EXPECT_TRUE(FaultPoint("test.a").ok());
  EXPECT_FALSE(FaultPoint("test.a").ok());
  EXPECT_FALSE(FaultPoint("test.a").ok());
}

TEST_F(FaultPoints, ReadTheirTextForm) {
  ASSERT_TRUE(ArmFaultsFromText("test.a=error,test.b=error@1").ok());
  EXPECT_FALSE(FaultPoint("test.a").ok());
  EXPECT_TRUE(FaultPoint("test.b").ok());
  EXPECT_FALSE(FaultPoint("test.b").ok());
  EXPECT_TRUE(ArmFaultsFromText("").ok());
}

TEST_F(FaultPoints, RefuseAnyOtherText) {
  for (const char* text : {"test.a", "=error", "test.a=", "test.a=fail", "test.a=error@",
                           "test.a=error@x", "test.a=error@-1", "test.a=error@1x",
                           "test.a=error@99999999999", "test.a=error,,test.b=error"}) {
    const absl::Status status = ArmFaultsFromText(text);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text << status;
    DisarmAllFaults();
  }
}

using FaultPointsDeathTest = FaultPoints;

TEST_F(FaultPointsDeathTest, ACrashIsAKill) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        ArmFault("test.a", {.action = Fault::Action::kCrash, .after_hits = 1});
        if (!FaultPoint("test.a").ok()) ::_exit(1);
        if (!FaultPoint("test.a").ok()) ::_exit(2);
        ::_exit(3);
      },
      testing::KilledBySignal(SIGKILL), "");
}

}  // namespace
}  // namespace ecpipe::fault_points_test
