// SPDX-License-Identifier: Apache-2.0
// What is kept of recoveries in the journal, and what becomes of it.
#include <gmock/gmock.h>

#include <atomic>
#include <future>

#include "unit/coordinator/recovery/recovery_manager_fixture.h"

namespace ecpipe::recovery_record_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST_F(RecoveryManagerTest, PauseResumeCancel) {
  RecoveryRequest request = Request();
  request.streams_per_node = 1;
  const RecoveryId id = Begin(request);
  // What is not handed out yet does not begin any more.
  ASSERT_TRUE(WaitFor([&] { return !AllHandouts().empty(); }));
  ASSERT_TRUE(manager_->Pause(id).ok());
  ASSERT_TRUE(AnswerUntil([&] { return View(id).running_blocks == 0; }));
  const uint64_t done = View(id).record.done_blocks;
  EXPECT_GT(done, 0u);
  EXPECT_TRUE(NewHosts().empty());
  EXPECT_EQ(View(id).record.state, RecoveryState::kPaused);
  ASSERT_TRUE(manager_->Resume(id).ok());
  ASSERT_TRUE(WaitFor([&] { return AllHandouts().size() > done; }));
  ASSERT_TRUE(manager_->Cancel(id).ok());
  // A repair that was being handed out is cancelled once that is over.
  EXPECT_TRUE(WaitFor([&] {
    MutexLock lock(&helpers_.mutex);
    return !helpers_.cancelled.empty();
  }));
  EXPECT_EQ(View(id).running_blocks, 0u);
  EXPECT_EQ(View(id).record.state, RecoveryState::kCancelled);
  EXPECT_TRUE(absl::IsFailedPrecondition(manager_->Resume(id)));
  EXPECT_TRUE(absl::IsNotFound(manager_->Pause(99)));
}

// It was looked up among the recoveries that are kept, and that ended the process.
// As by somebody who writes files, and whose program does not know that the node is dead.
TEST_F(RecoveryManagerTest, BlocksThatAreLoadedOntoTheDeadNodeMeanwhileAreRebuilt) {
  const auto load = [this](const std::string& block_id) {
    Stripe stripe;
    {
      MutexLock lock(&catalog_.mutex);
      stripe = catalog_.stripes.begin()->second;
    }
    stripe.stripe_id = "loaded-" + block_id;
    for (size_t i = 0; i < stripe.blocks.size(); ++i) {
      const std::string number = std::to_string(i);
      stripe.blocks[i] = {.block_id = block_id + number, .node = "n" + number};
    }
    ASSERT_TRUE(catalog_.Put({stripe}).ok());
    manager_->Loaded({"n0", "n1", "n2"});
  };
  const RecoveryId id = Begin(Request());
  ASSERT_TRUE(WaitFor([&] { return !View(id).listing; }));
  const uint64_t blocks = View(id).record.blocks;
  // Nobody answers, so that others wait: what has come is known all the same.
  load("first");
  ASSERT_TRUE(WaitFor([&] { return View(id).record.blocks == blocks + 1; }));
  ASSERT_TRUE(manager_->Pause(id).ok());
  load("second");
  ASSERT_TRUE(WaitFor([&] { return View(id).record.blocks == blocks + 2; }));
  ASSERT_TRUE(manager_->Resume(id).ok());
  ASSERT_TRUE(RunToEnd(id));
  EXPECT_EQ(View(id).record.state, RecoveryState::kDone);
  EXPECT_EQ(View(id).record.done_blocks, blocks + 2);
  EXPECT_EQ(BlocksOf("n0"), 0u);
  manager_->Loaded({"n0"});  // it has ended
  EXPECT_EQ(View(id).record.state, RecoveryState::kDone);
}

