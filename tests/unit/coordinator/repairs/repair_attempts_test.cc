// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <set>

#include "coordinator/planning/scheme.h"
#include "coordinator/repairs/slow_helpers.h"
#include "model/fault.h"
#include "unit/coordinator/repairs/repairs_fixture.h"

namespace ecpipe::repair_attempts_test {
namespace {

class Attempts : public Repairs {
 protected:
  // A repair of b0 in 10 slices of 100 bytes, of which the first 6 have come.
  RepairGrant Begin(const std::string& scheme = "rp") {
    request_ = Request("b0", scheme);
    auto grant = coordinator_.BeginRepair(request_);
    EXPECT_TRUE(grant.ok()) << grant.status();
    return *grant;
  }
  ResumePoint After(const RepairGrant& grant, const absl::Status& failure) const {
    return {grant.repair_id, grant.part.attempt, {grant.part.grid, {{6, 4, 1}}}, grant.scheme,
            failure,         grant.stripe_digest};
  }
  std::set<std::string> Helpers() {
    std::set<std::string> nodes;
    for (const auto& handout : helpers_.last) nodes.insert(handout.helper.node);
    return nodes;
  }
  // The last of the path waits for the requestor, and the others do not send.
  void TheLastIsStuck() {
    for (const auto& handout : helpers_.last) {
      const HopSpec& hop = handout.part.hops[0];
      PartProgress& part = helpers_.answers[handout.helper.node];
      part.running = true;
      part.hops = {HopProgress{}};
      const bool last = !Helpers().contains(hop.outputs[0].node);
      part.hops[0].outputs = {{.node = hop.outputs[0].node, .waiting = last}};
    }
  }

