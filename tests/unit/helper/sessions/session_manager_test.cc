// SPDX-License-Identifier: Apache-2.0
#include "helper/sessions/session_manager.h"

#include "base/fault_points.h"
#include "unit/helper/sessions/sessions_fixture.h"

namespace ecpipe::session_manager_test {
namespace {

using ::testing::HasSubstr;

TEST_F(SessionManagerTest, APartThatEndsIsReportedAndLeavesNothing) {
  tcp_.flows = true;
  ASSERT_TRUE(manager_->Start(Part(5, 2)).ok());
  const std::vector<PartReport> reports = WaitForReports(1);
  EXPECT_EQ(reports[0].repair_id, 5u);
  EXPECT_EQ(reports[0].attempt, 2u);
  EXPECT_TRUE(reports[0].status.ok()) << reports[0].status;
  EXPECT_EQ(reports[0].traffic.block_bytes_read, 1000u);
  manager_->Drain(std::chrono::seconds(20));
  const SessionCounts counts = manager_->counts();
  EXPECT_EQ(counts.active_sessions, 0u);
  EXPECT_EQ(counts.buffer_bytes, 0u);
  EXPECT_EQ(counts.parts_done, 1u);
  EXPECT_EQ(counts.parts_failed, 0u);
  EXPECT_EQ(counts.traffic.block_bytes_read, 1000u);
  EXPECT_EQ(tcp_.open, 0);
}

TEST_F(SessionManagerTest, ARunningPartHoldsItsBuffers) {
  ASSERT_TRUE(manager_->Start(Part(1)).ok());
  EXPECT_EQ(manager_->counts().active_sessions, 1u);
  EXPECT_EQ(manager_->counts().buffer_bytes, PartBufferBytes(Part(1), {}));
  EXPECT_GT(manager_->counts().buffer_bytes, 0u);
  EXPECT_EQ(tcp_.open, 1);
}

TEST_F(SessionManagerTest, CancelEndsTheAttemptsUpToTheOneNamed) {
  ASSERT_TRUE(manager_->Start(Part(1, 3)).ok());
  ASSERT_TRUE(manager_->Start(Part(2, 0)).ok());
  EXPECT_EQ(manager_->Cancel(1, 2), 0u);
  EXPECT_EQ(manager_->Cancel(7, 9), 0u);
  EXPECT_EQ(manager_->Cancel(1, 3), 1u);
  const std::vector<PartReport> reports = WaitForReports(1);
  EXPECT_EQ(reports[0].repair_id, 1u);
  EXPECT_TRUE(absl::IsCancelled(reports[0].status)) << reports[0].status;
}

TEST_F(SessionManagerTest, AllOutputsAreToldOfAnErrorByOneDeadline) {
  RepairPart part = Part(1);
  part.hops[0].outputs.push_back({{1, 0, 0, 0, 1}, {}, "other", {0}});
  ASSERT_TRUE(manager_->Start(std::move(part)).ok());
  EXPECT_EQ(manager_->Cancel(1, 0), 1u);
  WaitForReports(1);
  const std::vector<TimePoint> told = tcp_.Told();
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[0], told[1]);
}

TEST_F(SessionManagerTest, ANewerAttemptReplacesTheOlder) {
  ASSERT_TRUE(manager_->Start(Part(1, 0)).ok());
  ASSERT_TRUE(manager_->Start(Part(1, 1)).ok());
  std::vector<PartReport> reports = WaitForReports(1);
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].attempt, 0u);
  EXPECT_TRUE(absl::IsCancelled(reports[0].status)) << reports[0].status;
  // The older one may still be on its way out.
  EXPECT_GE(manager_->Cancel(1, 1), 1u) << "the newer one runs on";
  reports = WaitForReports(2);
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_EQ(reports[1].attempt, 1u);
}

