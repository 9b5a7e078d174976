// SPDX-License-Identifier: Apache-2.0
#include "requestor/cli/progress_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/bytes/utf8_text.h"

namespace ecpipe::progress_text_test {
namespace {

using std::chrono::milliseconds;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr uint64_t kMiB = uint64_t{1} << 20;

ProgressView Bytes(uint64_t done, uint64_t total, std::optional<double> per_second = std::nullopt) {
  return ViewOf("photo", "", {.done = done, .total = total}, per_second, 75);
}

ProgressView Stripes(uint64_t done, uint64_t total, std::optional<double> per_second) {
  return ViewOf("photo", "stripes", {.done = done, .total = total}, per_second, 75);
}

class Rate : public testing::Test {
 protected:
  // Adds a sample every 200 ms for so long, at so many units a second.
  void Run(int seconds, double per_second) {
    for (int i = 0; i < seconds * 5; ++i) {
      now_ += milliseconds(200);
      done_ += per_second / 5;
      meter_.Add(now_, static_cast<uint64_t>(done_));
    }
  }

  RateMeter meter_;
  TimePoint now_{};
  double done_ = 0;
};

TEST_F(Rate, IsNotKnownBeforeASecondIsCovered) {
  EXPECT_EQ(meter_.PerSecond(), std::nullopt);
  meter_.Add(now_, 0);
  EXPECT_EQ(meter_.PerSecond(), std::nullopt);
  meter_.Add(now_ + milliseconds(999), 500);
  EXPECT_EQ(meter_.PerSecond(), std::nullopt);
  meter_.Add(now_ + milliseconds(1000), 500);
  EXPECT_EQ(meter_.PerSecond(), 500);
}

TEST_F(Rate, WorkThatWasDoneBeforeDoesNotCount) {
  meter_.Add(now_, 1'000'000);
  meter_.Add(now_ + milliseconds(2000), 1'000'100);
  EXPECT_EQ(meter_.PerSecond(), 50);
}

TEST_F(Rate, IsOfTheLastSecondsOnly) {
  Run(60, 1000);
  EXPECT_NEAR(*meter_.PerSecond(), 1000, 1);
  Run(5, 3000);
  EXPECT_NEAR(*meter_.PerSecond(), 2000, 100);
  Run(6, 3000);
  EXPECT_NEAR(*meter_.PerSecond(), 3000, 1);
}

TEST_F(Rate, OfAStallIsZeroAfterTheWindow) {
  Run(20, 1000);
  Run(5, 0);
  EXPECT_NEAR(*meter_.PerSecond(), 500, 50);
  Run(6, 0);
  EXPECT_EQ(meter_.PerSecond(), 0);
  Run(11, 700);
  EXPECT_NEAR(*meter_.PerSecond(), 700, 1);
}

TEST_F(Rate, BeginsAnewWhenLessIsDone) {
  Run(20, 1000);
  done_ = 0;
  Run(1, 10);
  EXPECT_EQ(meter_.PerSecond(), std::nullopt);
  Run(1, 10);
  EXPECT_NEAR(*meter_.PerSecond(), 10, 1);
}

TEST_F(Rate, OfRareSamplesIsOfTheLastTwo) {
  meter_.Add(now_, 0);
  meter_.Add(now_ + std::chrono::seconds(60), 600);
  EXPECT_EQ(meter_.PerSecond(), 10);
  meter_.Add(now_ + std::chrono::seconds(120), 1800);
  EXPECT_EQ(meter_.PerSecond(), 20);
}

TEST_F(Rate, OfManyCloseSamplesCoversTheWindow) {
  for (int i = 0; i <= 20'000; ++i) {
    meter_.Add(now_ + milliseconds(i), static_cast<uint64_t>(i < 11'000 ? 0 : i - 11'000));
  }
  EXPECT_NEAR(*meter_.PerSecond(), 900, 15);
}

TEST(TimeLeft, FollowsFromTheRate) {
  EXPECT_EQ(Bytes(100, 400, 10).seconds_left, 30);
  EXPECT_EQ(Bytes(0, 400, 10).seconds_left, 40);
}

TEST(TimeLeft, IsNotKnownWithoutRateOrTotalOrWhenThereIsNone) {
  EXPECT_EQ(Bytes(100, 400).seconds_left, std::nullopt);
  EXPECT_EQ(Bytes(100, 400, 0).seconds_left, std::nullopt);
  EXPECT_EQ(Bytes(100, 0, 10).seconds_left, std::nullopt);
  EXPECT_EQ(Bytes(400, 400, 10).seconds_left, std::nullopt);
  EXPECT_EQ(Bytes(500, 400, 10).seconds_left, std::nullopt);
}

TEST(DurationText, GrowsItsUnits) {
  EXPECT_EQ(DurationText(0), "0:00");
  EXPECT_EQ(DurationText(0.01), "0:01");  // never "none" before the end
  EXPECT_EQ(DurationText(59), "0:59");
  EXPECT_EQ(DurationText(59.5), "1:00");
  EXPECT_EQ(DurationText(754), "12:34");
  EXPECT_EQ(DurationText(3600), "1:00:00");
  EXPECT_EQ(DurationText(99.0 * 3600), "99:00:00");
  EXPECT_EQ(DurationText(103.0 * 3600), "4 d 7 h");
  EXPECT_EQ(DurationText(999.0 * 86400), "999 d 0 h");
  EXPECT_EQ(DurationText(1e300), "over 999 d");
}

TEST(DurationText, IsADashWhereNothingIsKnown) {
  for (const double seconds :
       {-1.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_EQ(DurationText(seconds), "-:--");
  }
  EXPECT_EQ(DurationText(std::nullopt), "-:--");
}

TEST(LogLine, SaysAll) {
  EXPECT_EQ(LogLine(Bytes(384 * kMiB, 768 * kMiB, 128.0 * kMiB)),
            "photo: 50 %, 384.0 of 768 MiB, 128 MiB/s, 0:03 left");
  EXPECT_EQ(LogLine(Bytes(512 << 10, 768 * kMiB, 1024)),
            "photo: 0 %, 0.5 of 768 MiB, 1 KiB/s, 9 d 2 h left");
  EXPECT_EQ(LogLine(Stripes(12'000, 100'000, 880)),
            "photo: 12 %, 12000 of 100000 stripes, 880/s, 1:40 left");
  EXPECT_EQ(LogLine(Stripes(1, 3, 0.25)), "photo: 33 %, 1 of 3 stripes, 0.2/s, 0:08 left");
}

TEST(LogLine, CountsBytesInTheUnitOfTheTotal) {
  EXPECT_THAT(LogLine(Bytes(1, 1000, 1)), HasSubstr(" 1 of 1000 B,"));
  EXPECT_THAT(LogLine(Bytes(1, 2048, 1)), HasSubstr(" 0.0 of 2 KiB,"));
  EXPECT_THAT(LogLine(Bytes(640 * kMiB, 2560 * kMiB, 1)), HasSubstr(" 0.6 of 2.5 GiB,"));
  EXPECT_THAT(LogLine(Bytes(kMiB << 20, kMiB << 24, 1)), HasSubstr(" 1.0 of 16 TiB,"));
}

TEST(LogLine, OfAStallKnowsNoEnd) {
  EXPECT_EQ(LogLine(Bytes(384 * kMiB, 768 * kMiB, 0)),
            "photo: 50 %, 384.0 of 768 MiB, 0 B/s, -:-- left");
  EXPECT_EQ(LogLine(Stripes(1, 2, 0)), "photo: 50 %, 1 of 2 stripes, 0/s, -:-- left");
}

TEST(LogLine, OfTheFirstSecondKnowsNoRate) {
  EXPECT_EQ(LogLine(Bytes(0, 768 * kMiB)), "photo: 0 %, 0.0 of 768 MiB, - B/s, -:-- left");
  EXPECT_EQ(LogLine(Stripes(0, 9, std::nullopt)), "photo: 0 %, 0 of 9 stripes, -/s, -:-- left");
}

TEST(LogLine, OfAnUnknownTotalSaysHowLongItHasTaken) {
  EXPECT_EQ(LogLine(Bytes(0, 0, 0)), "photo: 0 B, 0 B/s, 1:15 so far");
  EXPECT_EQ(LogLine(Bytes(3 * kMiB, 0, 1024)), "photo: 3 MiB, 1 KiB/s, 1:15 so far");
  EXPECT_EQ(LogLine(Stripes(7, 0, 20)), "photo: 7 stripes, 20/s, 1:15 so far");
}

TEST(LogLine, ReachesHundredPercentOnlyAtTheEnd) {
  EXPECT_THAT(LogLine(Bytes(999'999, 1'000'000, 1)), HasSubstr(" 99 %"));
  const uint64_t most = std::numeric_limits<uint64_t>::max();
  EXPECT_THAT(LogLine(Bytes(most - 1, most, 1)), HasSubstr(" 99 %"));
  EXPECT_EQ(LogLine(Bytes(kMiB, kMiB, 1024)), "photo: 100 %, 1.0 of 1 MiB, 1 KiB/s, finishing");
  EXPECT_THAT(LogLine(Bytes(3 * kMiB, kMiB, 1024)), HasSubstr(" 100 %")) << "more than the total";
}

TEST(LogLine, CountsBlocksWhereTheyAreKnown) {
  Progress progress{.done = 27 * kMiB,
                    .total = 60 * kMiB,
                    .blocks = Progress::Blocks{27, 60},
                    .speed = KnownSpeed{3.0 * kMiB, 11}};
  EXPECT_EQ(LogLine(ViewOf("recovery 3", "", progress, std::nullopt, 9)),
            "recovery 3: 45 %, 27 of 60 blocks, 3 MiB/s, 0:11 left");
  progress.total = 0;  // the coordinator is still counting
  progress.speed->seconds_left.reset();
  EXPECT_EQ(LogLine(ViewOf("recovery 3", "", progress, std::nullopt, 9)),
            "recovery 3: 27 blocks, 3 MiB/s, 0:09 so far");
}

TEST(BarLine, OfWideTerminalsHasAll) {
  EXPECT_EQ(BarLine(Bytes(384 * kMiB, 768 * kMiB, 128.0 * kMiB), 200),
            "photo [###############               ]  50 %  384.0 of 768 MiB  128 MiB/s  0:03 left");
  EXPECT_EQ(BarLine(Stripes(7, 0, 20), 200), "photo  7 stripes  20/s  1:15 so far");
}

TEST(BarLine, DropsTheAmountThenTheRateThenTheBarThenTheTime) {
  const ProgressView view = Bytes(384 * kMiB, 768 * kMiB, 128.0 * kMiB);
  EXPECT_THAT(BarLine(view, 80), HasSubstr("]  50 %  384.0 of 768 MiB  128 MiB/s  0:03 left"));
  EXPECT_THAT(BarLine(view, 50), HasSubstr("]  50 %  128 MiB/s  0:03 left"));
  EXPECT_THAT(BarLine(view, 40), HasSubstr("]  50 %  0:03 left"));
  EXPECT_EQ(BarLine(view, 26), "photo  50 %  0:03 left");
  EXPECT_EQ(BarLine(view, 15), "photo  50 %");
}

TEST(BarLine, CutsALongLabel) {
  ProgressView view = Bytes(384 * kMiB, 768 * kMiB, 128.0 * kMiB);
  view.label = "archive-of-all-photographs-s00012-b03";
  EXPECT_THAT(BarLine(view, 200), StartsWith(view.label + " ["));
  EXPECT_THAT(BarLine(view, 80), StartsWith("archive-of"));
  EXPECT_THAT(BarLine(view, 80), HasSubstr(".. ["));
  EXPECT_THAT(BarLine(view, 80), EndsWith("left"));
}

// No line reaches the end of the terminal, or ends within a character.
TEST(BarLine, FitsEveryWidth) {
  const std::vector<ProgressView> views = {
      Bytes(0, 0),
      Bytes(0, 768 * kMiB),
      Bytes(1023 * kMiB + 900'000, 1'099'511'627'775, 1.5),
      Bytes(5, 3, 1e18),
      Stripes(99'999, 100'000, 123'456),
      ViewOf("", "", {.done = 1, .total = 2}, 0, 0),
      ViewOf("grüße-äöü-日本語-long-enough-to-be-cut", "", {.done = 1, .total = 2}, 0, 0),
      ViewOf(std::string(300, 'x'), "stripes", {.done = 1, .total = 2}, 1, 0)};
  for (const ProgressView& view : views) {
    for (size_t columns = 0; columns <= 250; ++columns) {
      const std::string line = BarLine(view, columns);
      size_t width = 0;  // each of the characters that are no ASCII here takes at most two
      for (const char c : line) {
        if ((c & 0xc0) != 0x80) width += static_cast<uint8_t>(c) < 0x80 ? 1 : 2;
      }
      EXPECT_LE(width, columns - std::min<size_t>(columns, 3)) << line;
      EXPECT_TRUE(IsCleanText(line)) << line;
    }
  }
}

TEST(BarLine, DoesNotJumpWhileTheNumbersChange) {
  const auto end_of_bar = [](const ProgressView& view) { return BarLine(view, 80).find(']'); };
  const size_t end = end_of_bar(Bytes(0, 768 * kMiB));
  for (uint64_t done = kMiB; done < 768 * kMiB; done += 12'345'678) {
    const double rate = 300e3 + static_cast<double>(done) / 7;  // less than an hour is left
    EXPECT_EQ(end_of_bar(Bytes(done, 768 * kMiB, rate)), end) << done;
  }
}

TEST(BarLine, KeepsControlCharactersAway) {
  const ProgressView view = ViewOf("a\033[2Jb\nc", "", {.done = 1, .total = 2}, 1, 0);
  EXPECT_THAT(BarLine(view, 80), StartsWith("a?[2Jb?c"));
  EXPECT_THAT(LogLine(view), Not(HasSubstr("\n")));
}

}  // namespace
}  // namespace ecpipe::progress_text_test