  RepairRequest request_;
};

TEST_F(Attempts, OnlyWhatIsMissingWithoutTheOneAtFault) {
  for (const std::string& scheme : SchemesThatRepair()) {
    const RepairGrant first = Begin(scheme);
    const std::string culprit = *Helpers().begin();
    const auto second = coordinator_.ResumeRepair(
        request_, After(first, WithFault(absl::UnavailableError("it closed the stream"), culprit)));
    ASSERT_TRUE(second.ok()) << scheme << second.status();
    EXPECT_EQ(second->repair_id, first.repair_id);
    EXPECT_EQ(second->part.attempt, 1u);
    EXPECT_EQ(second->part.grid, first.part.grid);
    EXPECT_FALSE(Helpers().contains(culprit));
    std::set<uint32_t> slices;
    for (const HopSpec& hop : second->part.hops) {
      for (uint32_t i = 0; i < hop.slices.count(); ++i) {
        EXPECT_TRUE(slices.insert(hop.slices.SliceIndex(i)).second);
      }
    }
    EXPECT_EQ(slices, (std::set<uint32_t>{6, 7, 8, 9})) << scheme;
    coordinator_.FinishRepair(first.repair_id, {absl::OkStatus(), 1000});
    EXPECT_EQ(journal_.records.at(first.repair_id).state, RepairState::kDone);
    EXPECT_EQ(journal_.records.at(first.repair_id).attempt, 1u);
    coordinator_.Expire();
    EXPECT_EQ(helpers_.cancelled, std::vector<uint32_t>{0}) << "the attempt that was left behind";
    helpers_.cancelled.clear();
  }
}

TEST_F(Attempts, ADoubtfulNodeIsBetterThanNone) {
  const RepairGrant first = Begin();
  const absl::Status one = WithFault(absl::UnavailableError("gone"), "n1");
  const auto second = coordinator_.ResumeRepair(request_, After(first, one));
  ASSERT_TRUE(second.ok()) << second.status();
  const auto third = coordinator_.ResumeRepair(
      request_, After(*second, WithFault(absl::UnavailableError("gone"), "n2")));
  ASSERT_TRUE(third.ok()) << third.status();
  EXPECT_EQ(Helpers().size(), 4u) << "three are left that nobody found at fault";
}

TEST_F(Attempts, TooFewAreNamedWithTheirReasons) {
  const RepairGrant first = Begin();
  helpers_.down = {"n1", "n2"};
  helpers_.answers["n3"] = {.running = false,
                            .ended = WithFault(absl::DataLossError("b3 is damaged"), kFaultSelf),
                            .hops = {}};
  const absl::Status status =
      coordinator_
          .ResumeRepair(request_, After(first, WithFault(absl::UnavailableError("gone"), "n1")))
          .status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  for (const char* part : {"b0", "k = 4", "b1 on n1", "b2 on n2", "b3 is damaged"}) {
    EXPECT_TRUE(Says(status, part)) << part << ": " << status;
  }
  EXPECT_EQ(journal_.records.at(first.repair_id).state, RepairState::kFailed);
  EXPECT_TRUE(absl::IsAborted(
      coordinator_.ResumeRepair(request_, After(first, absl::UnavailableError("x"))).status()))
      << "it has ended, which is not too few survivors";
}

TEST_F(Attempts, ForWantOfRoomAreNoLossOfBlocks) {
  helpers_.busy = {"n1", "n2"};
  const absl::Status busy = coordinator_.BeginRepair(Request("b0")).status();
  EXPECT_TRUE(absl::IsResourceExhausted(busy)) << busy;
  for (const char* part : {"b0", "k = 4", "b1 on n1", "n2: at its limit"}) {
    EXPECT_TRUE(Says(busy, part)) << part << ": " << busy;
  }
  helpers_.down = {"n3", "n4"};
  const absl::Status lost = coordinator_.BeginRepair(Request("b0")).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(lost)) << "room would not be enough: " << lost;
  helpers_.down.clear();
  helpers_.busy = {"n1"};
  EXPECT_TRUE(coordinator_.BeginRepair(Request("b0")).ok()) << "four others have room";
}

TEST_F(Attempts, WhatTheyLeaveBehindIsCancelledSomeAtATime) {
  const size_t some = RepairCoordinator::kExpiredAtOnce;
  for (size_t i = 0; i <= some; ++i) {
    const absl::Status failure = WithFault(absl::UnavailableError("gone"), "n1");
    ASSERT_TRUE(coordinator_.ResumeRepair(request_, After(Begin(), failure)).ok());
  }
  coordinator_.Expire();
  EXPECT_EQ(helpers_.cancelled.size(), some) << "a node that hangs would hold up all others";
  coordinator_.Expire();
  EXPECT_EQ(helpers_.cancelled.size(), some + 1);
}

TEST_F(Attempts, ACoordinatorThatRestartedTakesTheRepairUp) {
  const RepairGrant first = Begin();
  RepairRecord& record = journal_.records.at(first.repair_id);
  record.state = RepairState::kInterrupted;
  RepairCoordinator next(&catalog_, &journal_, &helpers_, &clock_, {});
  const auto too_early =
      next.ResumeRepair(request_, After(first, WithFault(absl::UnavailableError("gone"), "n1")));
  EXPECT_TRUE(absl::IsUnavailable(too_early.status())) << too_early.status();
  EXPECT_TRUE(absl::IsUnavailable(next.BeginRepair(request_).status()));
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(next.Register(FakeNode("n" + std::to_string(i))).ok());
  }
  const auto second =
      next.ResumeRepair(request_, After(first, WithFault(absl::UnavailableError("gone"), "n1")));
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->repair_id, first.repair_id);
  EXPECT_EQ(second->part.attempt, 1u);
  EXPECT_FALSE(Helpers().contains("n1"));
  next.FinishRepair(first.repair_id, {absl::OkStatus(), 1000});
  EXPECT_EQ(journal_.records.at(first.repair_id).state, RepairState::kDone);
  EXPECT_TRUE(absl::IsAborted(
      next.ResumeRepair(request_, After(*second, absl::UnavailableError("x"))).status()));
}

TEST_F(Attempts, AnAttemptThatTheRequestorNeverHeardOfIsNotMadeTwice) {
  const RepairGrant first = Begin();
  RepairRecord& record = journal_.records.at(first.repair_id);
  record.state = RepairState::kInterrupted;
  record.attempt = 3;  // in the journal before its parts are handed out
  RepairCoordinator next(&catalog_, &journal_, &helpers_, &clock_, {});
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(next.Register(FakeNode("n" + std::to_string(i))).ok());
  }
  const auto resumed =
      next.ResumeRepair(request_, After(first, WithFault(absl::UnavailableError("gone"), "n1")));
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  EXPECT_EQ(resumed->part.attempt, 4u) << "helpers may have parts of 3";
}