TEST_F(SessionManagerTest, RecoveriesLeaveAQuarterOfTheSessionsToReads) {
  Make({.part = {}, .max_sessions = 4});
  RepairPart recovery = Part(0);
  recovery.background = true;
  for (RepairId id = 1; id <= 3; ++id) {
    recovery.repair_id = id;
    ASSERT_TRUE(manager_->Start(recovery).ok()) << id;
  }
  recovery.repair_id = 4;
  ExpectRefused(recovery, absl::StatusCode::kResourceExhausted, "3 background sessions");
  EXPECT_TRUE(manager_->Start(Part(5)).ok());
  ExpectRefused(Part(6), absl::StatusCode::kResourceExhausted, "4 sessions");
}

TEST_F(SessionManagerTest, RecoveriesLeaveAQuarterOfTheBuffersToReads) {
  const uint64_t each = PartBufferBytes(Part(1), {});
  Make({.part = {}, .max_sessions = 100, .max_buffer_bytes = 4 * each});
  RepairPart recovery = Part(0);
  recovery.background = true;
  for (RepairId id = 1; id <= 3; ++id) {
    recovery.repair_id = id;
    ASSERT_TRUE(manager_->Start(recovery).ok()) << id;
  }
  recovery.repair_id = 4;
  ExpectRefused(recovery, absl::StatusCode::kResourceExhausted,
                "more than background repairs may still take");
  EXPECT_TRUE(manager_->Start(Part(5)).ok());
}

TEST_F(SessionManagerTest, TheLimitOfSessionsChangesWhileTheyRun) {
  ASSERT_TRUE(manager_->Start(Part(1)).ok());
  ASSERT_TRUE(manager_->Start(Part(2)).ok());
  manager_->SetMaxSessions(1);
  EXPECT_EQ(manager_->counts().active_sessions, 2u) << "those under way go on";
  ExpectRefused(Part(3), absl::StatusCode::kResourceExhausted, "1 sessions");
  manager_->SetMaxSessions(3);
  EXPECT_TRUE(manager_->Start(Part(3)).ok());
}

TEST_F(SessionManagerTest, TheSameOrAnOlderAttemptIsRefused) {
  ASSERT_TRUE(manager_->Start(Part(1, 1)).ok());
  for (const uint32_t attempt : {0u, 1u}) {
    ExpectRefused(Part(1, attempt), absl::StatusCode::kAlreadyExists,
                  "attempt 1 of repair 0000000000000001 is already running here");
  }
  EXPECT_TRUE(manager_->Start(Part(2, 0)).ok()) << "another repair is not concerned";
}

TEST_F(SessionManagerTest, SessionsAreLimited) {
  Make({.max_sessions = 2});
  ASSERT_TRUE(manager_->Start(Part(1)).ok());
  ASSERT_TRUE(manager_->Start(Part(2)).ok());
  ExpectRefused(Part(3), absl::StatusCode::kResourceExhausted, "limit of 2 sessions");
  EXPECT_EQ(manager_->Cancel(1, 0), 1u);
  WaitForReports(1);
}

TEST_F(SessionManagerTest, PartsWhoseBlocksAreBeingOpenedCount) {
  const uint64_t each = PartBufferBytes(Part(1), {});
  RepairPart recovery = Part(1);
  int opened = 0;
  for (const auto& [options, why] :
       {std::pair(SessionManager::Options{.part = {}, .max_sessions = 1}, "limit of 1 sessions"),
        std::pair(SessionManager::Options{.part = {}, .max_buffer_bytes = each + 1},
                  "only 1 are free"),
        std::pair(SessionManager::Options{.part = {}, .max_sessions = 2},
                  "1 background sessions")}) {
    SCOPED_TRACE(why);
    Make(options);
    recovery.background = options.max_buffer_bytes > each + 1;  // else it is refused for its share
    store_.opens.Close();
    Thread first([&] { EXPECT_TRUE(manager_->Start(recovery).ok()); });
    store_.opens.AwaitWaiting(++opened);
    RepairPart second = recovery;
    second.repair_id = 2;
    // It would wait for the disk as well, and many such parts for all threads of the control port.
    ExpectRefused(second, absl::StatusCode::kResourceExhausted, why);
    store_.opens.Open();
    first.join();
    EXPECT_EQ(manager_->counts().active_sessions, 1u);
  }
}

