// SPDX-License-Identifier: Apache-2.0
// Maintenance: a node that may be away for a while, and what is rebuilt when its time is over.
#include <gmock/gmock.h>

#include <cmath>

#include "unit/coordinator/recovery/recovery_manager_fixture.h"

namespace ecpipe::recovery_maintenance_test {
namespace {

using ::testing::HasSubstr;

constexpr double kHour = 3600;

class RecoveryMaintenanceTest : public RecoveryManagerTest {
 protected:
  void SetUp() override {
    Start();
    Register("n0");
  }
  RecoveryId Maintain(double seconds, const std::string& node = "n0") {
    const absl::StatusOr<RecoveryId> id = manager_->Maintain(node, seconds);
    EXPECT_TRUE(id.ok()) << id.status();
    return id.value_or(0);
  }
  // Who is in no maintenance, and has not registered, is unknown.
  bool Known() { return repairs_->nodes().Find("n0").has_value(); }
  NodeView Node() { return repairs_->nodes().Find("n0").value(); }
  // A coordinator after this one; n0 has not registered with it.
  void RestartWithoutNode() {
    Start();
    ASSERT_EQ(Node().state, NodeState::kDead);
  }
  bool WaitForEnd(RecoveryId id) {
    return WaitFor([&] { return View(id).record.ended_unix_ms != 0; });
  }
};

TEST_F(RecoveryMaintenanceTest, UntilItsEndANodeTakesNoBlocksAndNothingIsRebuilt) {
  const RecoveryId id = Maintain(kHour);
  EXPECT_EQ(Node().kept_out, KeptOut::kMaintenance);
  EXPECT_FALSE(Node().Away()) << "it is still there";
  RestartWithoutNode();
  EXPECT_EQ(Node().kept_out, KeptOut::kMaintenance);
  EXPECT_TRUE(Node().Away());
  EXPECT_EQ(repairs_->nodes().All().size(), 10u);
  EXPECT_EQ(Maintain(kHour), id) << "its time can be changed all the same";
  const RecoveryView view = View(id);
  EXPECT_EQ(view.record.state, RecoveryState::kRunning);
  EXPECT_EQ(view.record.request.kind, RecoveryKind::kMaintenance);
  EXPECT_NEAR(view.begins_in_seconds, kHour, 60);
  EXPECT_FALSE(view.listing);
  EXPECT_EQ(view.record.blocks, 0u);
  EXPECT_TRUE(manager_->Waiting(1).empty());
  EXPECT_TRUE(manager_->Overviews().empty()) << "no recovery is behind its time";
  RecoveryRequest onto = Request({"n0"});
  onto.node = "n1";
  EXPECT_THAT(std::string(manager_->Begin(onto, IfLive::kRebuildAll).status().message()),
              HasSubstr("in maintenance"));
  // Others are recovered meanwhile, but not onto it.
  onto.hosts.clear();
  const absl::StatusOr<RecoveryId> other = manager_->Begin(onto, IfLive::kRebuildAll);
  ASSERT_TRUE(other.ok()) << other.status();
  const uint64_t before = BlocksOf("n0");
  ASSERT_TRUE(RunToEnd(*other));
  EXPECT_EQ(View(*other).record.state, RecoveryState::kDone);
  EXPECT_EQ(BlocksOf("n0"), before);
  EXPECT_EQ(View(id).record.state, RecoveryState::kRunning);
}

TEST_F(RecoveryMaintenanceTest, ANodeThatIsBackWithAllThatItHadEndsIt) {
  const RecoveryId id = Maintain(1);
  ASSERT_TRUE(WaitForEnd(id));
  EXPECT_EQ(View(id).record.state, RecoveryState::kReturned);
  EXPECT_EQ(Node().kept_out, KeptOut::kNone);
  EXPECT_TRUE(catalog_.moves.empty());
  EXPECT_EQ(journal_.recoveries.at(id), View(id).record);
}

TEST_F(RecoveryMaintenanceTest, WhatANodeThatIsBackDoesNotHaveIsRebuilt) {
  {
    MutexLock lock(&helpers_.mutex);
    helpers_.missing.emplace("b0", absl::NotFoundError("no root has it"));
  }
  const RecoveryId id = Maintain(1);
  ASSERT_TRUE(RunToEnd(id));
  EXPECT_EQ(View(id).record.state, RecoveryState::kReturned);
  EXPECT_EQ(catalog_.moves.size(), 1u);
  EXPECT_TRUE(catalog_.moves.contains("b0"));
}

TEST_F(RecoveryMaintenanceTest, OfANodeThatIsDeadAtTheEndAllIsRebuilt) {
  const uint64_t blocks = BlocksOf("n0");
  const RecoveryId id = Maintain(1);
  RestartWithoutNode();
  ASSERT_TRUE(RunToEnd(id));
  EXPECT_EQ(View(id).record.state, RecoveryState::kDone);
  EXPECT_EQ(View(id).record.done_blocks, blocks);
  EXPECT_EQ(BlocksOf("n0"), 0u);
  EXPECT_FALSE(Known());
}

TEST_F(RecoveryMaintenanceTest, AskedForAgainItEndsAtTheNewTime) {
  const RecoveryId id = Maintain(kHour);
  EXPECT_EQ(Maintain(2 * kHour), id);
  EXPECT_NEAR(View(id).begins_in_seconds, 2 * kHour, 60);
  EXPECT_EQ(Maintain(kHour), id);
  EXPECT_NEAR(View(id).begins_in_seconds, kHour, 60);
  {
    MutexLock lock(&journal_.mutex);
    journal_.recoveries_refused = absl::UnavailableError("the disk is full");
  }
  EXPECT_THAT(std::string(manager_->Maintain("n0", 1).status().message()),
              HasSubstr("the disk is full"));
  EXPECT_NEAR(View(id).begins_in_seconds, kHour, 60)
      << "what the journal does not take has not been";
  {
    MutexLock lock(&journal_.mutex);
    journal_.recoveries_refused = absl::OkStatus();
  }
  EXPECT_EQ(Maintain(1), id);
  ASSERT_TRUE(WaitForEnd(id));
  EXPECT_NE(Maintain(kHour), id) << "one that has ended is over";
}

TEST_F(RecoveryMaintenanceTest, AReadmittedNodeIsComparedAtOnce) {
  const RecoveryId id = Maintain(kHour);
  ASSERT_TRUE(manager_->Readmit("n0").ok());
  EXPECT_EQ(Node().kept_out, KeptOut::kNone);
  ASSERT_TRUE(WaitForEnd(id));
  EXPECT_EQ(View(id).record.state, RecoveryState::kReturned);
  EXPECT_TRUE(absl::IsNotFound(manager_->Readmit("n0")));
}

TEST_F(RecoveryMaintenanceTest, ReadmittingADeadNodeRebuildsItsBlocks) {
  const RecoveryId id = Maintain(kHour);
  RestartWithoutNode();
  ASSERT_TRUE(manager_->Readmit("n0").ok());
  ASSERT_TRUE(RunToEnd(id));
  EXPECT_EQ(View(id).record.state, RecoveryState::kDone);
  EXPECT_EQ(BlocksOf("n0"), 0u);
}

TEST_F(RecoveryMaintenanceTest, OneThatIsCancelledRebuildsNothing) {
  const uint64_t blocks = BlocksOf("n0");
  const RecoveryId id = Maintain(kHour);
  RestartWithoutNode();
  ASSERT_TRUE(manager_->Cancel(id).ok());
  EXPECT_EQ(View(id).record.state, RecoveryState::kCancelled);
  EXPECT_FALSE(Known());
  EXPECT_FALSE(journal_.recoveries.at(id).keeps_out);
  EXPECT_EQ(BlocksOf("n0"), blocks);
  EXPECT_TRUE(manager_->Begin(Request(), IfLive::kRefuse).ok()) << "a recovery is possible again";
}

TEST_F(RecoveryMaintenanceTest, ADrainedNodeStaysDrainedAfterIt) {
  RecoveryRequest drain = Request();
  drain.kind = RecoveryKind::kMove;
  ASSERT_TRUE(RunToEnd(Begin(drain)));
  const RecoveryId id = Maintain(1);
  EXPECT_EQ(Node().kept_out, KeptOut::kMaintenance);
  ASSERT_TRUE(WaitForEnd(id));
  EXPECT_EQ(Node().kept_out, KeptOut::kDrained);
  // Readmitting ends both.
  Maintain(kHour);
  ASSERT_TRUE(manager_->Readmit("n0").ok());
  EXPECT_EQ(Node().kept_out, KeptOut::kNone);
}

TEST_F(RecoveryMaintenanceTest, AfterAFailedReadmitANodeThatWasDrainedTakesNoBlocks) {
  RecoveryRequest drain = Request();
  drain.kind = RecoveryKind::kMove;
  const RecoveryId drained = Begin(drain);
  ASSERT_TRUE(RunToEnd(drained));
  const RecoveryId id = Maintain(kHour);
  {
    MutexLock lock(&journal_.mutex);
    journal_.refused_recovery = drained;
  }
  EXPECT_FALSE(manager_->Readmit("n0").ok());
  EXPECT_EQ(Node().kept_out, KeptOut::kDrained);
  ASSERT_TRUE(WaitForEnd(id));
}

TEST_F(RecoveryMaintenanceTest, ItDoesNotPause) {
  const RecoveryId id = Maintain(kHour);
  const absl::Status refused = manager_->Pause(id);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("in maintenance"));
  EXPECT_EQ(View(id).record.state, RecoveryState::kRunning);
}

TEST_F(RecoveryMaintenanceTest, ANodeThatDiedBeforeTheCoordinatorStartedIsKnownByItsBlocks) {
  Start();
  ASSERT_FALSE(Known());
  const RecoveryId id = Maintain(kHour);
  EXPECT_TRUE(Node().Away());
  ASSERT_TRUE(manager_->Cancel(id).ok());
  EXPECT_TRUE(manager_->Overviews().empty()) << "nothing was to be rebuilt by it";
}

TEST_F(RecoveryMaintenanceTest, WhatIsRefused) {
  for (const double seconds : {0.0, 0.5, -1.0, 8 * 24 * kHour, std::nan("")}) {
    EXPECT_TRUE(absl::IsInvalidArgument(manager_->Maintain("n0", seconds).status())) << seconds;
  }
  EXPECT_TRUE(absl::IsNotFound(manager_->Maintain("nobody", kHour).status()));
  NodeRecord of_hdfs = FakeNode("datanode");
  of_hdfs.storage_id = "DS-1";
  ASSERT_TRUE(repairs_->Register(of_hdfs).ok());
  EXPECT_THAT(std::string(manager_->Maintain("datanode", kHour).status().message()),
              HasSubstr("repairs its blocks itself"));
  const RecoveryId id = Maintain(kHour);
  RecoveryRequest drain = Request();
  drain.kind = RecoveryKind::kMove;
  for (const absl::Status& refused : {manager_->Begin(drain, IfLive::kRefuse).status(),
                                      manager_->Begin(Request(), IfLive::kRebuildAll).status()}) {
    EXPECT_TRUE(absl::IsAlreadyExists(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()),
                HasSubstr("ecpipe recovery cancel " + std::to_string(id)));
  }
  ASSERT_TRUE(manager_->Cancel(id).ok());
  const RecoveryId running = Begin(drain);
  EXPECT_TRUE(absl::IsAlreadyExists(manager_->Maintain("n0", kHour).status()));
  ASSERT_TRUE(manager_->Cancel(running).ok());
}

}  // namespace
}  // namespace ecpipe::recovery_maintenance_test