TEST_F(Attempts, AResumedRepairWaitsForHelpersThatMayRegisterYet) {
  const RepairGrant first = Begin();
  journal_.records.at(first.repair_id).state = RepairState::kInterrupted;
  RepairCoordinator next(&catalog_, &journal_, &helpers_, &clock_, {});
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(next.Register(FakeNode("n" + std::to_string(i))).ok());
  }
  helpers_.down = {"n2"};
  const ResumePoint point = After(first, WithFault(absl::UnavailableError("x"), kFaultUnknown));
  helpers_.rounds = 0;
  for (int i = 0; i < 20; ++i) {
    const absl::Status status = next.ResumeRepair(request_, point).status();
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_TRUE(Says(status, "n2")) << status;
  }
  EXPECT_EQ(helpers_.rounds, 1) << "n2 has refused once";
  EXPECT_TRUE(next.ShowRunning(1).shown.at(0).receivers.empty()) << "no part runs";
  EXPECT_EQ(journal_.records.at(first.repair_id).state, RepairState::kRunning);
  ASSERT_TRUE(next.Register(FakeNode("n5")).ok());
  const auto resumed = next.ResumeRepair(request_, point);
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  EXPECT_EQ(resumed->part.attempt, 2u) << "n2 has seen 1";
  EXPECT_EQ(Helpers(), (std::set<std::string>{"n1", "n3", "n4", "n5"}));
}

TEST_F(Attempts, AResumedRepairWaitsOnlyUntilAbsentHelpersAreDead) {
  const RepairGrant first = Begin();
  journal_.records.at(first.repair_id).state = RepairState::kInterrupted;
  RepairCoordinator next(&catalog_, &journal_, &helpers_, &clock_, {});
  const auto resume = [&] {
    for (int i = 0; i < 5; ++i) {
      EXPECT_TRUE(next.Register(FakeNode("n" + std::to_string(i))).ok());
    }
    return next
        .ResumeRepair(request_, After(first, WithFault(absl::UnavailableError("x"), kFaultUnknown)))
        .status();
  };
  helpers_.down = {"n2"};
  EXPECT_TRUE(absl::IsUnavailable(resume()));
  clock_.Advance(RepairCoordinator::Options().dead_after);
  EXPECT_TRUE(absl::IsFailedPrecondition(resume()));
  EXPECT_EQ(journal_.records.at(first.repair_id).state, RepairState::kFailed);
}

// Six of its slices are of the older data.
TEST_F(Attempts, ARepairThatARestartHasOutlivedIsNotResumedOverOtherData) {
  for (BlockPlace& place : catalog_.stripes["s1000"].blocks) place.sha256 = std::string(64, 'a');
  const RepairGrant first = Begin();
  journal_.records.at(first.repair_id).state = RepairState::kInterrupted;
  RepairCoordinator next(&catalog_, &journal_, &helpers_, &clock_, {});
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(next.Register(FakeNode("n" + std::to_string(i))).ok());
  }
  const ResumePoint point = After(first, WithFault(absl::UnavailableError("x"), kFaultUnknown));
  catalog_.stripes["s1000"].blocks[5].sha256 = std::string(64, 'b');
  helpers_.rounds = 0;
  const absl::Status refused = next.ResumeRepair(request_, point).status();
  EXPECT_TRUE(absl::IsAborted(refused)) << refused;
  EXPECT_TRUE(Says(refused, "stripe s1000 was loaded anew")) << refused;
  EXPECT_EQ(helpers_.rounds, 0);
  // A block that has another place is the same.
  catalog_.stripes["s1000"].blocks[5].sha256 = std::string(64, 'a');
  catalog_.stripes["s1000"].blocks[5].node = "n6";
  ASSERT_TRUE(next.Register(FakeNode("n6")).ok());
  EXPECT_TRUE(next.ResumeRepair(request_, point).ok());
}

TEST_F(Attempts, BadResumesAreRefused) {
  const RepairGrant first = Begin();
  const absl::Status failure = WithFault(absl::UnavailableError("gone"), "n1");
  ResumePoint point = After(first, failure);
  point.left.missing = {{9, 2, 1}};
  EXPECT_TRUE(absl::IsInvalidArgument(coordinator_.ResumeRepair(request_, point).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      coordinator_.ResumeRepair(Request("b1"), After(first, failure)).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      coordinator_.ResumeRepair(request_, After(first, absl::OkStatus())).status()))
      << "nothing has failed";
  for (const uint32_t attempt : {RepairTracker::kMaxAttempts, UINT32_MAX}) {
    point = After(first, failure);
    point.attempt = attempt;
    EXPECT_TRUE(absl::IsInvalidArgument(coordinator_.ResumeRepair(request_, point).status()))
        << "no repair has so many attempts";
  }
  EXPECT_EQ(journal_.records.at(first.repair_id).state, RepairState::kRunning);
}