TEST_F(SessionManagerTest, WithoutMemoryToOpenItsBlocksAPartLeavesNothing) {
  Make({.part = {}, .max_sessions = 1});
  store_.throws = true;
  EXPECT_TRUE(absl::IsResourceExhausted(manager_->Start(Part(1)).status()));
  store_.throws = false;
  const absl::Status next = manager_->Start(Part(1)).status();
  EXPECT_TRUE(next.ok()) << next;
}

TEST_F(SessionManagerTest, APartThatIsCancelledWhileItsBlocksAreOpenedDoesNotBegin) {
  int opened = 0;
  for (const bool by_a_later_attempt : {false, true}) {
    SCOPED_TRACE(by_a_later_attempt);
    store_.opens.Close();
    absl::Status first_status, later_status;
    Thread first([&] { first_status = manager_->Start(Part(1, 0)).status(); });
    store_.opens.AwaitWaiting(++opened);
    Thread later;
    if (by_a_later_attempt) {
      later = Thread([&] { later_status = manager_->Start(Part(1, 1)).status(); });
      store_.opens.AwaitWaiting(++opened);
    } else {
      EXPECT_EQ(manager_->Cancel(1, 0), 1u);
    }
    store_.opens.Open();
    first.join();
    if (by_a_later_attempt) later.join();
    EXPECT_EQ(first_status.code(), absl::StatusCode::kCancelled) << first_status;
    EXPECT_TRUE(later_status.ok()) << later_status;
    EXPECT_EQ(manager_->counts().active_sessions, by_a_later_attempt ? 1u : 0u);
  }
}

TEST_F(SessionManagerTest, BuffersAreLimited) {
  const uint64_t one = PartBufferBytes(Part(1), {});
  Make({.max_buffer_bytes = 2 * one - 1});
  ASSERT_TRUE(manager_->Start(Part(1)).ok());
  ExpectRefused(Part(2), absl::StatusCode::kResourceExhausted,
                "the part needs " + std::to_string(one) + " bytes of slice buffers, but only " +
                    std::to_string(one - 1) + " are free");
}

TEST_F(SessionManagerTest, AMissingBlockIsNotFound) {
  RepairPart part = Part(1);
  part.hops[0].block->block_id = "other";
  ExpectRefused(part, absl::StatusCode::kNotFound, "block other");
}

TEST_F(SessionManagerTest, ABlockOfAnotherLengthIsRefused) {
  RepairPart part = Part(1);
  part.hops[0].block->bytes = 1001;
  ExpectRefused(part, absl::StatusCode::kOutOfRange,
                "block block has 1000 bytes here, but the coordinator expects 1001");
}

// An older one that came back with its node, or one that was exchanged with it.
TEST_F(SessionManagerTest, AnotherBlockOfItsNameIsRefused) {
  RepairPart part = Part(1);
  part.hops[0].block->sha256 = std::string(64, 'a');
  store_.stored_sha256 = std::string(64, 'b');
  ExpectRefused(part, absl::StatusCode::kDataLoss,
                "block block is another one than the catalog has: it was stored with SHA-256 bbb");
  store_.stored_sha256 = std::string(64, 'a');
  EXPECT_TRUE(manager_->Start(part).ok());
  part.repair_id = 2;
  part.hops[0].outputs[0].edge.repair_id = 2;
  store_.stored_sha256 = "";
  EXPECT_TRUE(manager_->Start(part).ok()) << "the store does not keep it";
}

TEST_F(SessionManagerTest, ABlockWhoseMissingEndIsZerosMayBeShorterButNotLonger) {
  store_.zeros_follow = true;
  RepairPart part = Part(1);
  part.hops[0].block->bytes = 999;
  ExpectRefused(part, absl::StatusCode::kOutOfRange, "the coordinator expects 999");
  part.hops[0].block->bytes = 1001;
  const absl::Status started = manager_->Start(part).status();
  EXPECT_TRUE(started.ok()) << started;
}

TEST_F(SessionManagerTest, AStreamThatCannotBeOfferedLeavesNothing) {
  tcp_.refuse = true;
  ExpectRefused(Part(1), absl::StatusCode::kAlreadyExists, "already expects");
  tcp_.refuse = false;
  EXPECT_TRUE(manager_->Start(Part(1)).ok()) << "and nothing stands in the way afterwards";
}

