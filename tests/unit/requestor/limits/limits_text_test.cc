// SPDX-License-Identifier: Apache-2.0
#include "requestor/limits/limits_text.h"

#include <gtest/gtest.h>

namespace ecpipe::limits_text_test {
namespace {

TEST(LimitsTextTest, NamesEachLimitAndWhoseItIs) {
  ClusterLimitsView limits;
  limits.max_running = 256;
  RecoveryView recovery;
  recovery.streams_per_node = 8;
  EXPECT_EQ(RecoveryLimitsText(limits, recovery),
            "cluster repair Mb/s none (as configured), repairs at once 256 (as configured); "
            "at one node 8 (streams_per_node in [recovery])");
  limits.repair_bytes_per_second = 125e6;
  limits.rate_is_set = true;
  limits.max_running_is_set = true;
  recovery.streams_per_node = 3;
  recovery.record.request.streams_per_node = 3;
  EXPECT_EQ(RecoveryLimitsText(limits, recovery),
            "cluster repair Mb/s 1000.0 (set), repairs at once 256 (set); "
            "at one node 3 (--streams of this recovery)");
}

TEST(LimitsTextTest, ACoordinatorThatDoesNotTellStreams) {
  ClusterLimitsView limits;
  limits.max_running = 1;
  EXPECT_EQ(RecoveryLimitsText(limits, {}),
            "cluster repair Mb/s none (as configured), repairs at once 1 (as configured)");
}

}  // namespace
}  // namespace ecpipe::limits_text_test