TEST_F(Attempts, ARepairThatEndsWhileItIsLookedAtIsNotRunning) {
  const RepairGrant first = Begin();
  helpers_.on_ask = [&] {
    coordinator_.FinishRepair(first.repair_id, {absl::CancelledError("enough"), 0});
  };
  const auto advice = coordinator_.CheckProgress(first.repair_id, 0, 400, true);
  EXPECT_TRUE(absl::IsNotFound(advice.status())) << advice.status();
  EXPECT_TRUE(absl::IsNotFound(coordinator_.CheckProgress(1, 0, 0, true).status()));
}

TEST_F(Attempts, ALinkThatPassesNothingWeighsMoreAtEachLook) {
  RepairGrant grant = Begin();
  const auto resume = [&](const std::string& faulty) {
    const auto next = coordinator_.ResumeRepair(
        request_, After(grant, WithFault(absl::UnavailableError(faulty + " left"), faulty)));
    ASSERT_TRUE(next.ok()) << next.status();
    grant = *next;
  };
  // Two nodes take turns in failing; there is one spare, so one of them always takes part.
  const std::string first = *Helpers().begin();
  resume(first);
  const std::string second = *Helpers().begin();
  resume(second);
  resume(first);
  ASSERT_FALSE(Helpers().contains(first));
  TheLastIsStuck();  // which has failed at nothing before
  const auto replans_after = [&](Duration pause) {
    clock_.Advance(pause);
    return coordinator_.CheckProgress(grant.repair_id, grant.part.attempt, 400, true)->replan;
  };
  constexpr Duration kLong = std::chrono::milliseconds(250);
  EXPECT_FALSE(replans_after(kLong)) << "something may move";
  EXPECT_FALSE(replans_after(kLong / 5)) << "nothing has had the time to move";
  EXPECT_FALSE(replans_after(kLong)) << "the one that is left out failed twice";
  EXPECT_TRUE(replans_after(kLong));
}

TEST_F(Attempts, ASliceAsLargeAsABlockTakesItsTime) {
  catalog_.stripes["s1000"].block_bytes = kMaxSliceBytes;
  request_ = Request("b0", "pipe-b");
  const auto grant = coordinator_.BeginRepair(request_);
  ASSERT_TRUE(grant.ok()) << grant.status();
  ASSERT_EQ(grant->part.grid.slice_count(), 1u);
  TheLastIsStuck();
  const auto replans_after = [&](Duration pause) {
    clock_.Advance(pause);
    return coordinator_.CheckProgress(grant->repair_id, grant->part.attempt, 0, true)->replan;
  };
  EXPECT_FALSE(replans_after(Duration(0)));
  EXPECT_FALSE(replans_after(std::chrono::seconds(2))) << "a node may be at work on it";
  EXPECT_TRUE(replans_after(std::chrono::seconds(1)));
}

// A repair of which bytes pass, and one node can be slow: the first of the path.
class Stragglers : public Attempts {
 protected:
  void SetUp() override {
    Attempts::SetUp();
    first_ = Begin();
    Watch();
  }
  // The streams of the attempt that runs begin.
  void Watch() {
    for (const auto& handout : helpers_.last) {
      const HopSpec& hop = handout.part.hops[0];
      PartProgress& part = helpers_.answers[handout.helper.node];
      part.running = true;
      part.hops = {HopProgress{}};
      part.hops[0].outputs = {{.node = hop.outputs[0].node}};
      if (hop.inputs.empty()) slow_ = handout.helper.node;
    }
  }
  // Whether the plan is to change after a second more, of which the network held up `slow_` for so
  // long: while it is slow all pass a tenth of what they do otherwise.
  bool Check(double slow_seconds, uint64_t missing) {
    clock_.Advance(std::chrono::seconds(1));
    for (auto& [node, part] : helpers_.answers) {
      StreamProgress& output = part.hops[0].outputs[0];
      const bool slow = slow_seconds > 0.5;
      output.bytes += slow ? slow_bytes_ : 10 * slow_bytes_;
      output.network_seconds += node == slow_ ? slow_seconds : slow ? 0.01 : 0.09;
    }
    return coordinator_.CheckProgress(first_.repair_id, first_.part.attempt, missing, false)
        ->replan;
  }

  // The plan is to change, and does.
  void Change(uint64_t missing) {
    ASSERT_TRUE(Check(0.9, missing));
    const auto next = coordinator_.ResumeRepair(
        request_, After(first_, WithFault(absl::UnavailableError("slow"), kFaultUnknown)));
    ASSERT_TRUE(next.ok()) << next.status();
    first_ = *next;
    Watch();
  }

