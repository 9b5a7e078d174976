// SPDX-License-Identifier: Apache-2.0
// Drains: recoveries that move the blocks off a node that lives.
#include <gmock/gmock.h>

#include "unit/coordinator/recovery/recovery_manager_fixture.h"

namespace ecpipe::recovery_moves_test {
namespace {

using ::testing::HasSubstr;

class RecoveryMovesTest : public RecoveryManagerTest {
 protected:
  void SetUp() override {
    Start();
    Register("n0");
  }
  static RecoveryRequest Drain(std::vector<std::string> to = {}) {
    RecoveryRequest request = Request(std::move(to));
    request.kind = RecoveryKind::kMove;
    return request;
  }
  KeptOut KeptOutOf(const std::string& node) { return repairs_->nodes().Find(node)->kept_out; }
  absl::Status BeginStatus(const RecoveryRequest& request) {
    return manager_->Begin(request, IfLive::kRefuse).status();
  }
  struct Seen {
    std::set<std::string> copied;  // block ids
    std::set<std::string> rebuilt;
    std::set<std::string> hosts;
  };
  // What helpers have taken parts for so far.
  Seen SeenSoFar() {
    Seen seen;
    MutexLock lock(&helpers_.mutex);
    for (const std::vector<HelperGateway::Handout>& handouts : helpers_.all) {
      std::string block_id;
      bool source = false;
      for (const HelperGateway::Handout& handout : handouts) {
        if (handout.part.stores.empty()) {
          source |= handout.helper.node == "n0";
          continue;
        }
        block_id = handout.part.stores[0].block_id;
        seen.hosts.insert(handout.helper.node);
      }
      EXPECT_TRUE(!source || handouts.size() == 2) << "a copy has a source and a host";
      (source ? seen.copied : seen.rebuilt).insert(block_id);
    }
    return seen;
  }
};

TEST_F(RecoveryMovesTest, BlocksAreCopiedAndRebuiltAtOnceAndEachIsMovedOnce) {
  const uint64_t blocks = BlocksOf("n0");
  const RecoveryId id = Begin(Drain());
  EXPECT_EQ(KeptOutOf("n0"), KeptOut::kDraining);
  // Nobody answers: the uplink of the node is full of copies, and others rebuild.
  ASSERT_TRUE(WaitFor([&] {
    const Seen seen = SeenSoFar();
    return seen.copied.size() == 4 && !seen.rebuilt.empty();
  }));
  ASSERT_TRUE(WaitFor([&] { return !View(id).waits.empty(); }));
  EXPECT_EQ(SeenSoFar().copied.size(), 4u);
  ASSERT_TRUE(RunToEnd(id));
  const RecoveryView view = View(id);
  EXPECT_EQ(view.record.state, RecoveryState::kDone);
  EXPECT_EQ(view.record.blocks, blocks);
  EXPECT_EQ(view.record.done_blocks, blocks);
  EXPECT_EQ(view.record.done_bytes, blocks * 1000);
  EXPECT_EQ(BlocksOf("n0"), 0u);
  for (const auto& [block, moves] : catalog_.moves) EXPECT_EQ(moves, 1) << block;
  EXPECT_FALSE(SeenSoFar().hosts.contains("n0"));
  EXPECT_TRUE(view.record.keeps_out);
  EXPECT_EQ(journal_.recoveries.at(id), view.record);
  EXPECT_EQ(KeptOutOf("n0"), KeptOut::kDrained);
}

// Else the last ones would wait for the uplink, one behind the other, and for nobody else.
TEST_F(RecoveryMovesTest, OfFewBlocksHalfAreRebuilt) {
  while (BlocksOf("n0") > 2) catalog_.KeepStripes(catalog_.stripes.size() - 1);
  const RecoveryId id = Begin(Drain());
  ASSERT_TRUE(WaitFor([&] {
    const Seen seen = SeenSoFar();
    return seen.copied.size() == 1 && seen.rebuilt.size() == 1;
  }));
  EXPECT_TRUE(RunToEnd(id));
}

TEST_F(RecoveryMovesTest, OneStreamANodeMeansOneCopy) {
  RecoveryRequest request = Drain();
  request.streams_per_node = 1;
  const RecoveryId id = Begin(request);
  ASSERT_TRUE(WaitFor([&] { return SeenSoFar().copied.size() == 1; }));
  ASSERT_TRUE(WaitFor([&] { return !View(id).waits.empty(); }));
  EXPECT_EQ(SeenSoFar().copied.size(), 1u);
  ASSERT_TRUE(RunToEnd(id));
}

TEST_F(RecoveryMovesTest, WithSchemeDirectOnlyWhatCannotBeCopiedIsRebuilt) {
  {
    MutexLock lock(&helpers_.mutex);
    helpers_.missing.emplace("b0", absl::NotFoundError("no root has it"));
  }
  RecoveryRequest request = Drain();
  request.scheme = "direct";
  const uint64_t blocks = BlocksOf("n0");
  const RecoveryId id = Begin(request);
  ASSERT_TRUE(WaitFor([&] { return SeenSoFar().copied.size() == 4; }));
  ASSERT_TRUE(RunToEnd(id));
  EXPECT_EQ(View(id).record.state, RecoveryState::kDone);
  EXPECT_EQ(SeenSoFar().copied.size(), blocks - 1);
  EXPECT_EQ(SeenSoFar().rebuilt, std::set<std::string>{"b0"});
}

TEST_F(RecoveryMovesTest, ABlockThatCannotBeCopiedIsRebuilt) {
  {
    MutexLock lock(&helpers_.mutex);
    helpers_.missing.emplace("b0", absl::NotFoundError("no root has it"));
  }
  const RecoveryId id = Begin(Drain());
  ASSERT_TRUE(RunToEnd(id));
  EXPECT_EQ(View(id).record.state, RecoveryState::kDone);
  EXPECT_FALSE(SeenSoFar().copied.contains("b0"));
  EXPECT_TRUE(SeenSoFar().rebuilt.contains("b0"));
}

TEST_F(RecoveryMovesTest, ASourceThatDoesNotAnswerIsDoneWithout) {
  {
    MutexLock lock(&helpers_.mutex);
    helpers_.down = {"n0"};
  }
  const uint64_t blocks = BlocksOf("n0");
  const RecoveryId id = Begin(Drain());
  ASSERT_TRUE(RunToEnd(id));
  EXPECT_EQ(View(id).record.state, RecoveryState::kDone);
  EXPECT_TRUE(SeenSoFar().copied.empty());
  EXPECT_EQ(SeenSoFar().rebuilt.size(), blocks);
}

// b0 to b5 of a stripe; of its other nodes three have never come.
TEST_F(RecoveryMovesTest, ABlockThatOthersCannotRebuildIsCopiedAndNeverLost) {
  {
    MutexLock lock(&catalog_.mutex);
    for (size_t i = 1; i < 4; ++i) catalog_.stripes["s1000"].blocks[i].node = "gone";
  }
  const RecoveryId id = Begin(Drain());
  ASSERT_TRUE(RunToEnd(id));
  EXPECT_EQ(View(id).record.state, RecoveryState::kDone);
  EXPECT_TRUE(SeenSoFar().copied.contains("b0"));
  EXPECT_FALSE(SeenSoFar().rebuilt.contains("b0"));
}

TEST_F(RecoveryMovesTest, WhatFailsAgainAndAgainWaitsWhileTheNodeMayHaveIt) {
  catalog_.KeepStripes(1);  // b0 on n0, b1 to b5 on n1 to n5
  {
    MutexLock lock(&helpers_.mutex);
    helpers_.down = {"n0"};
    for (const char* block : {"b1", "b2"}) {
      helpers_.missing.emplace(block, absl::NotFoundError("no root has it"));
    }
  }
  const RecoveryId id = Begin(Drain());
  ASSERT_TRUE(WaitFor([&] {
    const RecoveryView view = View(id);
    return !view.blocked.empty() && view.blocked[0].attempts > 8;
  })) << "three are the limit of what is tried in vain";
  EXPECT_EQ(View(id).record.state, RecoveryState::kRunning);
  EXPECT_EQ(View(id).record.failed_blocks, 0u);
  {
    MutexLock lock(&helpers_.mutex);
    helpers_.down.clear();
  }
  ASSERT_TRUE(RunToEnd(id));
  EXPECT_EQ(View(id).record.state, RecoveryState::kDone);
  EXPECT_TRUE(SeenSoFar().copied.contains("b0"));
}

TEST_F(RecoveryMovesTest, ABlockThatComesMeanwhileIsMovedToo) {
  const RecoveryId id = Begin(Drain());
  ASSERT_TRUE(WaitFor([&] { return !View(id).listing; }));
  std::string came;
  {
    MutexLock lock(&catalog_.mutex);
    for (auto& [stripe_id, stripe] : catalog_.stripes) {
      const bool has = std::any_of(stripe.blocks.begin(), stripe.blocks.end(),
                                   [](const BlockPlace& place) { return place.node == "n0"; });
      if (has || !came.empty()) continue;
      came = stripe.blocks[0].block_id;
      stripe.blocks[0].node = "n0";
    }
  }
  ASSERT_FALSE(came.empty());
  ASSERT_TRUE(RunToEnd(id));
  EXPECT_EQ(View(id).record.state, RecoveryState::kDone);
  EXPECT_EQ(BlocksOf("n0"), 0u);
  EXPECT_TRUE(catalog_.moves.contains(came));
}

TEST_F(RecoveryMovesTest, ADrainedNodeTakesNoBlocksUntilItIsReadmitted) {
  ASSERT_TRUE(RunToEnd(Begin(Drain())));
  for (int restart = 0; restart < 2; ++restart) {
    EXPECT_EQ(KeptOutOf("n0"), KeptOut::kDrained);
    RecoveryRequest onto = Request({"n0"});
    onto.node = "n1";
    EXPECT_THAT(std::string(manager_->Begin(onto, IfLive::kRebuildAll).status().message()),
                HasSubstr("readmit n0"));
    RepairRequest repair;
    repair.block_ids = {"b8"};  // of a stripe that never had a block on n0 or spare
    repair.hosts = {"n0"};
    const absl::Status refused = repairs_->Explain(repair).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(refused));
    EXPECT_THAT(std::string(refused.message()), HasSubstr("it is drained"));
    Start();
    Register("n0");
  }
  RecoveryRequest other = Request();
  other.node = "n1";
  const absl::StatusOr<RecoveryId> recovery = manager_->Begin(other, IfLive::kRebuildAll);
  ASSERT_TRUE(recovery.ok()) << recovery.status();
  ASSERT_TRUE(RunToEnd(*recovery));
  EXPECT_EQ(BlocksOf("n0"), 0u);
  // What the journal does not take has not happened.
  {
    MutexLock lock(&journal_.mutex);
    journal_.recoveries_refused = absl::UnavailableError("the disk is full");
  }
  EXPECT_THAT(std::string(manager_->Readmit("n0").message()), HasSubstr("takes no blocks"));
  EXPECT_EQ(KeptOutOf("n0"), KeptOut::kDrained);
  {
    MutexLock lock(&journal_.mutex);
    journal_.recoveries_refused = absl::OkStatus();
  }
  ASSERT_TRUE(manager_->Readmit("n0").ok());
  EXPECT_EQ(KeptOutOf("n0"), KeptOut::kNone);
  EXPECT_TRUE(absl::IsNotFound(manager_->Readmit("n0")));
  Start();
  Register("n0");
  EXPECT_EQ(KeptOutOf("n0"), KeptOut::kNone);
}

TEST_F(RecoveryMovesTest, ACancelledDrainReadmitsTheNode) {
  // An earlier drain kept the node out as well.
  ASSERT_TRUE(RunToEnd(Begin(Drain())));
  {
    MutexLock lock(&catalog_.mutex);
    catalog_.stripes["s1000"].blocks[0].node = "n0";
  }
  const RecoveryId id = Begin(Drain());
  EXPECT_THAT(std::string(manager_->Readmit("n0").message()), HasSubstr("recovery cancel"));
  EXPECT_TRUE(absl::IsAlreadyExists(BeginStatus(Drain())));
  ASSERT_TRUE(manager_->Pause(id).ok());
  EXPECT_EQ(KeptOutOf("n0"), KeptOut::kDraining);
  ASSERT_TRUE(manager_->Cancel(id).ok());
  EXPECT_EQ(KeptOutOf("n0"), KeptOut::kNone);
  EXPECT_FALSE(journal_.recoveries.at(id).keeps_out);
}

TEST_F(RecoveryMovesTest, ACoordinatorAfterThisOneGoesOn) {
  const uint64_t blocks = BlocksOf("n0");
  const RecoveryId id = Begin(Drain());
  // What ends before the number of blocks is known is not counted by the next one.
  ASSERT_TRUE(WaitFor([&] { return !View(id).listing && !SeenSoFar().copied.empty(); }));
  Start();
  Register("n0");
  EXPECT_EQ(KeptOutOf("n0"), KeptOut::kDraining);
  answered_ = 0;
  ASSERT_TRUE(RunToEnd(id));
  EXPECT_EQ(View(id).record.state, RecoveryState::kDone);
  EXPECT_EQ(View(id).record.done_blocks, blocks);
  EXPECT_EQ(BlocksOf("n0"), 0u);
}

TEST_F(RecoveryMovesTest, WhatIsRefused) {
  RecoveryRequest request = Drain();
  request.node = "nowhere";
  EXPECT_TRUE(absl::IsNotFound(BeginStatus(request)));
  ASSERT_TRUE(repairs_->nodes().AddDead(FakeNode("dead"), std::chrono::hours(1)).ok());
  request.node = "dead";
  EXPECT_TRUE(absl::IsFailedPrecondition(BeginStatus(request)));
  EXPECT_THAT(std::string(BeginStatus(request).message()), HasSubstr("recover-node dead"));
  NodeRecord of_system = FakeNode("datanode");
  of_system.storage_id = "uuid";
  ASSERT_TRUE(repairs_->Register(of_system).ok());
  request.node = "datanode";
  EXPECT_THAT(std::string(BeginStatus(request).message()), HasSubstr("decommission"));
  EXPECT_TRUE(absl::IsInvalidArgument(BeginStatus(Drain({"n0"}))));
  EXPECT_TRUE(absl::IsInvalidArgument(BeginStatus(Drain({"nowhere"}))));
  EXPECT_EQ(KeptOutOf("n0"), KeptOut::kNone);
}

}  // namespace
}  // namespace ecpipe::recovery_moves_test
