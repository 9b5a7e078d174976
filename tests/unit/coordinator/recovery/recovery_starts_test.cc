// SPDX-License-Identifier: Apache-2.0
// Repairs of a recovery begin side by side.
#include <atomic>
#include <map>

#include "coordinator/recovery/start_threads.h"
#include "unit/coordinator/recovery/recovery_manager_fixture.h"

namespace ecpipe::recovery_starts_test {
namespace {

// What waits until it is let go.
class Gate {
 public:
  void Wait() {
    MutexLock lock(&mutex_);
    ++waiting_;
    while (!open_) opened_.Wait(lock);
  }
  void Open() {
    MutexLock lock(&mutex_);
    open_ = true;
    opened_.NotifyAll();
  }
  size_t waiting() {
    MutexLock lock(&mutex_);
    return waiting_;
  }

 private:
  Mutex mutex_;
  CondVar opened_;
  bool open_ ABSL_GUARDED_BY(mutex_) = false;
  size_t waiting_ ABSL_GUARDED_BY(mutex_) = 0;
};

TEST(StartThreads, WorkAtOnceAndAsManyAsTheyMay) {
  Gate gate;
  std::atomic<size_t> done = 0;
  std::atomic<size_t> freed = 0;
  StartThreads threads([&] { ++freed; });
  for (size_t i = 0; i < StartThreads::kMost; ++i) {
    ASSERT_TRUE(threads.HasRoom());
    threads.Run([&] {
      gate.Wait();
      ++done;
    });
  }
  EXPECT_FALSE(threads.HasRoom());
  gate.Open();
  while (freed < StartThreads::kMost) std::this_thread::yield();
  ASSERT_TRUE(threads.HasRoom()) << "said before the room was there";
  threads.Run([&] { ++done; });
  threads.Stop();
  EXPECT_EQ(done, StartThreads::kMost + 1);
}

class RecoveryStartsTest : public RecoveryManagerTest {
 protected:
  // The recoveries' threads use the gate: they end before it.
  ~RecoveryStartsTest() override {
    gate_.Open();
    manager_.reset();
  }

  Gate gate_;
};

// The first handout goes to a node that does not answer.
TEST_F(RecoveryStartsTest, OneThatHangsHoldsUpNoOther) {
  std::atomic<bool> first = true;
  helpers_.on_handouts = [&](const auto&) {
    if (first.exchange(false)) gate_.Wait();
  };
  const uint64_t lost = BlocksOf("n0");
  const RecoveryId id = Begin(Request());
  EXPECT_TRUE(AnswerUntil([&] { return View(id).record.done_blocks == lost - 1; }));
  EXPECT_EQ(gate_.waiting(), 1u);
  EXPECT_EQ(View(id).running_blocks, 1u);
  gate_.Open();
  ASSERT_TRUE(RunToEnd(id));
  EXPECT_EQ(View(id).record.state, RecoveryState::kDone);
  for (const auto& [block, moves] : catalog_.moves) EXPECT_EQ(moves, 1) << block;
}

// Two recoveries that share all nodes, with handouts that take a while.
TEST_F(RecoveryStartsTest, NoNodeIsInMoreRepairsThanItsLimit) {
  Mutex mutex;
  std::map<std::string, int> at_work;
  int most = 0;
  helpers_.on_handouts = [&](const auto& handouts) {
    {
      MutexLock lock(&mutex);
      for (const auto& handout : handouts) most = std::max(most, ++at_work[handout.helper.node]);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // sleep-ok: a handout takes time
    MutexLock lock(&mutex);
    // The parts have ended before the coordinator hears of it.
    for (const auto& handout : handouts) --at_work[handout.helper.node];
  };
  RecoveryRequest request = Request();
  request.streams_per_node = 1;
  const RecoveryId id = Begin(request);
  request.node = "n1";
  const absl::StatusOr<RecoveryId> other = manager_->Begin(request, IfLive::kRebuildAll);
  ASSERT_TRUE(other.ok()) << other.status();
  ASSERT_TRUE(AnswerUntil([&] {
    for (const auto& handouts : AllHandouts()) {
      for (const auto& handout : handouts) {
        if (!handout.part.stores.empty()) continue;
        repairs_->ReportPart(handout.helper.node, handout.part.repair_id, 0, absl::OkStatus());
      }
    }
    return View(id).record.ended_unix_ms != 0 && View(*other).record.ended_unix_ms != 0;
  }));
  MutexLock lock(&mutex);
  EXPECT_EQ(most, 1);
}

// Helpers may be done before the coordinator knows that all of them have begun.
TEST_F(RecoveryStartsTest, APartThatEndsAtOnceLeavesNoNodeBusy) {
  helpers_.on_handouts = [&](const auto& handouts) {
    for (const auto& handout : handouts) {
      repairs_->ReportPart(handout.helper.node, handout.part.repair_id, 0, absl::OkStatus());
    }
  };
  RecoveryRequest request = Request();
  request.streams_per_node = 1;
  const uint64_t lost = BlocksOf("n0");
  const RecoveryId id = Begin(request);
  ASSERT_TRUE(WaitFor([&] { return View(id).record.ended_unix_ms != 0; }));
  EXPECT_EQ(View(id).record.state, RecoveryState::kDone);
  EXPECT_EQ(View(id).record.done_blocks, lost);
}

TEST_F(RecoveryStartsTest, WhatBeganMeanwhileIsCancelledWithItsRecovery) {
  helpers_.on_handouts = [&](const auto&) { gate_.Wait(); };
  const RecoveryId id = Begin(Request());
  ASSERT_TRUE(WaitFor([&] { return gate_.waiting() > 1; }));
  ASSERT_TRUE(manager_->Cancel(id).ok());
  gate_.Open();
  EXPECT_TRUE(WaitFor([&] { return repairs_->running() == 0; }));
  EXPECT_TRUE(catalog_.moves.empty());
}

class FewBlocks : public RecoveryManagerTest {
 protected:
  // Three, of which n0 has a block each.
  FewBlocks() {
    std::erase_if(catalog_.stripes, [](const auto& stripe) {
      return std::none_of(stripe.second.blocks.begin(), stripe.second.blocks.end(),
                          [](const BlockPlace& place) { return place.node == "n0"; });
    });
    catalog_.KeepStripes(3);
  }

  // How many streams end at each host.
  std::vector<size_t> StreamsAtHosts(const std::string& scheme) {
    RecoveryRequest request = Request();
    request.scheme = scheme;
    request.slice_bytes = 100;
    const RecoveryId id = Begin(request);
    std::vector<size_t> streams;
    for (const auto& [node, part] : WaitForNewHosts(3)) {
      streams.push_back(part.hops.size());
      repairs_->ReportPart(node, part.repair_id, part.attempt, absl::OkStatus());
    }
    EXPECT_TRUE(RunToEnd(id));
    EXPECT_EQ(View(id).record.done_blocks, 3u);
    return streams;
  }
};

TEST_F(FewBlocks, ComeOverSeveralPathsEach) {
  EXPECT_EQ(StreamsAtHosts("rp"), std::vector<size_t>(3, 4));
}

TEST_F(FewBlocks, ComeAsAnotherSchemeWants) {
  EXPECT_EQ(StreamsAtHosts("rp-weighted"), std::vector<size_t>(3, 1));
}

}  // namespace
}  // namespace ecpipe::recovery_starts_test