TEST_F(RecoveryManagerTest, ARecoveryWhoseEndIsNotStoredYetIsKeptHoweverManyFollow) {
  const RecoveryId first = Begin(Request());
  {
    MutexLock lock(&journal_.mutex);
    journal_.refused_recovery = first;
  }
  ASSERT_TRUE(RunToEnd(first));
  for (int i = 0; i < 101; ++i) {
    RecoveryRequest nothing_lost = Request();
    nothing_lost.node = "empty-" + std::to_string(i);
    const RecoveryId id = Begin(nothing_lost);
    ASSERT_TRUE(WaitFor([&] { return Ended(View(id).record.state); }));
  }
  EXPECT_EQ(View(first).record.state, RecoveryState::kDone);
  {
    MutexLock lock(&journal_.mutex);
    EXPECT_EQ(journal_.recoveries.at(first).state, RecoveryState::kRunning);
    journal_.refused_recovery = 0;
  }
  EXPECT_TRUE(WaitFor([&] {
    MutexLock lock(&journal_.mutex);
    return journal_.recoveries.at(first).state == RecoveryState::kDone;
  }));
}

TEST_F(RecoveryManagerTest, WhatTheJournalDoesNotTakeIsSaid) {
  const auto refuse = [&](const absl::Status& why) {
    MutexLock lock(&journal_.mutex);
    journal_.recoveries_refused = why;
  };
  refuse(absl::ResourceExhaustedError("no space"));
  const absl::StatusOr<RecoveryId> refused = manager_->Begin(Request(), IfLive::kRefuse);
  ASSERT_TRUE(absl::IsResourceExhausted(refused.status())) << refused.status();
  EXPECT_THAT(std::string(refused.status().message()),
              AllOf(HasSubstr("the recovery of node n0 has not begun"), HasSubstr("no space"),
                    HasSubstr("data_directory")));
  EXPECT_TRUE(manager_->All().empty());
  refuse(absl::OkStatus());
  RecoveryRequest request = Request();
  request.streams_per_node = 1;
  const RecoveryId id = Begin(request);
  ASSERT_TRUE(WaitFor([&] { return View(id).running_blocks >= 1; }));
  refuse(absl::UnknownError("the disk failed"));
  for (const absl::Status& status : {manager_->Pause(id), manager_->Cancel(id)}) {
    EXPECT_TRUE(absl::IsUnknown(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("recovery 1 is running as before"), HasSubstr("the disk failed"),
                      HasSubstr("may find the change")));
  }
  EXPECT_EQ(View(id).record.state, RecoveryState::kRunning);
  {
    MutexLock lock(&helpers_.mutex);
    EXPECT_TRUE(helpers_.cancelled.empty());
  }
  refuse(absl::OkStatus());
  ASSERT_TRUE(manager_->Pause(id).ok());
  refuse(absl::ResourceExhaustedError("no space"));
  EXPECT_FALSE(manager_->Resume(id).ok());
  EXPECT_EQ(View(id).record.state, RecoveryState::kPaused);
  refuse(absl::OkStatus());
  EXPECT_TRUE(manager_->Cancel(id).ok());
  EXPECT_EQ(journal_.recoveries.at(id).state, RecoveryState::kCancelled);
}

// Nobody asks for the end of a recovery again: what the journal did not take, it must take later.
TEST_F(RecoveryManagerTest, AnEndThatTheJournalDoesNotTakeIsStoredLater) {
  const RecoveryId id = Begin(Request());
  const auto state = [&] {
    MutexLock lock(&journal_.mutex);
    return journal_.recoveries.at(id).state;
  };
  ASSERT_TRUE(WaitFor([&] { return !View(id).listing; }));
  {
    MutexLock lock(&journal_.mutex);
    journal_.recoveries_refused = absl::UnknownError("the disk failed");
  }
  ASSERT_TRUE(RunToEnd(id));
  EXPECT_EQ(state(), RecoveryState::kRunning);
  {
    MutexLock lock(&journal_.mutex);
    journal_.recoveries_refused = absl::OkStatus();
  }
  EXPECT_TRUE(WaitFor([&] { return state() == RecoveryState::kDone; }));
}

