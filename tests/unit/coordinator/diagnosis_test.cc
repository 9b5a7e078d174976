// SPDX-License-Identifier: Apache-2.0
#include "coordinator/diagnosis.h"

#include <gtest/gtest.h>

#include "common/blame.h"

namespace ecpipe {
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
  End(answers, "a", Blame(absl::DataLossError("block x is damaged"), kBlameSelf));
  End(answers, "b", Blame(absl::DataLossError("block x is damaged"), "a"));
  const Suspects suspects =
      WhoFailed(answers, Blame(absl::DataLossError("block x is damaged"), "a"));
  ASSERT_EQ(suspects.size(), 1u);
  EXPECT_TRUE(suspects.at("a").certain);
  EXPECT_EQ(suspects.at("a").reason, "block x is damaged");
}

TEST(WhoFailed, BlameIsFollowedToItsSource) {
  // c had to stop in the middle of a frame, since b had gone; b, since a had.
  PartAnswers answers = Path();
  End(answers, "c", Blame(absl::UnavailableError("b closed"), "b"));
  End(answers, "b", Blame(absl::UnavailableError("a closed"), "a"));
  const Suspects suspects = WhoFailed(answers, Blame(absl::UnavailableError("c closed"), "c"));
  ASSERT_EQ(suspects.size(), 1u);
  EXPECT_FALSE(suspects.at("a").certain) << "it runs, and may be blameless";
}

TEST(WhoFailed, NamesTheOtherEndOnlyIfItIsAHelper) {
  const PartAnswers answers = Path();
  const absl::Status failure = Blame(absl::UnavailableError("nothing comes"), "b");
  const auto other_end = [&](const Receivers& receivers) {
    return WhoFailed(answers, failure, receivers).at("b").other_end;
  };
  EXPECT_EQ(other_end({{"b", {"c"}}}), "c");
  EXPECT_EQ(other_end({{"b", {"requestor:x"}}}), "") << "it cannot be left out";
  EXPECT_EQ(other_end({{"b", {"a", "c"}}}), "") << "which of the two is not known";
}

TEST(WhoFailed, BlameInACircleAndOfStrangersEnds) {
  PartAnswers answers = Path();
  End(answers, "a", Blame(absl::UnavailableError("x"), "b"));
  End(answers, "b", Blame(absl::UnavailableError("x"), "a"));
  EXPECT_EQ(WhoFailed(answers, Blame(absl::UnavailableError("x"), "a")).size(), 1u);
  EXPECT_TRUE(WhoFailed(Path(), Blame(absl::UnavailableError("x"), "r")).empty());
  EXPECT_TRUE(WhoFailed(Path(), Blame(absl::UnavailableError("x"), kBlameNobody)).empty());
  EXPECT_TRUE(WhoFailed({}, Blame(absl::UnavailableError("x"), "a")).empty());
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
  PartProgress d{.running = true, .ended = {}, .hops = {HopProgress{}, HopProgress{}}};
  d.hops[0].outputs.push_back({.node = "a", .bytes = 1 << 20, .network_seconds = 0.1});
  d.hops[1].outputs.push_back({.node = "a", .bytes = 1 << 20, .network_seconds = 0.1});
  answers.emplace("d", d);
  const SlowLinks slow = WhichIsSlow(answers, nullptr, 1.0);
  EXPECT_EQ(slow.ends.at("b"), 2);
  EXPECT_EQ(slow.ends.at("a"), 1);
  EXPECT_EQ(slow.sender, "b");
  EXPECT_NEAR(slow.speedup, 10, 0.1);
}

TEST(WhichIsSlow, NotAmongEqualsNorWithoutEvidence) {
  EXPECT_TRUE(WhichIsSlow(Path(), nullptr, 1.0).ends.empty());
  EXPECT_TRUE(WhichIsSlow({}, nullptr, 1.0).ends.empty());
  PartAnswers answers = Path();
  HopOf(answers, "a").outputs[0].network_seconds = 2.0;
  EXPECT_FALSE(WhichIsSlow(answers, nullptr, 2.0).ends.empty());
  EXPECT_TRUE(WhichIsSlow(answers, nullptr, 20.0).ends.empty()) << "it rests for most of the time";
  HopOf(answers, "a").outputs[0].bytes = 100;
  EXPECT_TRUE(WhichIsSlow(answers, nullptr, 2.0).ends.empty()) << "too few bytes to tell";
}

TEST(WhichIsSlow, OneThatHasBecomeSlowByWhatPassedSince) {
  const PartAnswers before = Path(100 << 20);
  PartAnswers answers = Path(110 << 20);
  HopOf(answers, "a").outputs[0].network_seconds = 0.11;
  HopOf(answers, "c").outputs[0].network_seconds = 0.11;
  HopOf(answers, "b").outputs[0].network_seconds = 1.1;
  SlowLinks slow = WhichIsSlow(answers, &before, 1.0);
  EXPECT_EQ(slow.sender, "b");
  EXPECT_NEAR(slow.speedup, 100, 1);
  // One that was slow, and is not any more.
  PartAnswers was_slow = before;
  HopOf(was_slow, "b").outputs[0].network_seconds = 1.09;
  EXPECT_TRUE(WhichIsSlow(answers, &was_slow, 1.0).ends.empty());
  // Those that have ended, or rest, still say what is usual.
  answers = before;
  HopOf(answers, "b").outputs[0] = {
      .node = "c", .bytes = (100 << 20) + 1000, .network_seconds = 1.1};
  slow = WhichIsSlow(answers, &before, 1.0);
  EXPECT_EQ(slow.sender, "b");
  // Nothing at all passes: no division by zero.
  HopOf(answers, "b").outputs[0].bytes = 100 << 20;
  EXPECT_EQ(WhichIsSlow(answers, &before, 1.0).sender, "b");
}

}  // namespace
}  // namespace ecpipe
