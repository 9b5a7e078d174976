// SPDX-License-Identifier: Apache-2.0
#include "coordinator/repairs/left_out.h"

#include <gtest/gtest.h>

namespace ecpipe::left_out_test {
namespace {

Suspects Link(const std::string& suspect, const std::string& other_end) {
  return {{suspect, {"nothing passes", /*certain=*/false, other_end}}};
}

TEST(LeftOut, OfTwoEndsTheOneAtMoreFailedLinks) {
  LeftOut left_out;
  left_out.Suspect(Link("a", "b"));
  EXPECT_TRUE(left_out.Has("a")) << "of equals the suspect";
  EXPECT_FALSE(left_out.Has("b"));
  left_out.Suspect(Link("c", "b"));
  EXPECT_TRUE(left_out.Has("b")) << "twice at the end of a failed link";
  EXPECT_FALSE(left_out.Has("c"));
}

TEST(LeftOut, TakesTheLeastTroubledBackFirst) {
  LeftOut left_out;
  left_out.Suspect(Link("a", "b"));
  left_out.Suspect(Link("c", "b"));
  left_out.Refuse("d", "it has no such block");
  ASSERT_TRUE(left_out.ReadmitOne());
  EXPECT_FALSE(left_out.Has("a"));
  EXPECT_TRUE(left_out.Has("b"));
  ASSERT_TRUE(left_out.ReadmitOne());
  EXPECT_FALSE(left_out.ReadmitOne()) << "d is at fault for certain";
  EXPECT_EQ(left_out.reasons(), (LeftOut::Reasons{{"d", "it has no such block"}}));
}

TEST(LeftOut, TakesTheOneBackThatHasBeenOutForLongest) {
  LeftOut left_out;
  left_out.Suspect(Link("b", ""));
  left_out.Suspect(Link("a", ""));
  ASSERT_TRUE(left_out.ReadmitOne());
  EXPECT_TRUE(left_out.Has("a")) << "with it the repair has just failed";
}

TEST(LeftOut, TakesBackForSpeedOnlyWhoSeemedSlow) {
  const auto slow = [](const std::string& node) {
    return Suspects{{node, {"its links are slow", /*certain=*/false, "", /*slow=*/true}}};
  };
  LeftOut left_out;
  left_out.Suspect(Link("a", ""));
  left_out.Suspect(slow("b"));
  left_out.Suspect(slow("c"));
  left_out.Suspect(Link("c", ""));
  ASSERT_TRUE(left_out.ReadmitSlow());
  EXPECT_FALSE(left_out.Has("b"));
  EXPECT_FALSE(left_out.ReadmitSlow()) << "c has failed meanwhile";
  EXPECT_TRUE(left_out.Has("a") && left_out.Has("c"));
}

TEST(LeftOut, WhoOnlySeemedSlowIsTakenBackBeforeAllOthers) {
  LeftOut left_out;
  left_out.Suspect(Link("a", ""));
  for (int i = 0; i < 2; ++i) {
    left_out.Suspect({{"b", {"its links are slow", /*certain=*/false, "", /*slow=*/true}}});
  }
  ASSERT_TRUE(left_out.ReadmitOne());
  EXPECT_FALSE(left_out.Has("b"));
  EXPECT_TRUE(left_out.Has("a"));
}

TEST(LeftOut, WhoIsNeededStaysAndTheOtherEndGoes) {
  LeftOut left_out;
  left_out.Suspect(Link("host", "a"), {"host"});
  EXPECT_FALSE(left_out.Has("host"));
  EXPECT_TRUE(left_out.Has("a"));
  left_out.Suspect({{"host", {"its disk is full"}}}, {"host"});
  EXPECT_FALSE(left_out.Has("host"));
}

TEST(LeftOut, WhatIsCertainIsNoLongerDoubtful) {
  LeftOut left_out;
  left_out.Suspect(Link("a", ""));
  left_out.Suspect({{"a", {"its helper has restarted"}}});
  EXPECT_FALSE(left_out.ReadmitOne());
}

TEST(LeftOut, WhoWasAwayIsTakenBackWithItsNextStart) {
  LeftOut left_out;
  EXPECT_TRUE(left_out.RefuseWhileAway("a", "connection refused", {1}));
  EXPECT_FALSE(left_out.RefuseWhileAway("a", "connection refused", {1})) << "no news";
  EXPECT_FALSE(left_out.ReadmitReturned({{"a", {true, /*dead=*/false, 1}}}));
  EXPECT_FALSE(left_out.ReadmitReturned({{"a", {true, /*dead=*/true, 2}}}));
  EXPECT_FALSE(left_out.ReadmitReturned({{"b", {true, /*dead=*/false, 2}}}));
  EXPECT_TRUE(left_out.Has("a"));
  EXPECT_FALSE(left_out.ReadmitOne());
  EXPECT_TRUE(left_out.ReadmitReturned({{"a", {true, /*dead=*/false, 2}}}));
  EXPECT_FALSE(left_out.Has("a"));
  EXPECT_TRUE(left_out.RefuseWhileAway("a", "connection refused", {2})) << "away once more";
}

TEST(LeftOut, WhoWasLateIsTakenBackWhenItAnswers) {
  LeftOut left_out;
  left_out.RefuseWhileAway("a", "no answer", {1, /*may_answer=*/true});
  EXPECT_FALSE(left_out.ReadmitReturned({{"a", {true, false, 1, /*silent=*/true}}}));
  EXPECT_TRUE(left_out.ReadmitReturned({{"a", {true, false, 1, /*silent=*/false}}}));
}

TEST(LeftOut, ANewStartMendsNothingElse) {
  const NodeLives started{{"a", {true, false, 2}}, {"b", {true, false, 2}}};
  LeftOut left_out;
  left_out.Refuse("a", "it has no such block");
  EXPECT_FALSE(left_out.RefuseWhileAway("a", "connection refused", {1}));
  left_out.RefuseWhileAway("b", "connection refused", {1});
  EXPECT_TRUE(left_out.Refuse("b", "its block is corrupt"));
  EXPECT_FALSE(left_out.ReadmitReturned(started));
  left_out.Suspect({{"c", {"its helper restarted"}}}, {}, {{"c", 1}});
  EXPECT_FALSE(left_out.ReadmitReturned({{"c", {true, false, 2}}})) << "not said to be away";
}

TEST(LeftOut, ARefusalIsNewsOnce) {
  LeftOut left_out;
  EXPECT_TRUE(left_out.Refuse("a", "it has no such block"));
  EXPECT_FALSE(left_out.Refuse("a", "it has no such block"));
  EXPECT_FALSE(left_out.RefuseAtLimit("a", "it is at its limit"));
  left_out.Suspect(Link("b", ""));
  EXPECT_TRUE(left_out.RefuseAtLimit("b", "it is at its limit")) << "it was only a suspect";
  EXPECT_FALSE(left_out.ReadmitOne());
}

}  // namespace
}  // namespace ecpipe::left_out_test