TEST_F(RecoveryManagerTest, NobodyElseWaitsForADiskThatIsSlow) {
  const auto seen = std::make_shared<std::atomic<int>>(0);  // shared with the manager's thread
  {
    MutexLock lock(&journal_.mutex);
    journal_.on_sync = [seen, manager = manager_.get()] {
      std::future<bool> looked =
          std::async(std::launch::async, [manager] { return !manager->All().empty(); });
      if (looked.wait_for(std::chrono::seconds(30)) == std::future_status::ready) ++*seen;
      return absl::OkStatus();
    };
  }
  const RecoveryId id = Begin(Request());
  EXPECT_TRUE(manager_->Pause(id).ok());
  EXPECT_TRUE(manager_->Cancel(id).ok());
  EXPECT_GE(*seen, 3);
}

TEST_F(RecoveryManagerTest, AnOperatorIsToldWhatAPowerCutMayUndo) {
  const RecoveryId id = Begin(Request());
  {
    MutexLock lock(&journal_.mutex);
    journal_.on_sync = [] { return absl::UnknownError("the disk failed"); };
  }
  const absl::Status paused = manager_->Pause(id);
  EXPECT_TRUE(absl::IsUnknown(paused)) << paused;
  EXPECT_THAT(std::string(paused.message()),
              AllOf(HasSubstr("recovery 1 is paused, but a power cut may undo it"),
                    HasSubstr("the disk failed"), HasSubstr("data_directory")));
  EXPECT_EQ(View(id).record.state, RecoveryState::kPaused);
}

// What a recovery stores by itself, such as its end, is synced when the disk works again.
TEST_F(RecoveryManagerTest, ASyncThatFailedIsMadeAgainAndTheEndMakesTheLast) {
  const auto works = std::make_shared<std::atomic<bool>>(false);  // shared with the thread
  const auto failed = std::make_shared<std::atomic<int>>(0);
  const auto synced = std::make_shared<std::atomic<int>>(0);
  const RecoveryId id = Begin(Request());
  {
    MutexLock lock(&journal_.mutex);
    journal_.on_sync = [works, failed, synced]() -> absl::Status {
      ++*(*works ? synced : failed);
      return *works ? absl::OkStatus() : absl::UnknownError("the disk failed");
    };
  }
  ASSERT_TRUE(RunToEnd(id));
  ASSERT_TRUE(AnswerUntil([&] { return *failed > 0; }));
  *works = true;
  manager_.reset();
  EXPECT_GE(*synced, 1);
}

TEST_F(RecoveryManagerTest, ANewCoordinatorGoesOnAndRepairsNothingTwice) {
  const uint64_t lost = BlocksOf("n0");
  RecoveryRequest request = Request();
  request.streams_per_node = 2;
  const RecoveryId id = Begin(request);
  ASSERT_TRUE(AnswerUntil([&] { return View(id).record.done_blocks >= 3; }));
  const auto under_way = WaitForNewHosts(1);
  ASSERT_FALSE(under_way.empty());
  Start();
  ASSERT_EQ(manager_->All().size(), 1u);
  for (const auto& [node, part] : under_way) {
    repairs_->ReportPart(node, part.repair_id, part.attempt, absl::OkStatus());
  }
  ASSERT_TRUE(RunToEnd(id));
  const RecoveryView view = View(id);
  EXPECT_EQ(view.record.state, RecoveryState::kDone);
  EXPECT_EQ(view.record.blocks, lost);
  EXPECT_EQ(view.record.done_blocks, lost);
  for (const auto& [block, moves] : catalog_.moves) EXPECT_EQ(moves, 1) << block;
  EXPECT_EQ(BlocksOf("n0"), 0u);
}

TEST_F(RecoveryManagerTest, ARecordWithAHostTooManyIsNotTakenUp) {
  RepairRecord record;
  record.repair_id = 7;
  record.recovery_id = 1;
  record.block_ids = {"b0"};
  record.hosts = {"n8", "spare"};
  ASSERT_TRUE(journal_.Record(record).ok());
  Start();
  const RecoveryId id = Begin(Request());
  ASSERT_TRUE(RunToEnd(id));
  EXPECT_EQ(View(id).record.state, RecoveryState::kDone);
  EXPECT_EQ(BlocksOf("n0"), 0u);
}

}  // namespace
}  // namespace ecpipe::recovery_record_test