TEST_F(SessionManagerTest, RequestorsAndRedisAreNotServedWithoutBeingSetUp) {
  RepairPart requestor = Part(1);
  requestor.hops[0].stored_rows = {0};
  ExpectRefused(requestor, absl::StatusCode::kInvalidArgument, "names no block to store");
  RepairPart redis = Part(1);
  redis.transport = TransportKind::kRedis;
  ExpectRefused(redis, absl::StatusCode::kFailedPrecondition, "no redis-server");
}

// A part that stores what it computes from its own block, and sends it on as well.
RepairPart HostedPart(RepairPart part) {
  part.hops[0].stored_rows = {0};
  part.stores = {{0, "new", 1000}};
  EXPECT_TRUE(ValidatePart(part).ok()) << ValidatePart(part);
  return part;
}

TEST_F(SessionManagerTest, AHostedBlockIsStoredOrLeavesNothing) {
  const auto hosting = [](RepairId repair_id) { return HostedPart(Part(repair_id)); };
  store_.full = true;
  ExpectRefused(hosting(1), absl::StatusCode::kResourceExhausted, "no block root has room");
  store_.full = false;

  ASSERT_TRUE(manager_->Start(hosting(1)).ok());
  EXPECT_EQ(manager_->Cancel(1, 0), 1u);
  EXPECT_TRUE(absl::IsCancelled(WaitForReports(1)[0].status));
  EXPECT_EQ(store_.committed, 0);
  EXPECT_EQ(store_.writers, 0) << "nothing is left when the report goes out";

  tcp_.flows = true;
  store_.fail_commit = true;
  ASSERT_TRUE(manager_->Start(hosting(2)).ok());
  const absl::Status full = WaitForReports(2)[1].status;
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
  EXPECT_THAT(std::string(full.message()), HasSubstr("store block new"));

  store_.fail_commit = false;
  ASSERT_TRUE(manager_->Start(hosting(3)).ok());
  EXPECT_TRUE(WaitForReports(3)[2].status.ok());
  EXPECT_EQ(store_.committed, 1);
  EXPECT_EQ(store_.writers, 0);
}

TEST_F(SessionManagerTest, AProbeNeedsNoBlockAndReportsItsLink) {
  tcp_.flows = true;
  RepairPart probe = Part(1);
  probe.hops[0].block->block_id = "no such block";
  probe.hops[0].outputs[0].measured = true;
  ExpectRefused(probe, absl::StatusCode::kNotFound, "no such block");
  RepairPart receiver = Part(2);
  receiver.hops[0].outputs.clear();
  receiver.hops[0].stored_rows = {0};
  ExpectRefused(receiver, absl::StatusCode::kInvalidArgument, "names no block to store");

  probe.probe = true;
  ASSERT_TRUE(manager_->Start(probe).ok());
  const PartReport sender = WaitForReports(1)[0];
  EXPECT_TRUE(sender.status.ok()) << sender.status;
  ASSERT_EQ(sender.links.size(), 1u);
  EXPECT_EQ(sender.links[0].to, "next");

  receiver.probe = true;
  ASSERT_TRUE(manager_->Start(receiver).ok());
  EXPECT_TRUE(WaitForReports(2)[1].status.ok());
  EXPECT_EQ(store_.committed, 0);
}

TEST_F(SessionManagerTest, DrainCancelsWhatDoesNotEndInTime) {
  ASSERT_TRUE(manager_->Start(Part(1)).ok());
  EXPECT_FALSE(manager_->draining());
  manager_->Drain(Duration(0));
  EXPECT_TRUE(manager_->draining());
  const std::vector<PartReport> reports = WaitForReports(1);
  EXPECT_TRUE(absl::IsUnavailable(reports[0].status)) << reports[0].status;
  EXPECT_EQ(manager_->counts().active_sessions, 0u);
  EXPECT_EQ(manager_->counts().buffer_bytes, 0u);
  EXPECT_EQ(manager_->counts().parts_failed, 1u);
  ExpectRefused(Part(2), absl::StatusCode::kUnavailable, "shutting down");
}

