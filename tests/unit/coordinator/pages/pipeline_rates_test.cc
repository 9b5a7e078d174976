// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pages/pipeline_rates.h"

#include <gtest/gtest.h>

namespace ecpipe::pipeline_rates_test {
namespace {

using std::chrono::seconds;

const TimePoint kBegan{seconds(100)};

// The part of a node that sends one stream to `to`.
PartProgress Sends(const std::string& to, uint64_t bytes, double network_seconds = 0) {
  PartProgress part{.running = true, .ended = {}, .hops = {}};
  part.hops.push_back(
      {.outputs = {{.node = to, .bytes = bytes, .network_seconds = network_seconds}}});
  return part;
}

TEST(PipelineRatesTest, TheFirstRateIsTheOneSinceTheAttemptBegan) {
  const PipelineLook look = LookOf({{"a", Sends("b", 500, 2)}}, 1, kBegan + seconds(5));
  const auto links = LinksOf({{"a", {"b"}}}, nullptr, look, kBegan);
  ASSERT_EQ(links.size(), 1u);
  EXPECT_EQ(links[0].from, "a");
  EXPECT_EQ(links[0].to, "b");
  EXPECT_EQ(links[0].streams, 1u);
  EXPECT_DOUBLE_EQ(links[0].bytes_per_second.value(), 100);
  EXPECT_DOUBLE_EQ(links[0].network_share, 0.4);
}

TEST(PipelineRatesTest, LaterRatesAreThoseSinceTheLookBefore) {
  const PipelineLook before = LookOf({{"a", Sends("b", 500, 2)}}, 1, kBegan + seconds(5));
  const PipelineLook now = LookOf({{"a", Sends("b", 2500, 3)}}, 1, kBegan + seconds(7));
  const auto links = LinksOf({{"a", {"b"}}}, &before, now, kBegan);
  EXPECT_DOUBLE_EQ(links.at(0).bytes_per_second.value(), 1000);
  EXPECT_DOUBLE_EQ(links.at(0).network_share, 0.5);
}

TEST(PipelineRatesTest, ASenderThatDidNotTellBeforeHasItsRateSinceTheBegin) {
  const PipelineLook before =
      LookOf({{"a", absl::DeadlineExceededError("no answer")}}, 1, kBegan + seconds(9));
  const PipelineLook now = LookOf({{"a", Sends("b", 1000)}}, 1, kBegan + seconds(10));
  const auto links = LinksOf({{"a", {"b"}}}, &before, now, kBegan);
  EXPECT_DOUBLE_EQ(links.at(0).bytes_per_second.value(), 100) << "not 1000";
}

TEST(PipelineRatesTest, SoHasOneThatAnsweredWithoutItsStreams) {
  const PipelineLook before = LookOf(
      {{"a", PartProgress{.running = true, .ended = {}, .hops = {}}}}, 1, kBegan + seconds(9));
  const PipelineLook now = LookOf({{"a", Sends("b", 1000)}}, 1, kBegan + seconds(10));
  EXPECT_DOUBLE_EQ(LinksOf({{"a", {"b"}}}, &before, now, kBegan).at(0).bytes_per_second.value(),
                   100);
}

TEST(PipelineRatesTest, AnotherAttemptBeginsAnew) {
  const PipelineLook before = LookOf({{"a", Sends("b", 900)}}, 1, kBegan - seconds(1));
  const PipelineLook now = LookOf({{"a", Sends("b", 1000)}}, 2, kBegan + seconds(10));
  EXPECT_DOUBLE_EQ(LinksOf({{"a", {"b"}}}, &before, now, kBegan).at(0).bytes_per_second.value(),
                   100);
}

TEST(PipelineRatesTest, WhoDoesNotTellHasNoRate) {
  const PipelineLook now = LookOf({{"a", absl::DeadlineExceededError("no answer")},
                                   {"b", PartProgress{.running = false, .ended = {}, .hops = {}}}},
                                  1, kBegan + seconds(1));
  const auto links = LinksOf({{"a", {"b", "b"}}, {"b", {"c"}}}, nullptr, now, kBegan);
  ASSERT_EQ(links.size(), 2u);
  EXPECT_EQ(links[0].streams, 2u);
  EXPECT_FALSE(links[0].bytes_per_second.has_value());
  EXPECT_FALSE(links[1].bytes_per_second.has_value());
}

TEST(PipelineRatesTest, WhatCannotBeTrueIsLeftOut) {
  // A stream that the plan does not have, bytes that become fewer, and no time at all.
  const PipelineLook before = LookOf({{"a", Sends("b", 900, 5)}}, 1, kBegan + seconds(1));
  const PipelineLook now =
      LookOf({{"a", Sends("b", 100, 1)}, {"x", Sends("y", 100)}}, 1, kBegan + seconds(2));
  const auto links = LinksOf({{"a", {"b"}}}, &before, now, kBegan);
  ASSERT_EQ(links.size(), 1u);
  EXPECT_DOUBLE_EQ(links[0].bytes_per_second.value(), 0);
  EXPECT_DOUBLE_EQ(links[0].network_share, 0);
  EXPECT_FALSE(LinksOf({{"a", {"b"}}}, &now, now, kBegan).at(0).bytes_per_second.has_value());
}

TEST(HeldBackTest, TheSlowestOfTheLinksThatAreInUse) {
  const std::vector<PipelineLink> links = {
      {"a", "b", 1, 100, 0.9}, {"b", "c", 1, 100, 1.0}, {"c", "d", 1, 50, 0.1}};
  const auto by = WhatHoldsBack(links, {}, {}, {});
  ASSERT_TRUE(by.has_value());
  EXPECT_STREQ(HeldBackName(by->by), "link");
  EXPECT_EQ(by->from, "b");
  EXPECT_EQ(by->to, "c");
}

TEST(HeldBackTest, ANodeAtItsLimit) {
  const std::vector<PipelineLink> links = {{"a", "b", 1, 100, 1.0}, {"b", "c", 1, 100, 1.0}};
  const auto by = WhatHoldsBack(links, {}, {{"a", 100}, {"b", 100}}, {{"a", 0}, {"b", 110}});
  ASSERT_TRUE(by.has_value());
  EXPECT_STREQ(HeldBackName(by->by), "limit");
  EXPECT_EQ(by->from, "b");
  const auto far = WhatHoldsBack(links, {}, {{"a", 100}, {"b", 100}}, {{"b", 1000}});
  EXPECT_EQ(far->by, HeldBack::By::kLink);
}

TEST(HeldBackTest, ADiskIfNoLinkIsInUse) {
  PartProgress part = Sends("b", 100);
  part.hops[0].waits_for_disk = true;
  const PipelineLook look = LookOf({{"a", part}}, 1, kBegan + seconds(1));
  const auto by = WhatHoldsBack({{"a", "b", 1, 100, 0.1}}, look, {}, {});
  ASSERT_TRUE(by.has_value());
  EXPECT_STREQ(HeldBackName(by->by), "disk");
  EXPECT_EQ(by->from, "a");
}

TEST(HeldBackTest, NothingStandsOut) {
  EXPECT_FALSE(WhatHoldsBack({{"a", "b", 1, 100, 0.1}}, {}, {{"a", 100}}, {}).has_value());
  EXPECT_FALSE(WhatHoldsBack({{"a", "b", 1, std::nullopt, 1}}, {}, {}, {}).has_value());
  EXPECT_FALSE(WhatHoldsBack({}, {}, {}, {}).has_value());
}

class ProgressHistoryTest : public testing::Test {
 protected:
  ProgressHistoryTest() {
    repair_.record.attempt = 1;
    repair_.begin_at = kBegan;
    repair_.heard_at = kBegan;
    repair_.begin_missing_bytes = repair_.missing_bytes = 100'000;
  }
  void Hear(seconds after, uint64_t missing) {
    repair_.heard_at = kBegan + after;
    repair_.missing_bytes = missing;
    history_.Add(repair_);
  }

