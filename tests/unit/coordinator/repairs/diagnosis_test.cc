// SPDX-License-Identifier: Apache-2.0
#include "coordinator/repairs/diagnosis.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/fault.h"

namespace ecpipe::diagnosis_test {
namespace {

// The path a -> b -> c -> requestor "r", every stream with `bytes` on it, nobody waiting.
PartAnswers Path(uint64_t bytes = 1 << 20) {
  PartAnswers answers;
  const std::vector<std::string> nodes = {"a", "b", "c", "r"};
  for (size_t i = 0; i + 1 < nodes.size(); ++i) {
    PartProgress part{.running = true, .ended = {}, .hops = {HopProgress{.hop = uint32_t(i)}}};
    if (i > 0) part.hops[0].inputs.push_back({.node = nodes[i - 1], .bytes = bytes});
    part.hops[0].outputs.push_back({.node = nodes[i + 1], .bytes = bytes, .network_seconds = 0.1});
    answers.emplace(nodes[i], part);
  }
  return answers;
}
HopProgress& HopOf(PartAnswers& answers, const std::string& node) {
  return answers.at(node)->hops[0];
}
void End(PartAnswers& answers, const std::string& node, const absl::Status& status) {
  answers.at(node) = PartProgress{.running = false, .ended = status, .hops = {}};
}

TEST(WhoFailed, TheOneThatDoesNotAnswerOrHasRestarted) {
  PartAnswers answers = Path();
  answers.at("a") = absl::DeadlineExceededError("too late");
  answers.at("b") = absl::NotFoundError("no such part");
  const Suspects suspects = WhoFailed(answers, absl::UnavailableError("gone"));
  ASSERT_EQ(suspects.size(), 2u);
  EXPECT_FALSE(suspects.at("a").certain) << "it may only be slow";
  EXPECT_TRUE(suspects.at("b").certain);
  EXPECT_NE(suspects.at("a").reason.find("too late"), std::string::npos);
  EXPECT_NE(suspects.at("b").reason.find("restarted"), std::string::npos);
}

TEST(WhoFailed, TheOneThatSaysSo) {
  PartAnswers answers = Path();
  End(answers, "a", WithFault(absl::DataLossError("block x is damaged"), kFaultSelf));
  End(answers, "b", WithFault(absl::DataLossError("block x is damaged"), "a"));
  const Suspects suspects =
      WhoFailed(answers, WithFault(absl::DataLossError("block x is damaged"), "a"));
  ASSERT_EQ(suspects.size(), 1u);
  EXPECT_TRUE(suspects.at("a").certain);
  EXPECT_EQ(suspects.at("a").reason, "block x is damaged");
}

TEST(WhoFailed, TheFaultIsFollowedToItsSource) {
  // c had to stop in the middle of a frame, since b had gone; b, since a had.
  PartAnswers answers = Path();
  End(answers, "c", WithFault(absl::UnavailableError("b closed"), "b"));
  End(answers, "b", WithFault(absl::UnavailableError("a closed"), "a"));
  const Suspects suspects = WhoFailed(answers, WithFault(absl::UnavailableError("c closed"), "c"));
  ASSERT_EQ(suspects.size(), 1u);
  EXPECT_FALSE(suspects.at("a").certain) << "it runs, and may be without fault";
}

TEST(WhoFailed, NamesTheOtherEndOnlyIfItIsAHelper) {
  const PartAnswers answers = Path();
  const absl::Status failure = WithFault(absl::UnavailableError("nothing comes"), "b");
  const auto other_end = [&](const Receivers& receivers) {
    return WhoFailed(answers, failure, receivers).at("b").other_end;
  };
  EXPECT_EQ(other_end({{"b", {"c"}}}), "c");
  EXPECT_EQ(other_end({{"b", {"requestor:x"}}}), "") << "it cannot be left out";
  EXPECT_EQ(other_end({{"b", {"a", "c"}}}), "") << "which of the two is not known";
}

TEST(WhoFailed, FaultsInACircleAndOfStrangersEnd) {
  PartAnswers answers = Path();
  End(answers, "a", WithFault(absl::UnavailableError("x"), "b"));
  End(answers, "b", WithFault(absl::UnavailableError("x"), "a"));
  EXPECT_EQ(WhoFailed(answers, WithFault(absl::UnavailableError("x"), "a")).size(), 1u);
  EXPECT_TRUE(WhoFailed(Path(), WithFault(absl::UnavailableError("x"), "r")).empty());
  EXPECT_TRUE(WhoFailed(Path(), WithFault(absl::UnavailableError("x"), kFaultUnknown)).empty());
  EXPECT_TRUE(WhoFailed({}, WithFault(absl::UnavailableError("x"), "a")).empty());
}

TEST(WhoIsStuck, NobodyWhileBytesMoveOrAtFirstSight) {
  PartAnswers now = Path(200);
  for (auto& [node, answer] : now) answer->hops[0].outputs[0].waiting = true;
  EXPECT_TRUE(WhoIsStuck(now, nullptr).empty());
  PartAnswers before = now;
  HopOf(before, "b").inputs[0].bytes -= 1;
  EXPECT_TRUE(WhoIsStuck(now, &before).empty());
}

TEST(WhoIsStuck, ADiskThatHangs) {
  PartAnswers now = Path();
  HopOf(now, "b").waits_for_disk = true;
  HopOf(now, "c").inputs[0].waiting = true;
  const Suspects suspects = WhoIsStuck(now, &now);
  ASSERT_EQ(suspects.size(), 1u);
  EXPECT_NE(suspects.at("b").reason.find("disk"), std::string::npos);
}

TEST(WhoIsStuck, ALinkThatPassesNothing) {
  // b has slices for c, c waits for them; a is held up behind b, which takes no more.
  PartAnswers now = Path();
  HopOf(now, "a").outputs[0].waiting = true;
  HopOf(now, "b").outputs[0].waiting = true;
  HopOf(now, "c").inputs[0].waiting = true;
  Suspects suspects = WhoIsStuck(now, &now);
  ASSERT_EQ(suspects.size(), 1u);
  EXPECT_FALSE(suspects.at("b").certain);
  // The requestor is not asked: that it is quiet says that it waits.
  now = Path();
  HopOf(now, "c").outputs[0].waiting = true;
  suspects = WhoIsStuck(now, &now);
  ASSERT_EQ(suspects.size(), 1u);
  EXPECT_TRUE(suspects.contains("c"));
}

TEST(WhoIsStuck, WhatOnlyASocketHasTakenHasNotMoved) {
  PartAnswers now = Path();
  HopOf(now, "a").outputs[0].waiting = true;
  HopOf(now, "b").outputs[0].waiting = true;
  HopOf(now, "c").inputs[0].waiting = true;
  PartAnswers before = now;
  HopOf(before, "a").outputs[0].bytes -= 1;
  EXPECT_TRUE(WhoIsStuck(now, &before).contains("b")) << "b has not received it";
  before = now;
  HopOf(before, "c").outputs[0].bytes -= 1;
  EXPECT_TRUE(WhoIsStuck(now, &before).empty()) << "whether the requestor has is not known";
}

TEST(WhoIsStuck, OneThatDoesNotAnswerAtOnce) {
  PartAnswers now = Path();
  now.at("b") = absl::DeadlineExceededError("nothing");
  EXPECT_FALSE(WhoIsStuck(now, nullptr).at("b").certain);
  now.at("b") = absl::UnavailableError("connection refused");
  const Suspects suspects = WhoIsStuck(now, nullptr);
  ASSERT_EQ(suspects.size(), 1u);
  EXPECT_TRUE(suspects.at("b").certain);
}

TEST(WhichIsSlow, TheNodeBetweenTwoSlowLinks) {
  PartAnswers answers = Path();
  HopOf(answers, "a").outputs[0].network_seconds = 0.9;
  HopOf(answers, "b").outputs[0].network_seconds = 1.0;
  PartProgress d{.running = true, .ended = {}, .hops = {HopProgress{}, HopProgress{.hop = 1}}};
  d.hops[0].outputs.push_back({.node = "a", .bytes = 1 << 20, .network_seconds = 0.1});
  d.hops[1].outputs.push_back({.node = "a", .bytes = 1 << 20, .network_seconds = 0.1});
  answers.emplace("d", d);
  const SlowLinks slow = WhichIsSlow(SentBy(answers), nullptr, 1.0);
  EXPECT_EQ(slow.ends.at("b"), 2);
  EXPECT_EQ(slow.ends.at("a"), 1);
  EXPECT_EQ(slow.sender, "b");
  EXPECT_NEAR(slow.speedup, 10, 0.1);
}

TEST(WhichIsSlow, NotAmongEqualsNorWithoutEvidence) {
  EXPECT_TRUE(WhichIsSlow(SentBy(Path()), nullptr, 1.0).ends.empty());
  EXPECT_TRUE(WhichIsSlow({}, nullptr, 1.0).ends.empty());
  PartAnswers answers = Path();
  HopOf(answers, "a").outputs[0].network_seconds = 2.0;
  EXPECT_FALSE(WhichIsSlow(SentBy(answers), nullptr, 2.0).ends.empty());
  EXPECT_TRUE(WhichIsSlow(SentBy(answers), nullptr, 20.0).ends.empty())
      << "it rests for most of the time";
  HopOf(answers, "a").outputs[0].bytes = 100;
  EXPECT_TRUE(WhichIsSlow(SentBy(answers), nullptr, 2.0).ends.empty()) << "too few bytes to tell";
}

// After 100 MiB have passed on each stream, and 10 MiB more within a second; `b_seconds` of it the
// network held up b's stream.
class SinceALook : public testing::Test {
 protected:
  SlowLinks Slow(double b_seconds, uint64_t b_bytes = 10 << 20) {
    PartAnswers answers = Path(110 << 20);
    for (const char* node : {"a", "c"}) {
      HopOf(answers, node).outputs[0].network_seconds = kBefore + 0.1;
    }
    HopOf(answers, "b").outputs[0].bytes = (100 << 20) + b_bytes;
    HopOf(answers, "b").outputs[0].network_seconds = kBefore + b_seconds;
    const Sent before = SentBy(before_);
    return WhichIsSlow(SentBy(answers), &before, 1.0);
  }
  void SetUp() override {
    for (const char* node : {"a", "b", "c"}) {
      HopOf(before_, node).outputs[0].network_seconds = kBefore;
    }
  }

