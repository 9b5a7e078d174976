// SPDX-License-Identifier: Apache-2.0
// The simulation itself: that it replays, that its threads wait as real ones do, and that it sees
// what it is meant to see.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/mutex.h"
#include "base/thread.h"
#include "base/wakeup.h"
#include "fakes/framed_stream.h"
#include "sim/data_plane.h"
#include "sim/world.h"

namespace ecpipe::sim::sim_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Replay, TheSameSeedGivesTheSameOutcomeToTheLastStep) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    const Outcome first = RunSeed(seed, {});
    const Outcome second = RunSeed(seed, {});
    EXPECT_EQ(first.fingerprint, second.fingerprint) << "seed " << seed;
    EXPECT_EQ(first.steps, second.steps) << "seed " << seed;
    EXPECT_GT(first.steps, 100u);
  }
  EXPECT_NE(RunSeed(1, {}).fingerprint, RunSeed(2, {}).fingerprint);
}

// rp-cyclic has k - 1 lanes, and rp-all n at most, which is 9 here: more are a packing of trees.
TEST(Replay, SomePlansHaveManyTrees) {
  size_t most = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) most = std::max(most, RunSeed(seed, {}).most_hops);
  EXPECT_GE(most, 12u);
}

class Fibres : public ::testing::Test {
 protected:
  void Run() {
    while (scheduler_.Step()) {
    }
  }
  uint64_t Spawn(std::function<void()> body) { return scheduler_.Spawn(process_, std::move(body)); }
  double Elapsed() { return Seconds(scheduler_.Now() - begun_); }

  Scheduler scheduler_{1};
  const TimePoint begun_ = scheduler_.Now();
  std::shared_ptr<Process> process_ = std::make_shared<Process>();
};

TEST_F(Fibres, AConditionVariableWakesOrTimesOut) {
  Mutex mutex;
  CondVar changed;
  bool ready = false;
  double woken_at = 0;
  double timed_out_at = 0;
  Spawn([&] {
    MutexLock lock(&mutex);
    while (!ready) changed.Wait(lock);
    woken_at = Elapsed();
  });
  Spawn([&] {
    Mutex other;
    CondVar never;
    MutexLock lock(&other);
    EXPECT_FALSE(never.WaitUntil(lock, Clock::System().Now() + seconds(7)));
    timed_out_at = Elapsed();
  });
  Spawn([&] {
    scheduler_.Sleep(seconds(3));
    MutexLock lock(&mutex);
    ready = true;
    changed.NotifyAll();
  });
  Run();
  EXPECT_DOUBLE_EQ(woken_at, 3);
  EXPECT_DOUBLE_EQ(timed_out_at, 7);
  EXPECT_EQ(scheduler_.fibres(), 0u);
}

TEST_F(Fibres, AThreadIsJoined) {
  double joined_at = 0;
  Spawn([&] {
    Thread thread([&] { scheduler_.Sleep(seconds(5)); });
    EXPECT_TRUE(thread.joinable());
    thread.join();
    joined_at = Elapsed();
  });
  Run();
  EXPECT_DOUBLE_EQ(joined_at, 5);
  EXPECT_EQ(process_->fibres, 0);
}

TEST_F(Fibres, AWakeupEndsAPoll) {
  Wakeup wakeup;
  double woken_at = 0;
  double timed_out_at = 0;
  Spawn([&] {
    pollfd polled{wakeup.fd(), POLLIN, 0};
    EXPECT_EQ(Poll({&polled, 1}, seconds(10)), 1);
    woken_at = Elapsed();
    wakeup.Drain();
    EXPECT_EQ(Poll({&polled, 1}, seconds(10)), 0);
    timed_out_at = Elapsed();
  });
  Spawn([&] {
    scheduler_.Sleep(seconds(2));
    wakeup.Signal();
  });
  Run();
  EXPECT_DOUBLE_EQ(woken_at, 2);
  EXPECT_DOUBLE_EQ(timed_out_at, 12);
}

class Streams : public Fibres {
 protected:
  Streams() {
    connection_->Attach("b", dial_->fd(ByteStream::kReceiver));
    dial_->Match(connection_);
  }
  // Sends one frame and returns what its receiver makes of it.
  absl::Status SendOne() {
    HopOutput output;
    output.node = "b";
    HopInput input;
    input.node = "a";
    FrameHeader header;
    std::vector<uint8_t> sent(700, 9);
    std::vector<uint8_t> received(700);
    header.payload_bytes = 700;
    absl::Status outcome = absl::DeadlineExceededError("nothing came");
    auto sender = MakeFramedSender(output, connection_);
    auto receiver = MakeFramedReceiver(input, dial_);
    Spawn([&] {
      const TimePoint deadline = scheduler_.Now() + seconds(10);
      while (scheduler_.Now() < deadline) {
        const absl::StatusOr<bool> done = receiver->TryReceive(header, received);
        if (!done.ok() || *done) {
          outcome = done.status();
          break;
        }
        pollfd polled = receiver->poll_fd();
        Poll({&polled, 1}, deadline - scheduler_.Now());
      }
      receiver.reset();
    });
    Spawn([&] {
      for (int tries = 0; tries < 1000; ++tries) {
        const auto taken = sender->TrySend(header, sent, SliceSender::Next::kUnknown);
        if (!taken.ok() || *taken) break;
        pollfd polled = sender->poll_fd();
        Poll({&polled, 1}, seconds(1));
      }
    });
    Run();
    if (outcome.ok()) {
      EXPECT_EQ(sent, received);
    }
    return outcome;
  }

  Network network_{&scheduler_, {.window_bytes = 100}};
  std::shared_ptr<Dial> dial_ = std::make_shared<Dial>(&network_, "b");
  std::shared_ptr<Connection> connection_ = std::make_shared<Connection>(&network_, "a", nullptr);
};

TEST_F(Streams, CarryAFrameThroughASmallWindow) { EXPECT_TRUE(SendOne().ok()); }

TEST_F(Streams, ADamagedPieceIsSeenByTheFramesChecksums) {
  network_.options().corrupt_piece = 1;
  EXPECT_EQ(SendOne().code(), absl::StatusCode::kDataLoss);
}

TEST_F(Streams, ACutConnectionIsSeenAtTheOtherEnd) {
  network_.options().cut_stream = 1;
  EXPECT_EQ(SendOne().code(), absl::StatusCode::kUnavailable);
}

TEST_F(Streams, APartitionHoldsBytesBackUntilItEnds) {
  network_.Cut("a", "b");
  scheduler_.After(seconds(4), [&] { network_.Mend("a", "b"); });
  EXPECT_TRUE(SendOne().ok());
  EXPECT_GE(Elapsed(), 4);
}

TEST_F(Streams, APartitionThatDoesNotEndBringsNothing) {
  network_.Cut("a", "b");
  scheduler_.After(seconds(60), [&] { network_.Mend("a", "b"); });
  EXPECT_EQ(SendOne().code(), absl::StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace ecpipe::sim::sim_test
