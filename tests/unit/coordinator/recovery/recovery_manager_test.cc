// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "unit/coordinator/recovery/recovery_manager_fixture.h"

namespace ecpipe::recovery_manager_test {
namespace {

using ::testing::HasSubstr;

TEST_F(RecoveryManagerTest, MovesEveryBlockOnce) {
  const uint64_t lost = BlocksOf("n0");
  const RecoveryId id = Begin(Request());
  ASSERT_TRUE(RunToEnd(id));
  const RecoveryView view = View(id);
  EXPECT_EQ(view.record.state, RecoveryState::kDone);
  EXPECT_EQ(view.record.blocks, lost);
  EXPECT_EQ(view.record.done_blocks, lost);
  EXPECT_EQ(view.record.done_bytes, lost * 1000);
  EXPECT_EQ(BlocksOf("n0"), 0u);
  EXPECT_EQ(catalog_.moves.size(), lost);
  for (const auto& [block, moves] : catalog_.moves) EXPECT_EQ(moves, 1) << block;
  EXPECT_EQ(journal_.recoveries.at(id), view.record);
}

TEST_F(RecoveryManagerTest, ANodeThatIsKnownToBeSlowTakesNoBlockWhileOthersCan) {
  LinkTable links;
  for (int from = 1; from < 9; ++from) {
    for (int to = 1; to < 9; ++to) {
      const bool slow = from == 1 || to == 1;
      links[{"n" + std::to_string(from), "n" + std::to_string(to)}] = slow ? 1 : 100;
    }
  }
  repairs_->links().SetConfigured(std::make_shared<const LinkTable>(links));
  const uint64_t had = BlocksOf("n1");
  ASSERT_TRUE(RunToEnd(Begin(Request())));
  EXPECT_EQ(BlocksOf("n0"), 0u);
  EXPECT_EQ(BlocksOf("n1"), had);
}

TEST_F(RecoveryManagerTest, RespectsTheStreamsOfANode) {
  RecoveryRequest request = Request({"spare"});
  request.streams_per_node = 2;
  const RecoveryId id = Begin(request);
  // A block runs before its parts are handed out: wait for the parts.
  ASSERT_EQ(WaitForNewHosts(2).size(), 2u);
  EXPECT_FALSE(View(id).listing);
  // Nobody answers: the requestor is in two repairs and stays so.
  EXPECT_EQ(View(id).running_blocks, 2u);
  EXPECT_EQ(View(id).waiting_blocks, View(id).record.blocks - 2);
  EXPECT_EQ(View(id).streams_per_node, 2u);
}

TEST_F(RecoveryManagerTest, ANodeWhosePartHasEndedHelpsElsewhere) {
  RecoveryRequest request = Request();
  request.streams_per_node = 1;
  const RecoveryId id = Begin(request);
  const auto first = WaitForNewHosts(1);
  ASSERT_EQ(first.size(), 1u) << "four helpers and the host leave too few of nine for another";
  std::vector<HelperGateway::Handout> handouts;
  {
    MutexLock lock(&helpers_.mutex);
    handouts = helpers_.all[0];
  }
  for (const auto& handout : handouts) {
    if (!handout.part.stores.empty()) continue;
    repairs_->ReportPart(handout.helper.node, handout.part.repair_id, 0, absl::OkStatus());
    repairs_->ReportPart(handout.helper.node, handout.part.repair_id, 0, absl::OkStatus());
  }
  const auto second = WaitForNewHosts(1);
  ASSERT_EQ(second.size(), 1u);
  EXPECT_NE(second[0].first, first[0].first) << "that one still stores";
  for (const auto& [node, part] : {first[0], second[0]}) {
    repairs_->ReportPart(node, part.repair_id, part.attempt, absl::OkStatus());
  }
  ASSERT_TRUE(RunToEnd(id));
  EXPECT_EQ(View(id).record.state, RecoveryState::kDone);
}

TEST_F(RecoveryManagerTest, WhatFailsAgainAndAgainIsReported) {
  const RecoveryId id = Begin(Request());
  ASSERT_TRUE(RunToEnd(id, absl::DataLossError("bad sector")));
  const RecoveryView view = View(id);
  EXPECT_EQ(view.record.state, RecoveryState::kPartial);
  EXPECT_EQ(view.record.failed_blocks, view.record.blocks);
  ASSERT_FALSE(view.blocked.empty());
  EXPECT_EQ(view.blocked[0].attempts, 3);
  EXPECT_THAT(view.blocked[0].reason, HasSubstr("bad sector"));
}

TEST_F(RecoveryManagerTest, ADamagedStripeIsReportedAndHoldsUpNobody) {
  catalog_.damaged = {"s1000"};  // of which n0 has b0
  const uint64_t lost = BlocksOf("n0");
  const RecoveryId id = Begin(Request());
  ASSERT_TRUE(RunToEnd(id));
  const RecoveryView view = View(id);
  EXPECT_EQ(view.record.state, RecoveryState::kPartial);
  EXPECT_EQ(view.record.blocks, lost);
  EXPECT_EQ(view.record.done_blocks, lost - 1);
  ASSERT_EQ(view.blocked.size(), 1u);
  EXPECT_EQ(view.blocked[0].block_id, "b0");
  EXPECT_THAT(view.blocked[0].reason, HasSubstr("stripe s1000 is damaged"));
}

TEST_F(RecoveryManagerTest, WhatIsRefused) {
  RecoveryRequest live = Request();
  live.node = "n1";
  EXPECT_THAT(std::string(manager_->Begin(live, IfLive::kRefuse).status().message()),
              HasSubstr("is live"));
  EXPECT_TRUE(
      absl::IsInvalidArgument(manager_->Begin(Request({"nowhere"}), IfLive::kRefuse).status()));
  RecoveryRequest nobody = Request();
  nobody.node = "";
  EXPECT_TRUE(absl::IsInvalidArgument(manager_->Begin(nobody, IfLive::kRebuildAll).status()));
  nobody.node = std::string(256, 'n');
  EXPECT_TRUE(absl::IsInvalidArgument(manager_->Begin(nobody, IfLive::kRebuildAll).status()));
  RecoveryRequest magic = Request();
  magic.scheme = "magic";
  EXPECT_TRUE(absl::IsInvalidArgument(manager_->Begin(magic, IfLive::kRefuse).status()));
  magic.scheme = "direct";
  EXPECT_TRUE(absl::IsInvalidArgument(manager_->Begin(magic, IfLive::kRefuse).status()));
  Begin(Request());
  EXPECT_TRUE(absl::IsAlreadyExists(manager_->Begin(Request(), IfLive::kRefuse).status()));
  EXPECT_TRUE(manager_->Begin(live, IfLive::kRebuildAll).ok());
}

// Where no other node may take the block, the recovery waits, and says for whom.
TEST_F(RecoveryManagerTest, AHostThatRefusesIsPassedOver) {
  const auto set_down = [&](std::set<std::string> down) {
    MutexLock lock(&helpers_.mutex);
    helpers_.down = std::move(down);
  };
  set_down({"spare"});
  const RecoveryId id = Begin(Request({"spare"}));
  ASSERT_TRUE(WaitFor([&] {
    const RecoveryView view = View(id);
    return !view.blocked.empty() && view.blocked[0].attempts > 3;
  })) << "three are the limit of what is tried in vain";
  const RecoveryView view = View(id);
  EXPECT_EQ(view.record.state, RecoveryState::kRunning);
  EXPECT_EQ(view.record.failed_blocks, 0u);
  EXPECT_EQ(view.blocked[0].kind, WaitKind::kHelper);
  EXPECT_THAT(view.blocked[0].reason, HasSubstr("spare: refused"));
  set_down({});
  ASSERT_TRUE(RunToEnd(id));
  EXPECT_EQ(View(id).record.state, RecoveryState::kDone);
}

// Its limit is no limit of the coordinator, for which all recoveries would wait.
TEST_F(RecoveryManagerTest, AHostAtItsLimitIsPassedOverLikeAnyThatRefuses) {
  const auto set_busy = [&](std::set<std::string> busy) {
    MutexLock lock(&helpers_.mutex);
    helpers_.busy = std::move(busy);
  };
  set_busy({"spare"});
  const RecoveryId id = Begin(Request({"spare"}));
  ASSERT_TRUE(WaitFor([&] {
    const RecoveryView view = View(id);
    return !view.blocked.empty() && view.blocked[0].attempts > 1;
  })) << "an attempt counts, and its block pauses";
  EXPECT_EQ(View(id).blocked[0].kind, WaitKind::kHelper);
  EXPECT_THAT(View(id).blocked[0].reason, HasSubstr("spare: at its limit"));
  set_busy({});
  ASSERT_TRUE(RunToEnd(id));
  EXPECT_EQ(View(id).record.state, RecoveryState::kDone);
}

TEST_F(RecoveryManagerTest, TooFewSurvivorsAreWaitedForUnlessTheirNodesDenyTheirBlocks) {
  {
    MutexLock lock(&helpers_.mutex);
    helpers_.down = {"n1", "n2", "n3", "n4", "n5", "n6"};
  }
  Register("n0");  // or the coordinator, which has just started, would wait for it
  const absl::StatusOr<RecoveryId> begun = manager_->Begin(Request(), IfLive::kRebuildAll);
  ASSERT_TRUE(begun.ok()) << begun.status();
  const RecoveryId id = *begun;
  ASSERT_TRUE(WaitFor([&] {
    const RecoveryView view = View(id);
    return !view.blocked.empty() && view.blocked[0].attempts > 4;
  }));
  EXPECT_EQ(View(id).record.state, RecoveryState::kRunning);
  EXPECT_EQ(View(id).record.failed_blocks, 0u);
  // At any one moment all blocks may be tried again.
  EXPECT_TRUE(WaitFor([&] {
    const std::vector<RecoveryWait> waits = View(id).waits;
    return std::any_of(waits.begin(), waits.end(), [](const RecoveryWait& wait) {
      return wait.kind == WaitKind::kSurvivors && wait.blocks > 0;
    });
  }));
  // b0 is on n0, b1 to b5 of its stripe on n1 to n5: two more are gone for good.
  {
    MutexLock lock(&helpers_.mutex);
    helpers_.down.clear();
    for (const char* block : {"b1", "b2"}) {
      helpers_.missing.emplace(block, absl::NotFoundError("no root has it"));
    }
  }
  ASSERT_TRUE(RunToEnd(id)) << View(id).blocked.at(0).block_id << ": "
                            << View(id).blocked.at(0).reason;
  const RecoveryView view = View(id);
  EXPECT_EQ(view.record.state, RecoveryState::kPartial);
  ASSERT_EQ(view.record.failed_blocks, 1u);
  ASSERT_EQ(view.blocked.size(), 1u);
  EXPECT_EQ(view.blocked[0].block_id, "b0");
  EXPECT_THAT(view.blocked[0].reason, HasSubstr("is lost"));
  EXPECT_THAT(view.blocked[0].reason, HasSubstr("b1 on n1: no root has it"));
}

TEST_F(RecoveryManagerTest, WhereTheOtherBlocksAreIsLookedUpAnew) {
  catalog_.KeepStripes(1);  // b0 on n0, b1 to b5 on n1 to n5
  const RecoveryId id = Begin(Request({"n1"}));
  ASSERT_TRUE(WaitFor([&] {
    const RecoveryView view = View(id);
    return !view.blocked.empty() && view.blocked[0].kind == WaitKind::kTarget;
  })) << "n1 has a block of the stripe";
  ASSERT_TRUE(catalog_.MoveBlock("b1", "spare", catalog_.FindBlock("b1")->stripe).ok());
  ASSERT_TRUE(RunToEnd(id)) << View(id).blocked.at(0).reason;
  EXPECT_EQ(View(id).record.state, RecoveryState::kDone);
  EXPECT_EQ(BlocksOf("n1"), 1u);
  EXPECT_EQ(BlocksOf("n0"), 0u);
  // Those that help are the nodes of today as well.
  std::set<std::string> helpers;
  MutexLock lock(&helpers_.mutex);
  for (const auto& handout : helpers_.last) helpers.insert(handout.helper.node);
  EXPECT_TRUE(helpers.contains("n1")) << "the host";
}

TEST_F(RecoveryManagerTest, AStripeOfAnUnknownCodeIsReportedAndHoldsUpNobody) {
  catalog_.stripes["s1000"].code = "magic(6,4)";
  const uint64_t lost = BlocksOf("n0");
  const RecoveryId id = Begin(Request());
  ASSERT_TRUE(RunToEnd(id));
  const RecoveryView view = View(id);
  EXPECT_EQ(view.record.state, RecoveryState::kPartial);
  EXPECT_EQ(view.record.blocks, lost);
  EXPECT_EQ(view.record.done_blocks, lost - 1);
  ASSERT_EQ(view.blocked.size(), 1u);
  EXPECT_THAT(view.blocked[0].reason, HasSubstr("magic"));
}

TEST_F(RecoveryManagerTest, ANodeThatComesBackWithoutABlockDoesNotEndIt) {
  delay_ = std::chrono::hours(1);
  Start();
  RecoveryRequest request = Request();
  request.delay_seconds = 1;
  catalog_.stripes["s1004"].blocks[5].sha256 = std::string(64, 'a');
  const RecoveryId id = Begin(request);
  {
    MutexLock lock(&helpers_.mutex);
    helpers_.missing.emplace("b0", absl::NotFoundError("no root has it"));
    helpers_.missing.emplace("b54", 999);                  // one byte is missing
    helpers_.stored_sha256["b29"] = std::string(64, 'b');  // of other data
  }
  Register("n0");
  ASSERT_TRUE(RunToEnd(id));
  const RecoveryView view = View(id);
  EXPECT_EQ(view.record.state, RecoveryState::kReturned);
  EXPECT_EQ(view.record.done_blocks, 3u);
  EXPECT_EQ(view.there_blocks, view.record.blocks - 3);
  EXPECT_EQ(catalog_.moves.size(), 3u);
  EXPECT_TRUE(catalog_.moves.contains("b29"));
  EXPECT_TRUE(catalog_.moves.contains("b0"));
  EXPECT_TRUE(catalog_.moves.contains("b54"));
}

TEST_F(RecoveryManagerTest, ANodeThatIsBackAndDoesNotAnswerIsAskedAgain) {
  delay_ = std::chrono::hours(1);
  Start();
  const RecoveryId id = Begin(Request());
  {
    MutexLock lock(&helpers_.mutex);
    helpers_.down = {"n0"};
  }
  Register("n0");
  ASSERT_TRUE(WaitFor([&] {
    const std::vector<RecoveryWait> waits = View(id).waits;
    return !waits.empty() && waits[0].kind == WaitKind::kComparing &&
           waits[0].reason.find("n0: refused") != std::string::npos;
  }));
  EXPECT_EQ(View(id).record.state, RecoveryState::kRunning);
  {
    MutexLock lock(&helpers_.mutex);
    helpers_.down.clear();
  }
  ASSERT_TRUE(WaitFor([&] { return View(id).record.ended_unix_ms != 0; }));
  EXPECT_EQ(View(id).record.state, RecoveryState::kReturned);
}

// One of its roots is lost: the helper lives, and cannot tell of the blocks that were there.
TEST_F(RecoveryManagerTest, WhatALiveNodeCannotTellOfIsRebuiltInTheEnd) {
  question_pause_ = std::chrono::milliseconds(1);
  Start();
  Register("n0");
  {
    MutexLock lock(&helpers_.mutex);
    helpers_.missing.emplace("b0", absl::UnavailableError("root /r1 cannot be read"));
  }
  const absl::StatusOr<RecoveryId> id = manager_->Begin(Request(), IfLive::kRebuildMissing);
  ASSERT_TRUE(id.ok()) << id.status();
  ASSERT_TRUE(RunToEnd(*id));
  EXPECT_EQ(View(*id).record.state, RecoveryState::kReturned);
  EXPECT_EQ(catalog_.moves.size(), 1u) << "what it says that it has stays there";
  EXPECT_TRUE(catalog_.moves.contains("b0"));
  MutexLock lock(&helpers_.mutex);
  EXPECT_EQ(helpers_.asked_for_blocks, 6) << "five in vain, and one whose answer counts";
}

TEST_F(RecoveryManagerTest, OfALiveNodeOnlyWhatIsMissingIsRebuilt) {
  Register("n0");
  {
    MutexLock lock(&helpers_.mutex);
    helpers_.missing.emplace("b0", absl::NotFoundError("no root has it"));
  }
  const absl::StatusOr<RecoveryId> id = manager_->Begin(Request(), IfLive::kRebuildMissing);
  ASSERT_TRUE(id.ok()) << id.status();
  ASSERT_TRUE(RunToEnd(*id));
  EXPECT_EQ(View(*id).record.state, RecoveryState::kReturned);
  EXPECT_EQ(catalog_.moves.size(), 1u);
  EXPECT_TRUE(catalog_.moves.contains("b0"));
}

// The nodes of a coordinator that has just started are all unknown to it.
TEST_F(RecoveryManagerTest, ACoordinatorThatHasJustStartedWaitsForTheNode) {
  gather_ = std::chrono::hours(1);
  Start();
  const RecoveryId id = Begin(Request());
  ASSERT_TRUE(WaitFor([&] { return !View(id).listing; }));
  ASSERT_FALSE(View(id).waits.empty());
  EXPECT_EQ(View(id).waits[0].kind, WaitKind::kStarting);
  EXPECT_TRUE(NewHosts().empty());
  Register("n0");
  ASSERT_TRUE(WaitFor([&] { return View(id).record.ended_unix_ms != 0; }));
  EXPECT_EQ(View(id).record.state, RecoveryState::kReturned);
}

TEST_F(RecoveryManagerTest, WaitingBlocksNameTheLimitAndWhoseItIs) {
  RecoveryRequest request = Request({"spare"});
  request.streams_per_node = 1;
  const RecoveryId id = Begin(request);
  // Until the first repair has begun, the turn of the others comes next.
  ASSERT_TRUE(WaitFor([&] {
    const std::vector<RecoveryWait> waits = View(id).waits;
    return !waits.empty() && waits[0].kind == WaitKind::kStreams;
  }));
  const RecoveryView view = View(id);
  uint64_t blocks = 0;
  for (const RecoveryWait& wait : view.waits) blocks += wait.blocks;
  EXPECT_EQ(blocks, view.waiting_blocks) << "every block that waits has a reason";
  ASSERT_FALSE(view.waits.empty());
  EXPECT_EQ(view.waits[0].kind, WaitKind::kStreams);
  EXPECT_THAT(view.waits[0].reason, HasSubstr("1 repair already"));
  EXPECT_THAT(view.waits[0].reason, HasSubstr("--streams of this recovery"));
  EXPECT_THAT(view.waits[0].reason, HasSubstr("spare"));
  std::vector<WaitingBlock> waiting = manager_->Waiting(2);
  ASSERT_EQ(waiting.size(), 2u);
  EXPECT_EQ(waiting[0].recovery_id, id);
  EXPECT_EQ(waiting[0].node, "n0");
  EXPECT_EQ(waiting[0].spare, 1) << "five survivors, four needed";
  EXPECT_LE(waiting[0].spare, waiting[1].spare);
  EXPECT_EQ(waiting[0].why.kind, WaitKind::kStreams);
  EXPECT_EQ(manager_->Waiting(1000).size(), view.waiting_blocks);
  ASSERT_TRUE(manager_->Pause(id).ok());
  ASSERT_EQ(View(id).waits.size(), 1u);
  EXPECT_EQ(View(id).waits[0].kind, WaitKind::kPaused);
  waiting = manager_->Waiting(1);
  ASSERT_EQ(waiting.size(), 1u);
  EXPECT_EQ(waiting[0].why.kind, WaitKind::kPaused);
}

// Else a block whose repair always fails at once could come first for ever: the others would find
// the limit reached whenever their pause was over.
TEST_F(RecoveryManagerTest, ALimitIsNoFailureOfTheBlocksThatWaitForIt) {
  max_running_ = 2;  // one of them in the background
  Start();
  const RecoveryId id = Begin(Request());
  ASSERT_FALSE(WaitForNewHosts(1).empty());
  const auto reason = [&] {
    const std::vector<RecoveryWait> waits = View(id).waits;
    return waits.empty() ? std::string() : waits[0].reason;
  };
  ASSERT_TRUE(
      WaitFor([&] { return reason().find("limit of 1 background repairs") != std::string::npos; }));
  EXPECT_TRUE(View(id).blocked.empty()) << "nothing was tried in vain";
}

// A node is dead here when it has never registered.
TEST_F(RecoveryManagerTest, NothingIsRebuiltWhileTheNodeMayComeBack) {
  delay_ = std::chrono::hours(1);
  Start();
  const RecoveryId id = Begin(Request());
  ASSERT_TRUE(WaitFor([&] { return !View(id).listing; }));
  EXPECT_EQ(View(id).record.state, RecoveryState::kRunning);
  EXPECT_NEAR(View(id).begins_in_seconds, 3600, 60);
  EXPECT_EQ(View(id).running_blocks, 0u);
  const std::vector<WaitingBlock> waiting = manager_->Waiting(1);
  ASSERT_EQ(waiting.size(), 1u);
  EXPECT_EQ(waiting[0].why.kind, WaitKind::kDelay);
  EXPECT_EQ(waiting[0].spare, 1) << "survivors are counted before the recovery looks at them";
  Start();  // a coordinator after this one keeps to it
  ASSERT_TRUE(WaitFor([&] { return !View(id).listing; }));
  EXPECT_NEAR(View(id).begins_in_seconds, 3600, 60);
  Register("n0");
  ASSERT_TRUE(WaitFor([&] { return View(id).record.ended_unix_ms != 0; }));
  EXPECT_EQ(View(id).record.state, RecoveryState::kReturned);
  EXPECT_TRUE(NewHosts().empty());
}

TEST_F(RecoveryManagerTest, ANodeThatComesBackOnTheWayEndsIt) {
  const RecoveryId id = Begin(Request());
  const auto hosts = WaitForNewHosts(1);
  ASSERT_FALSE(hosts.empty());
  repairs_->ReportPart(hosts[0].first, hosts[0].second.repair_id, 0, absl::OkStatus());
  ASSERT_TRUE(WaitFor([&] { return View(id).record.done_blocks >= 1; }));
  Register("n0");
  ASSERT_TRUE(WaitFor([&] { return View(id).record.ended_unix_ms != 0; }));
  EXPECT_EQ(View(id).record.state, RecoveryState::kReturned);
  EXPECT_GE(View(id).record.done_blocks, 1u);
  EXPECT_LT(View(id).record.done_blocks, 18u);
}

}  // namespace
}  // namespace ecpipe::recovery_manager_test