  RunningRepair repair_;
  ProgressHistory history_;
};

TEST_F(ProgressHistoryTest, NobodyHasToldYet) {
  EXPECT_FALSE(history_.Rate().has_value());
  history_.Add({});
  EXPECT_FALSE(history_.Rate().has_value()) << "no attempt has begun";
  history_.Add(repair_);
  history_.Add(repair_);
  EXPECT_FALSE(history_.Rate().has_value());
}

TEST_F(ProgressHistoryTest, TheRateOfTheWindow) {
  Hear(seconds(10), 90'000);
  EXPECT_DOUBLE_EQ(history_.Rate().value(), 1000);
  // Slower since: after a window at the new rate, the old one is forgotten.
  for (int i = 11; i <= 30; ++i) Hear(seconds(i), 90'000 - static_cast<uint64_t>(i - 10) * 10);
  EXPECT_DOUBLE_EQ(history_.Rate().value(), 10);
}

TEST_F(ProgressHistoryTest, AnotherAttemptBeginsAnew) {
  Hear(seconds(10), 50'000);
  repair_.record.attempt = 2;
  repair_.begin_at = kBegan + seconds(20);
  repair_.begin_missing_bytes = 50'000;
  Hear(seconds(20), 50'000);
  EXPECT_FALSE(history_.Rate().has_value());
  Hear(seconds(21), 49'900);
  EXPECT_DOUBLE_EQ(history_.Rate().value(), 100);
}

TEST_F(ProgressHistoryTest, MissingBytesThatGrowAreNoRateBelowZero) {
  Hear(seconds(1), 200'000);
  EXPECT_DOUBLE_EQ(history_.Rate().value(), 0);
}

}  // namespace
}  // namespace ecpipe::pipeline_rates_test
