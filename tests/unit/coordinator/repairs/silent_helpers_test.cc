// SPDX-License-Identifier: Apache-2.0
// Helpers whose heartbeats come and that answer no calls, and callers that do not wait for them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/fault.h"
#include "unit/coordinator/repairs/repairs_fixture.h"

namespace ecpipe::silent_helpers_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::Not;
using ::testing::Optional;

class SilentHelpers : public Repairs {
 protected:
  std::vector<std::string> LastNodes() {
    std::vector<std::string> nodes;
    for (const auto& handout : helpers_.last) nodes.push_back(handout.helper.node);
    return nodes;
  }
  void Finish(const absl::StatusOr<RepairGrant>& grant) {
    coordinator_.FinishRepair(grant->repair_id, {absl::OkStatus(), 1000});
  }
};

TEST_F(SilentHelpers, AreFoundOutByOneRepairForAll) {
  helpers_.silent = {"n2"};
  const auto first = coordinator_.BeginRepair(Request("b0"));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(helpers_.rounds, 2);
  Finish(first);
  const std::optional<NodeView> view = coordinator_.nodes().Find("n2");
  EXPECT_EQ(view->state, NodeState::kLive);
  EXPECT_EQ(view->silent_because, "no answer");
  for (int i = 3; i <= 9; ++i) {
    const auto next = coordinator_.BeginRepair(Request("b0"));
    ASSERT_TRUE(next.ok()) << next.status();
    EXPECT_EQ(helpers_.rounds, i) << "one handout each";
    EXPECT_THAT(LastNodes(), Not(Contains("n2")));
    Finish(next);
  }
  EXPECT_THAT(helpers_.waited_for, IsEmpty()) << "nothing is gained by waiting for it";
}

TEST_F(SilentHelpers, AreReadmittedWhenTheyAnswerAndThenHearWhatTheyMissed) {
  helpers_.silent = {"n2"};
  Finish(coordinator_.BeginRepair(Request("b0")));
  coordinator_.Expire();
  EXPECT_NE(coordinator_.nodes().Find("n2")->silent_because, "");
  const size_t cancelled = helpers_.cancelled.size();
  helpers_.silent.clear();
  coordinator_.Expire();
  EXPECT_EQ(coordinator_.nodes().Find("n2")->silent_because, "");
  EXPECT_EQ(helpers_.cancelled.size(), cancelled);
  coordinator_.Expire();
  EXPECT_EQ(helpers_.cancelled.size(), cancelled + 1) << "the part that may run there";
  coordinator_.Expire();
  EXPECT_EQ(helpers_.cancelled.size(), cancelled + 1);
}

TEST_F(SilentHelpers, HelpWhereThereAreTooFewOthers) {
  helpers_.silent = {"n2"};
  Finish(coordinator_.BeginRepair(Request("b0")));
  helpers_.silent.clear();
  coordinator_.nodes().NoAnswer("n3", "no answer");
  const auto grant = coordinator_.BeginRepair(Request("b0"));
  ASSERT_TRUE(grant.ok()) << grant.status();
}

TEST_F(SilentHelpers, ThatStartAgainAreTrusted) {
  coordinator_.nodes().NoAnswer("n2", "no answer");
  Register("n2");
  EXPECT_NE(coordinator_.nodes().Find("n2")->silent_because, "") << "it only calls again";
  NodeRecord again = FakeNode("n2");
  again.incarnation = 2;
  ASSERT_TRUE(coordinator_.Register(again).ok());
  EXPECT_EQ(coordinator_.nodes().Find("n2")->silent_because, "");
}

TEST_F(SilentHelpers, ThatDieAreDeadAndNoLongerSilent) {
  coordinator_.nodes().NoAnswer("n2", "no answer");
  clock_.Advance(seconds(6));
  EXPECT_EQ(coordinator_.nodes().Find("n2")->state, NodeState::kDead);
  EXPECT_EQ(coordinator_.nodes().Find("n2")->silent_because, "");
  EXPECT_THAT(coordinator_.nodes().SilentToProbe(), IsEmpty());
  coordinator_.nodes().NoAnswer("n3", "no answer");
  EXPECT_THAT(coordinator_.nodes().Silent(), IsEmpty());
}