  static constexpr double kBefore = 1.0;
  PartAnswers before_ = Path(100 << 20);
};

TEST_F(SinceALook, OneThatHasBecomeSlow) {
  const SlowLinks slow = Slow(1.0);
  EXPECT_EQ(slow.sender, "b");
  EXPECT_NEAR(slow.speedup, 10, 0.5);
  EXPECT_TRUE(slow.telling);
}

TEST_F(SinceALook, TellsOnlyIfTheUsualOnePassesMuch) {
  const Sent sent = SentBy(before_);
  EXPECT_FALSE(WhichIsSlow(sent, &sent, 1.0, /*best_pace=*/1e6).telling);
  EXPECT_TRUE(WhichIsSlow(sent, &sent, 2.0, /*best_pace=*/1e6).telling);
  EXPECT_FALSE(WhichIsSlow({}, nullptr, 1.0).telling);
}

TEST_F(SinceALook, OneThatIsSlowNoMore) {
  const Sent before = {{{"a", 0, 0, "b"}, {100 << 20, 1.0}},
                       {{"b", 0, 1, "c"}, {1 << 20, 10.0}},
                       {{"c", 0, 2, "r"}, {100 << 20, 1.0}}};
  Sent now = before;
  now.at({"b", 0, 1, "c"}) = {61 << 20, 10.4};
  EXPECT_TRUE(WhichIsSlow(now, &before, 1.0).ends.empty());
}

TEST_F(SinceALook, OneThatPassesNothing) {
  const SlowLinks slow = Slow(1.0, 0);
  EXPECT_EQ(slow.sender, "b");
  EXPECT_LT(slow.speedup, 1000) << "finite";
}

TEST_F(SinceALook, OneThatRests) {
  EXPECT_TRUE(Slow(0.0, 0).ends.empty());
  EXPECT_TRUE(Slow(0.2, 0).ends.empty()) << "a tail from before";
}

TEST_F(SinceALook, OneThatDidNotTellBefore) {
  HopOf(before_, "b").outputs.clear();
  EXPECT_TRUE(Slow(5.0).ends.empty()) << "since when these are nobody knows";
}

TEST(WhichIsSlow, NotWhenTheRepairHasNeverBeenFaster) {
  // All pass 10 MB a second; those behind a do so in bursts.
  const Sent now = {{{"a", 0, 0, "b"}, {10'000'000, 1.0}},
                    {{"b", 0, 1, "c"}, {10'000'000, 0.01}},
                    {{"c", 0, 2, "r"}, {10'000'000, 0.02}}};
  const SlowLinks first = WhichIsSlow(now, nullptr, 1.0);
  EXPECT_NEAR(first.pace, 1e7, 1);
  EXPECT_FALSE(first.ends.empty()) << "they may be able to do more";
  EXPECT_TRUE(WhichIsSlow(now, nullptr, 1.0, first.pace).ends.empty()) << "they were not";
  EXPECT_EQ(WhichIsSlow(now, nullptr, 1.0, 5 * first.pace).sender, "a");
}

// Four senders into r, each held up by r's link for so long, and five streams that wait for them.
Sent Tree(uint64_t bytes, double seconds) {
  Sent sent;
  for (const char* node : {"a", "b", "c", "d"}) sent[{node, 0, 0, "r"}] = {bytes, seconds};
  for (uint32_t hop = 1; hop <= 5; ++hop) sent[{"e", 0, hop, "a"}] = {bytes, seconds * 0.25};
  return sent;
}

TEST(WhichIsSlow, NotThoseWhoShareALink) {
  const Sent tree = Tree(2'000'000, 1.0);
  EXPECT_TRUE(WhichIsSlow(tree, nullptr, 1.0).ends.empty());
  EXPECT_TRUE(WhichIsSlow(Tree(4'000'000, 2.0), &tree, 1.0).ends.empty());
}

TEST(WhichIsSlow, OneForWhichTheOthersWait) {
  Sent tree = Tree(2'000'000, 0.25);
  tree[{"a", 0, 0, "r"}] = {2'000'000, 1.0};
  EXPECT_EQ(WhichIsSlow(tree, nullptr, 1.0).sender, "a");
}

TEST(WhichIsSlow, OneWhoseLanesAreAllSlow) {
  Sent now;
  for (uint32_t lane = 0; lane < 4; ++lane) {
    now[{"a", lane, 0, "b"}] = {1'000'000, 0.1};
    now[{"b", lane, 1, "c"}] = {1'000'000, 1.0};
    now[{"c", lane, 2, "r"}] = {1'000'000, 0.1};
  }
  EXPECT_EQ(WhichIsSlow(now, nullptr, 1.0).sender, "b");
  EXPECT_EQ(WhichIsSlow(now, nullptr, 1.0, /*best_pace=*/8e6).sender, "b");
}

TEST_F(SinceALook, WhatCannotBe) {
  for (const double bad : {std::nan(""), HUGE_VAL, -HUGE_VAL, -5.0}) {
    EXPECT_TRUE(Slow(bad).ends.empty()) << bad;
    HopOf(before_, "b").outputs[0].network_seconds = bad;
    EXPECT_TRUE(Slow(bad).ends.empty()) << bad;
    EXPECT_TRUE(Slow(0.1).ends.empty()) << bad;
  }
  EXPECT_TRUE(WhichIsSlow(SentBy(Path()), nullptr, 0).ends.empty());
}

TEST(AllTell, UnlessOneRunsAndSaysNothing) {
  PartAnswers answers = Path();
  EXPECT_TRUE(AllTell(answers));
  End(answers, "a", absl::OkStatus());
  EXPECT_TRUE(AllTell(answers));
  answers.at("b")->hops.clear();
  EXPECT_FALSE(AllTell(answers));
  answers = Path();
  answers.at("b") = absl::DeadlineExceededError("too late");
  EXPECT_FALSE(AllTell(answers));
}

}  // namespace
}  // namespace ecpipe::diagnosis_test