  RepairGrant first_;
  std::string slow_;
  uint64_t slow_bytes_ = 1 << 20;  // in a second
};

TEST_F(Stragglers, MayHaveBeenFastForLong) {
  for (const uint64_t missing : {900, 500, 20}) {
    EXPECT_FALSE(Check(0.09, missing));
  }
  EXPECT_TRUE(Check(0.9, 18)) << "two a second: nine seconds are left";
}

TEST_F(Stragglers, AreJudgedSinceAllTold) {
  EXPECT_FALSE(Check(0.09, 900));
  PartProgress& part = helpers_.answers.at(slow_);
  const PartProgress told = part;
  part.hops.clear();
  clock_.Advance(std::chrono::seconds(1));
  EXPECT_FALSE(coordinator_.CheckProgress(first_.repair_id, 0, 890, false)->replan);
  part = told;
  EXPECT_TRUE(Check(1.9, 880)) << "in two seconds";
}

TEST_F(Stragglers, AreJudgedInEachAttemptAnew) {
  for (const uint64_t missing : {900, 800}) EXPECT_FALSE(Check(0.09, missing));
  // The same nodes, whose streams begin at nothing; a second of slowness is all there is.
  const auto second = coordinator_.ResumeRepair(
      request_, After(first_, WithFault(absl::UnavailableError("reset"), kFaultUnknown)));
  ASSERT_TRUE(second.ok());
  first_ = *second;
  Watch();
  EXPECT_TRUE(Check(0.9, 390));
}

TEST_F(Stragglers, AreReplacedTwiceAtMostAndTheFirstIsTheSpareOfTheSecond) {
  EXPECT_FALSE(Check(0.09, 900));
  std::set<std::string> replaced = Helpers();
  Change(890);
  for (const std::string& node : Helpers()) replaced.erase(node);
  ASSERT_EQ(replaced.size(), 1u);
  Change(390);
  EXPECT_TRUE(Helpers().contains(*replaced.begin())) << "there are but five";
  EXPECT_FALSE(Check(0.9, 390));
}

TEST_F(Stragglers, AreGuessedTwiceAtMost) {
  Change(990);
  Change(390);
  EXPECT_FALSE(Check(0.9, 390));
}

TEST_F(Stragglers, AreFoundAmongSlowLinksAfterSomeTime) {
  slow_bytes_ = 60'000;
  EXPECT_FALSE(Check(0.09, 100));
  // Of what seems to pass since, most was in a socket before.
  for (const uint64_t missing : {90, 80}) EXPECT_FALSE(Check(0.9, missing));
  EXPECT_TRUE(Check(0.9, 70));
}

TEST_F(Stragglers, StayWhenNotMuchIsMissing) {
  EXPECT_FALSE(Check(0.09, 110));
  EXPECT_FALSE(Check(0.9, 10)) << "it is as good as done";
}

TEST_F(Stragglers, AreGuessedWhenMuchIsMissing) {
  EXPECT_TRUE(Check(0.9, 950)) << "nineteen seconds";
}

TEST_F(Stragglers, AreNotGuessedWhenTheOthersMayBeNoFaster) {
  EXPECT_FALSE(Check(0.9, 900)) << "nine seconds";
}

TEST_F(Stragglers, AreJudgedByAllThatCameWhenSlicesAreLarge) {
  EXPECT_FALSE(Check(0.09, 500));
  EXPECT_TRUE(Check(0.9, 500)) << "none came since: 500 in two seconds";
}

TEST(SpeedHistory, AChangeHasToPay) {
  SpeedHistory history;
  EXPECT_FALSE(history.IsWorthPlanningAnew(TimePoint{}, 10, 9));
  EXPECT_TRUE(history.IsWorthPlanningAnew(TimePoint{}, 10, 2));
}

TEST(SpeedHistory, IsWeighedAnewEverLessOftenAndSixTimesAtMost) {
  constexpr Duration kSecond = std::chrono::seconds(1);
  SpeedHistory history;
  TimePoint now = TimePoint{} + 1000 * kSecond;
  for (Duration pause = kSecond; pause <= 32 * kSecond; pause *= 2) {
    EXPECT_TRUE(history.IsWorthPlanningAnew(now, 100, 1));
    EXPECT_FALSE(history.IsWorthPlanningAnew(now + pause - kSecond / 1000, 100, 1));
    now += pause;
  }
  EXPECT_FALSE(history.IsWorthPlanningAnew(now + 10'000 * kSecond, 100, 1));
}

}  // namespace
}  // namespace ecpipe::repair_attempts_test