// A hundred attempts have left parts behind at a helper that hangs. The first answer that does not
// come is enough; the time of repairs must not wait for the other ninety-nine.
TEST_F(SilentHelpers, WhatWasLeftBehindThereHoldsNothingUp) {
  for (int i = 0; i < 100; ++i) {
    const auto grant = coordinator_.BeginRepair(Request("b0"));
    ASSERT_TRUE(grant.ok()) << grant.status();
    const absl::Status lost = WithFault(absl::UnavailableError("lost"), "n1");
    const auto next = coordinator_.ResumeRepair(
        Request("b0"), {grant->repair_id, 0, {grant->part.grid, {{6, 4, 1}}}, "rp", lost});
    ASSERT_TRUE(next.ok()) << next.status();
    Finish(next);
  }
  helpers_.silent = {"n2"};
  coordinator_.Expire();
  EXPECT_THAT(helpers_.waited_for.size(), AllOf(Ge(1u), Le(8u))) << "by as many threads at once";
}

TEST_F(SilentHelpers, AHandoutLeavesTimeForAnother) {
  helpers_.silent = {"n2"};
  const RepairCaller hurried{.answer_by = clock_.Now() + seconds(2)};
  Finish(coordinator_.BeginRepair(Request("b0"), 0, hurried));
  EXPECT_THAT(helpers_.timeouts, ElementsAre(seconds(1), seconds(1)));
  const RepairCaller patient{.answer_by = clock_.Now() + seconds(15)};
  Finish(coordinator_.BeginRepair(Request("b0"), 0, patient));
  EXPECT_EQ(helpers_.timeouts.back(), seconds(2));
  const RepairCaller late{.answer_by = clock_.Now() - seconds(15)};
  Finish(coordinator_.BeginRepair(Request("b0"), 0, late));
  EXPECT_EQ(helpers_.timeouts.back(), milliseconds(200));
}

TEST_F(SilentHelpers, NothingIsHandedOutForACallerThatHasGone) {
  bool gone = false;
  helpers_.silent = {"n2"};
  helpers_.on_start = [&] { gone = true; };
  const auto grant = coordinator_.BeginRepair(Request("b0"), 0, {.gone = [&] { return gone; }});
  EXPECT_TRUE(absl::IsCancelled(grant.status())) << grant.status();
  EXPECT_EQ(helpers_.rounds, 1) << "no second one";
  EXPECT_THAT(helpers_.cancelled, Contains(0u));
  EXPECT_TRUE(coordinator_.RunningBlocks().empty());
  EXPECT_EQ(coordinator_.counts().cancelled, 1u);
}

class LateHelpers : public SilentHelpers {
 protected:
  static RepairRequest SmallRead() {
    RepairRequest request = Request("b0");
    request.bytes = 500;
    return request;
  }
};

TEST_F(LateHelpers, AreNotWaitedForInASmallRead) {
  helpers_.late = {"n2"};
  const auto grant = coordinator_.BeginRepair(SmallRead());
  ASSERT_TRUE(grant.ok()) << grant.status();
  EXPECT_EQ(helpers_.rounds, 2);
  EXPECT_EQ(grant->part.attempt, 1u);
  EXPECT_THAT(LastNodes(), Not(Contains("n2")));
  EXPECT_EQ(coordinator_.nodes().Find("n2")->silent_because, "") << "others may wait for it";
  const size_t cancelled = helpers_.cancelled.size();
  coordinator_.Expire();
  EXPECT_GT(helpers_.cancelled.size(), cancelled) << "it may have taken its part after all";
  Finish(grant);
}

TEST_F(LateHelpers, AreWaitedForWhereNoOtherCanHelp) {
  helpers_.late = {"n2"};
  helpers_.down = {"n1"};
  Finish(coordinator_.BeginRepair(SmallRead()));
  helpers_.down = {"n1", "n5"};
  helpers_.rounds = 0;
  EXPECT_FALSE(coordinator_.BeginRepair(SmallRead()).ok()) << "four of five are needed";
  helpers_.down = {"n1"};
  const auto grant = coordinator_.BeginRepair(SmallRead());
  ASSERT_TRUE(grant.ok()) << grant.status();
  EXPECT_THAT(LastNodes(), Contains("n2"));
  Finish(grant);
}