TEST_F(SessionManagerTest, CancellingWaitsOnceForAHungDiskNotOnceALane) {
  constexpr uint32_t kLanes = 10;  // of a slice each
  RepairPart part = Part(1);
  const HopSpec like = part.hops[0];
  part.hops.clear();
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    HopSpec& hop = part.hops.emplace_back(like);
    hop.lane = lane;
    hop.slices = LaneSlices::Create({{lane, 1, 1}}, kLanes).value();
    hop.outputs[0].edge.lane = lane;
  }
  ASSERT_TRUE(ValidatePart(part).ok()) << ValidatePart(part);
  store_.disk->Close();
  const absl::Status started = manager_->Start(part).status();
  ASSERT_TRUE(started.ok()) << started;
  store_.disk->AwaitWaiting(1);
  const TimePoint begun = Clock::System().Now();
  EXPECT_EQ(manager_->Cancel(1, 0), 1u);
  EXPECT_TRUE(absl::IsCancelled(WaitForReports(1)[0].status));
  EXPECT_LT(Clock::System().Now() - begun, std::chrono::seconds(8)) << "each lane would take two";
  store_.disk->Open();
}

// Whoever keeps the slices for the next attempt plans it by what is left then.
TEST_F(SessionManagerTest, WhoKeepsSlicesWaitsForWhatIsBeingOpened) {
  store_.opens.Close();
  Thread start(
      [&] { EXPECT_TRUE(absl::IsCancelled(manager_->Start(HostedPart(Part(1))).status())); });
  store_.opens.AwaitWaiting(1);
  const TimePoint begun = Clock::System().Now();
  EXPECT_EQ(manager_->CancelAndKeep(1, 0), 1u);
  EXPECT_GE(Clock::System().Now() - begun, std::chrono::milliseconds(400)) << "as long as it may";
  store_.opens.Open();
  start.join();
  EXPECT_EQ(manager_->CancelAndKeep(1, 0), 0u);
}

TEST_F(SessionManagerTest, DrainGivesUpAHungDisk) {
  tcp_.flows = true;
  store_.commits.Close();
  ASSERT_TRUE(manager_->Start(HostedPart(Part(1))).ok());
  store_.commits.AwaitWaiting(1);
  const TimePoint begun = Clock::System().Now();
  EXPECT_FALSE(manager_->Drain(Duration(0)));
  EXPECT_LT(Clock::System().Now() - begun, std::chrono::seconds(40));
  store_.commits.Open();
  EXPECT_TRUE(manager_->Drain(Duration(0)));
}

TEST_F(SessionManagerTest, WithoutAThreadThePartIsRefusedAndLeavesNothing) {
  ArmFault("thread.start", {});
  ExpectRefused(Part(1), absl::StatusCode::kResourceExhausted, "thread");
  DisarmAllFaults();
  EXPECT_TRUE(manager_->Start(Part(1)).ok()) << "the attempt was not begun";
}

TEST_F(SessionManagerTest, WithoutAThreadForItsDiskAPartFails) {
  ArmFault("thread.start", {.after_hits = 1});  // its own it gets
  ASSERT_TRUE(manager_->Start(Part(1)).ok());
  const absl::Status status = WaitForReports(1)[0].status;
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  DisarmAllFaults();
}

TEST_F(SessionManagerTest, NothingIsAdmittedOnceTheHelperEnds) {
  ASSERT_TRUE(manager_->Start(Part(1)).ok());
  manager_->StopAdmitting();
  ExpectRefused(Part(2), absl::StatusCode::kUnavailable, "shutting down");
  EXPECT_EQ(manager_->counts().active_sessions, 1u) << "what runs goes on";
}

TEST_F(SessionManagerTest, ItsEndCancelsAndWaits) {
  ASSERT_TRUE(manager_->Start(Part(1)).ok());
  ASSERT_TRUE(manager_->Start(Part(2)).ok());
  manager_.reset();
  EXPECT_EQ(tcp_.open, 0);
  EXPECT_EQ(WaitForReports(2).size(), 2u);
}

}  // namespace
}  // namespace ecpipe::session_manager_test
