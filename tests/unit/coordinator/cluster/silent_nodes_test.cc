// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cluster/silent_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ecpipe::silent_nodes_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Silent : public ::testing::Test {
 protected:
  SilentNodes nodes_;
  TimePoint now_{};
};

TEST_F(Silent, AreAskedUntilTheyAnswer) {
  EXPECT_TRUE(nodes_.NoAnswer("a", "no answer to a handout", now_));
  EXPECT_FALSE(nodes_.NoAnswer("a", "nor to another", now_ + seconds(1)));
  ASSERT_NE(nodes_.Find("a"), nullptr);
  EXPECT_EQ(nodes_.Find("a")->reason, "no answer to a handout");
  EXPECT_EQ(nodes_.Find("a")->since, now_);
  EXPECT_EQ(nodes_.Find("b"), nullptr);
  EXPECT_THAT(nodes_.All(), ElementsAre("a"));
  EXPECT_THAT(nodes_.ToProbe(now_), ElementsAre("a"));
  EXPECT_FALSE(nodes_.Answered("b", now_));
  EXPECT_TRUE(nodes_.Answered("a", now_));
  EXPECT_FALSE(nodes_.Answered("a", now_));
  EXPECT_EQ(nodes_.Find("a"), nullptr);
  EXPECT_THAT(nodes_.ToProbe(now_), IsEmpty());
}

// Its calls are answered in between, as by a helper whose handouts hang and whose probes do not.
TEST_F(Silent, AgainAndAgainStayOutForLonger) {
  for (const int pause : {0, 2, 4, 8, 16, 32, 60, 60}) {
    EXPECT_TRUE(nodes_.NoAnswer("a", "", now_)) << pause;
    if (pause > 0) {
      now_ += seconds(pause) - milliseconds(1);
      EXPECT_THAT(nodes_.ToProbe(now_), IsEmpty()) << pause;
      EXPECT_FALSE(nodes_.Answered("a", now_)) << pause;
      now_ += milliseconds(1);
    }
    EXPECT_THAT(nodes_.ToProbe(now_), ElementsAre("a")) << pause;
    EXPECT_TRUE(nodes_.Answered("a", now_)) << pause;
    now_ += SilentNodes::kMemory;
  }
  now_ += milliseconds(1);
  EXPECT_TRUE(nodes_.NoAnswer("a", "", now_));
  EXPECT_TRUE(nodes_.Answered("a", now_)) << "what was long ago does not count";
}

TEST_F(Silent, AreForgottenWithTheirHelper) {
  nodes_.NoAnswer("a", "", now_);
  nodes_.NoAnswer("b", "", now_);
  nodes_.Forget("a");
  EXPECT_THAT(nodes_.All(), ElementsAre("b"));
  nodes_.Tidy([](const std::string& node) { return node == "b"; }, now_);
  EXPECT_THAT(nodes_.All(), IsEmpty());
}

}  // namespace
}  // namespace ecpipe::silent_nodes_test