TEST_F(LateHelpers, AreLeftOutWhenTheyAreAskedAboutASmallReadToWhichNothingComes) {
  const RepairRequest request = SmallRead();
  const auto grant = coordinator_.BeginRepair(request);
  ASSERT_TRUE(grant.ok()) << grant.status();
  const std::string victim = LastNodes()[0];
  helpers_.late = {victim};
  EXPECT_FALSE(coordinator_.CheckProgress(grant->repair_id, 0, 500, /*quiet=*/false)->replan)
      << "bytes come, so it is waited for";
  const auto advice = coordinator_.CheckProgress(grant->repair_id, 0, 500, /*quiet=*/true);
  ASSERT_TRUE(advice->replan);
  const ResumePoint from{grant->repair_id,
                         0,
                         {grant->part.grid, {{0, grant->part.grid.slice_count(), 1}}},
                         grant->scheme,
                         WithFault(absl::UnavailableError(advice->reason), kFaultUnknown)};
  const auto next = coordinator_.ResumeRepair(request, from);
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_THAT(LastNodes(), Not(Contains(victim)));
  EXPECT_EQ(coordinator_.nodes().Find(victim)->silent_because, "") << "others may wait for it";
  Finish(next);
}

// Its answer queues behind its bytes, on a slow link.
TEST_F(LateHelpers, AreNotLeftOutWhileTheirBytesCome) {
  const auto grant = coordinator_.BeginRepair(SmallRead());
  ASSERT_TRUE(grant.ok()) << grant.status();
  const std::string victim = LastNodes()[0];
  const std::string receiver = helpers_.last[0].part.hops[0].outputs[0].node;
  ASSERT_NE(receiver, LastNodes()[0]);
  helpers_.late = {victim};
  PartProgress& part = helpers_.answers[receiver];
  part.running = true;
  part.hops = {HopProgress{}};
  part.hops[0].inputs = {{.node = victim, .bytes = 100, .waiting = true}};
  helpers_.on_ask = [&] { part.hops[0].inputs[0].bytes += 100; };
  EXPECT_FALSE(coordinator_.CheckProgress(grant->repair_id, 0, 500, /*quiet=*/true)->replan);
  helpers_.on_ask = nullptr;
  EXPECT_TRUE(coordinator_.CheckProgress(grant->repair_id, 0, 500, /*quiet=*/true)->replan);
  Finish(grant);
}

TEST_F(LateHelpers, AreWaitedForWhereTheSecondLookFindsAnother) {
  const auto grant = coordinator_.BeginRepair(SmallRead());
  ASSERT_TRUE(grant.ok()) << grant.status();
  const std::string first = LastNodes()[0];
  const std::string second = LastNodes()[1];
  int looks = 0;
  helpers_.on_ask = [&] { helpers_.late = {++looks == 1 ? first : second}; };
  EXPECT_FALSE(coordinator_.CheckProgress(grant->repair_id, 0, 500, /*quiet=*/true)->replan);
  EXPECT_EQ(looks, 2);
  Finish(grant);
}

// Of two that do not answer neither is a straggler. The second look asks all but the silent one.
TEST_F(LateHelpers, AreWaitedForAsUsualBesideASilentOne) {
  const auto grant = coordinator_.BeginRepair(SmallRead());
  ASSERT_TRUE(grant.ok()) << grant.status();
  EXPECT_TRUE(coordinator_.CheckProgress(grant->repair_id, 0, 500, /*quiet=*/true).ok());
  EXPECT_THAT(helpers_.stragglers_of_asks, ElementsAre(Optional(milliseconds(20))));
  helpers_.stragglers_of_asks.clear();
  coordinator_.nodes().NoAnswer(LastNodes()[0], "it hangs");
  EXPECT_TRUE(coordinator_.CheckProgress(grant->repair_id, 0, 500, /*quiet=*/true).ok());
  EXPECT_THAT(helpers_.stragglers_of_asks, ElementsAre(std::nullopt, Optional(milliseconds(20))));
  Finish(grant);
}

TEST_F(LateHelpers, AreWaitedForInAllOtherRepairs) {
  helpers_.late = {"n2"};
  RepairRequest background = SmallRead();
  background.background = true;
  RepairRequest whole = Request("b0");
  for (const RepairRequest& request : {background, whole}) {
    helpers_.rounds = 0;
    const auto grant = coordinator_.BeginRepair(request);
    ASSERT_TRUE(grant.ok()) << grant.status();
    EXPECT_EQ(helpers_.rounds, 1);
    EXPECT_THAT(LastNodes(), Contains("n2"));
    Finish(grant);
  }
}

}  // namespace
}  // namespace ecpipe::silent_helpers_test
