// SPDX-License-Identifier: Apache-2.0
#include "net/rate_limiter.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace ecpipe::rate_limiter_test {
namespace {

using std::chrono::milliseconds;

constexpr double kRate = 25e6;  // 200 Mb/s
constexpr uint64_t kFrame = 32 << 10;

// A stream that always has another frame, and is asked once a millisecond.
struct Stream {
  TrafficClass traffic = TrafficClass::kForeground;
  double sent = 0;
  std::optional<RateLimiter::Turn> turn = std::nullopt;

  void Run(RateLimiter* limiter, uint64_t frame) {
    while (true) {
      if (!turn) turn = limiter->Queue(traffic, frame);
      if (limiter->Wait(traffic, *turn) != Duration(0)) return;
      turn.reset();
      sent += static_cast<double>(frame);
    }
  }
};

class RateLimiterTest : public testing::Test {
 protected:
  void RunFor(Duration time, std::vector<Stream*> streams, uint64_t frame = kFrame,
              Duration step = milliseconds(1)) {
    for (Duration passed(0); passed < time; passed += step) {
      for (Stream* stream : streams) stream->Run(&limiter_, frame);
      clock_.Advance(step);
    }
  }

  FakeClock clock_;
  RateLimiter limiter_{&clock_};
};

TEST_F(RateLimiterTest, WithoutARateEverythingGoes) {
  for (int i = 0; i < 1000; ++i) {
    const auto turn = limiter_.Queue(TrafficClass::kBackground, 1u << 30);
    EXPECT_EQ(limiter_.Wait(TrafficClass::kBackground, turn), Duration(0));
  }
}

TEST_F(RateLimiterTest, TheRateIsExactOverTime) {
  for (const uint64_t frame : {uint64_t{1000}, kFrame, uint64_t{1} << 20}) {
    for (const size_t count : {1, 7}) {
      limiter_.SetRate(0);
      limiter_.SetRate(kRate);
      std::vector<Stream> streams(count);
      std::vector<Stream*> pointers;
      for (Stream& stream : streams) pointers.push_back(&stream);
      RunFor(std::chrono::seconds(4), pointers, frame);
      double sent = 0;
      for (const Stream& stream : streams) sent += stream.sent;
      const double slack = kRate * Seconds(RateLimiter::kBurst) + 2.0 * static_cast<double>(frame);
      EXPECT_NEAR(sent, 4 * kRate, slack) << frame;
    }
  }
}

TEST_F(RateLimiterTest, ComingBackLateLosesNothing) {
  limiter_.SetRate(kRate);
  Stream stream;
  RunFor(std::chrono::seconds(4), {&stream}, kFrame, milliseconds(15));
  EXPECT_NEAR(stream.sent, 4 * kRate, kRate * 0.03);
}

TEST_F(RateLimiterTest, IdleTimeIsSavedUpForOneBurstOnly) {
  limiter_.SetRate(kRate);
  clock_.Advance(std::chrono::hours(1));
  Stream stream;
  stream.Run(&limiter_, kFrame);
  EXPECT_LE(stream.sent, kRate * Seconds(RateLimiter::kBurst) + kFrame);
  EXPECT_GE(stream.sent, kRate * Seconds(RateLimiter::kBurst));
}

TEST_F(RateLimiterTest, StreamsOfAClassShareAlike) {
  limiter_.SetRate(kRate);
  Stream first;
  Stream second;
  RunFor(std::chrono::seconds(2), {&first, &second});
  EXPECT_NEAR(first.sent, second.sent, kRate * 0.03);
}

TEST_F(RateLimiterTest, ForegroundGoesFirst) {
  limiter_.SetRate(kRate);
  Stream recovery{.traffic = TrafficClass::kBackground};
  RunFor(std::chrono::seconds(1), {&recovery});
  EXPECT_NEAR(recovery.sent, kRate, kRate * 0.03) << "alone it has all of the rate";
  recovery.sent = 0;
  Stream read;
  RunFor(std::chrono::seconds(2), {&recovery, &read});
  EXPECT_NEAR(read.sent, 2 * kRate * 15 / 16, kRate * 0.05);
  EXPECT_NEAR(recovery.sent, 2 * kRate / 16, kRate * 0.05) << "never nothing at all";
}

TEST_F(RateLimiterTest, BackgroundHasWhatForegroundLeaves) {
  limiter_.SetRate(kRate);
  Stream recovery{.traffic = TrafficClass::kBackground};
  double read = 0;
  for (int i = 0; i < 2000; ++i) {
    if (i % 4 == 0) {  // a frame every 4 ms: 33 % of the rate
      const auto turn = limiter_.Queue(TrafficClass::kForeground, kFrame);
      EXPECT_LE(limiter_.Wait(TrafficClass::kForeground, turn), RateLimiter::kBurst);
      read += kFrame;
    }
    RunFor(milliseconds(1), {&recovery});
  }
  EXPECT_NEAR(read + recovery.sent, 2 * kRate, kRate * 0.05);
}

TEST_F(RateLimiterTest, AForegroundFrameDoesNotWaitBehindBackgroundOnes) {
  limiter_.SetRate(1e6);
  std::vector<RateLimiter::Turn> recovery;
  for (int i = 0; i < 100; ++i) {
    recovery.push_back(limiter_.Queue(TrafficClass::kBackground, kFrame));
  }
  const auto read = limiter_.Queue(TrafficClass::kForeground, kFrame);
  EXPECT_EQ(limiter_.Wait(TrafficClass::kForeground, read), Duration(0));
  EXPECT_GT(limiter_.Wait(TrafficClass::kBackground, recovery[99]), Duration(0));
}

TEST_F(RateLimiterTest, AChangeHoldsForFramesThatQueueAlready) {
  limiter_.SetRate(125'000);
  limiter_.Queue(TrafficClass::kBackground, 10u << 20);  // 84 s of it
  const auto waiting = limiter_.Queue(TrafficClass::kBackground, kFrame);
  EXPECT_EQ(limiter_.Wait(TrafficClass::kBackground, waiting), RateLimiter::kLongestWait);
  limiter_.SetRate(125e6);
  clock_.Advance(milliseconds(100));
  EXPECT_EQ(limiter_.Wait(TrafficClass::kBackground, waiting), Duration(0));

  Stream stream;
  limiter_.SetRate(kRate);
  RunFor(std::chrono::seconds(1), {&stream});
  limiter_.SetRate(kRate / 5);
  stream.sent = 0;
  RunFor(std::chrono::seconds(2), {&stream});
  EXPECT_NEAR(stream.sent, 2 * kRate / 5, kRate * 0.03);
}

TEST_F(RateLimiterTest, TakingTheLimitAwayLetsWaitersGo) {
  limiter_.SetRate(1000);
  limiter_.Queue(TrafficClass::kForeground, 1u << 20);
  const auto waiting = limiter_.Queue(TrafficClass::kForeground, kFrame);
  EXPECT_GT(limiter_.Wait(TrafficClass::kForeground, waiting), Duration(0));
  limiter_.SetRate(0);
  EXPECT_EQ(limiter_.Wait(TrafficClass::kForeground, waiting), Duration(0));
  limiter_.SetRate(1000);
  EXPECT_EQ(limiter_.Wait(TrafficClass::kForeground, waiting), Duration(0)) << "it has been paid";
}

TEST_F(RateLimiterTest, AFrameThatIsNotSentMakesRoom) {
  limiter_.SetRate(kRate);
  limiter_.Queue(TrafficClass::kForeground, kFrame);
  const auto cancelled = limiter_.Queue(TrafficClass::kForeground, 64u << 20);
  const auto behind = limiter_.Queue(TrafficClass::kForeground, kFrame);
  clock_.Advance(milliseconds(2));
  EXPECT_GT(limiter_.Wait(TrafficClass::kForeground, behind), Duration(0));
  limiter_.GiveBack(TrafficClass::kForeground, cancelled);
  EXPECT_EQ(limiter_.Wait(TrafficClass::kForeground, behind), Duration(0));
}

}  // namespace
}  // namespace ecpipe::rate_limiter_test
