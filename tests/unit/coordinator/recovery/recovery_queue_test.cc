// SPDX-License-Identifier: Apache-2.0
#include "coordinator/recovery/recovery_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace ecpipe::recovery_queue_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class RecoveryQueueTest : public testing::Test {
 protected:
  void Add(const std::string& block_id, std::vector<std::string> holders) {
    queue_.Add({block_id, 100, 2, std::move(holders)}, now_);
  }
  std::vector<std::string> Next(size_t limit = 10) {
    std::vector<std::string> ids;
    for (const LostBlock* block : queue_.Next(now_, limit)) ids.push_back(block->block_id);
    return ids;
  }
  void Fail(const std::string& block_id) {
    queue_.Start(block_id);
    queue_.Fail(block_id, absl::UnavailableError("why"), now_);
  }

  double PauseOf(const std::string& block_id) const {
    for (const BlockedBlock& block : queue_.Blocked(100, now_)) {
      if (block.block_id == block_id) return block.next_try_in_seconds;
    }
    return 0;
  }

  TimePoint now_{seconds(1000)};
  RecoveryQueue queue_{{.first_pause = seconds(1), .longest_pause = seconds(3), .max_attempts = 4}};
};

TEST_F(RecoveryQueueTest, FewestUsableSurvivorsFirst) {
  queue_.SetUsable({"a", "b", "c", "d"});
  Add("four", {"a", "b", "c", "d"});
  Add("two", {"a", "b", "x", "y"});
  Add("three", {"a", "b", "c", "x"});
  EXPECT_THAT(Next(), ElementsAre("two", "three", "four"));
  EXPECT_THAT(Next(2), ElementsAre("two", "three"));
  queue_.SetUsable({"x", "y", "c"});
  EXPECT_THAT(Next(), ElementsAre("four", "three", "two")) << "one, two and two";
}

TEST_F(RecoveryQueueTest, TheHeadHasWhatMayBeTriedAndWhatPauses) {
  queue_.SetUsable({"a", "b", "c"});
  Add("three", {"a", "b", "c"});
  Add("one", {"a", "x"});
  Add("two", {"a", "b"});
  Add("running", {"a", "b"});
  Fail("two");
  queue_.Start("running");
  auto head = queue_.Head(10);
  ASSERT_EQ(head.size(), 3u);
  EXPECT_EQ(head[0].block->block_id, "one");
  EXPECT_EQ(head[0].spare, -1);
  EXPECT_FALSE(head[0].pausing);
  EXPECT_EQ(head[1].block->block_id, "three");
  EXPECT_EQ(head[1].spare, 1);
  EXPECT_EQ(head[2].block->block_id, "two");
  EXPECT_TRUE(head[2].pausing);
  EXPECT_EQ(head[2].attempts, 1);
  EXPECT_EQ(head[2].reason, "why");
  EXPECT_EQ(head[2].until, now_ + seconds(1));
  head = queue_.Head(1);
  ASSERT_EQ(head.size(), 2u) << "one of each kind";
  EXPECT_EQ(head[1].block->block_id, "two");
  EXPECT_THAT(queue_.Head(0), IsEmpty());
}

TEST_F(RecoveryQueueTest, OfEqualsTheOneThatHasWaitedLongestGoesFirst) {
  queue_.SetUsable({"a", "b", "c"});
  Add("z-old", {"a", "b", "c"});
  now_ += seconds(3600);
  Add("young", {"a", "b", "c"});
  Add("endangered", {"a", "b"});
  EXPECT_THAT(Next(), ElementsAre("endangered", "z-old", "young"));
}

TEST_F(RecoveryQueueTest, WrongBytesMakeTheNextAttemptDoubtful) {
  queue_.SetUsable({"a", "b"});
  Add("one", {"a", "b"});
  for (const bool wrong : {false, true, false}) {
    queue_.Start("one");
    queue_.Fail("one", wrong ? absl::DataLossError("wrong") : absl::UnavailableError("why"), now_);
    now_ += seconds(3);
    const auto next = queue_.Next(now_, 1);
    ASSERT_EQ(next.size(), 1u);
    EXPECT_EQ(next[0]->uncertain, wrong);
  }
  EXPECT_EQ(queue_.Blocked(1, now_).at(0).reason, "wrong; then why");
}

// Each took what the others needed, and so it would go on.
TEST_F(RecoveryQueueTest, BlocksThatFailTogetherDoNotGoOnMeeting) {
  queue_.SetUsable({"a"});
  std::vector<std::string> blocks;
  for (int i = 0; i < 40; ++i) {
    Add(blocks.emplace_back("block-" + std::to_string(100 + i)), {"a"});
  }
  std::set<std::pair<std::string, std::string>> met;
  bool first = true;
  for (const size_t most : {780u, 60u, 5u}) {
    ASSERT_EQ(Next(100).size(), blocks.size());
    for (const std::string& block : blocks) Fail(block);
    std::set<std::pair<std::string, std::string>> meet;
    for (const std::string& one : blocks) {
      for (const std::string& other : blocks) {
        const bool close = std::abs(PauseOf(one) - PauseOf(other)) < 0.02;
        if (one < other && close && (first || met.contains({one, other}))) {
          meet.insert({one, other});
        }
      }
    }
    EXPECT_LE(meet.size(), most) << "of 780 pairs";
    met = std::move(meet);
    first = false;
    now_ += seconds(3);
  }
}

TEST_F(RecoveryQueueTest, WhatFailsWaitsLongerEachTimeAndIsGivenUp) {
  queue_.SetUsable({"a", "b"});
  Add("bad", {"a"});
  Add("good", {"a", "b"});
  EXPECT_THAT(Next(), ElementsAre("bad", "good"));
  const std::pair<milliseconds, milliseconds> pauses[] = {{milliseconds(1000), milliseconds(1000)},
                                                          {milliseconds(1000), milliseconds(2000)},
                                                          {milliseconds(1500), milliseconds(3000)}};
  for (const auto& [least, most] : pauses) {
    Fail("bad");
    EXPECT_THAT(Next(), ElementsAre("good"));
    now_ += least - milliseconds(1);
    EXPECT_THAT(Next(), ElementsAre("good"));
    now_ += most - least + milliseconds(1);
    EXPECT_EQ(Next().size(), 2u);
    EXPECT_EQ(queue_.counts().waiting, 2u);
  }
  Fail("bad");
  now_ += seconds(100);
  EXPECT_THAT(Next(), ElementsAre("good"));
  const std::vector<BlockedBlock> blocked = queue_.Blocked(10, now_);
  ASSERT_EQ(blocked.size(), 1u);
  EXPECT_EQ(blocked[0].block_id, "bad");
  EXPECT_EQ(blocked[0].reason, "why");
  EXPECT_EQ(blocked[0].attempts, 4);
  EXPECT_TRUE(blocked[0].given_up);
  EXPECT_FALSE(queue_.Finished());
  queue_.Start("good");
  queue_.Done("good");
  EXPECT_TRUE(queue_.Finished());
  EXPECT_EQ(queue_.counts().given_up, 1u);
  EXPECT_EQ(queue_.counts().done_bytes, 100u);
}

TEST_F(RecoveryQueueTest, AFailedTryDoesNotCostABlockItsPlace) {
  queue_.SetUsable({"a", "b", "c"});
  for (const char* block : {"1", "2", "3"}) Add(block, {"a", "b", "c"});
  Add("endangered", {"a", "b"});
  now_ += seconds(3600);
  queue_.Start("endangered");
  queue_.Wait("endangered", WaitKind::kHelper, absl::DeadlineExceededError("late"), now_);
  EXPECT_THAT(Next(), ElementsAre("1", "2", "3"));
  queue_.Start("1");
  now_ += seconds(1);
  EXPECT_THAT(Next(), ElementsAre("endangered", "2", "3"));
}

// Each start is of the first block, as if there were room for one at a time.
TEST_F(RecoveryQueueTest, BlocksThatAlwaysFailDoNotKeepOthersWaiting) {
  queue_.SetUsable({"a", "b", "c"});
  for (int i = 0; i < 100; ++i) Add("bad-" + std::to_string(i), {"a", "b"});
  for (int i = 0; i < 100; ++i) {
    const std::string block = Next(1).at(0);
    queue_.Start(block);
    queue_.Wait(block, WaitKind::kHelper, absl::DeadlineExceededError("late"), now_);
  }
  now_ += seconds(3);
  Add("one", {"a", "b", "c"});
  Add("two", {"a", "b", "c"});
  std::vector<std::string> good;
  for (int i = 0; i < 5; ++i) {
    const std::string block = Next(1).at(0);
    queue_.Start(block);
    if (block.starts_with("bad")) {
      queue_.Wait(block, WaitKind::kHelper, absl::DeadlineExceededError("late"), now_);
    } else {
      good.push_back(block);
      queue_.Done(block);
    }
  }
  EXPECT_THAT(good, ElementsAre("one", "two"));
}

TEST_F(RecoveryQueueTest, OtherHoldersMayChangeTheOrder) {
  queue_.SetUsable({"a", "b", "c"});
  Add("one", {"a", "b", "x"});
  Add("two", {"a", "b", "c"});
  EXPECT_THAT(Next(), ElementsAre("one", "two"));
  EXPECT_FALSE(queue_.SetHolders("two", {"a", "b", "c"}));
  EXPECT_FALSE(queue_.SetHolders("other", {"a"}));
  EXPECT_TRUE(queue_.SetHolders("two", {"a", "x", "y"}));
  EXPECT_THAT(Next(), ElementsAre("two", "one"));
  Add("two", {"a", "b", "c"});  // another listing
  EXPECT_THAT(Next(), ElementsAre("one", "two"));
  EXPECT_EQ(queue_.counts().all, 2u);
}

TEST_F(RecoveryQueueTest, StrayEventsChangeNothing) {
  Add("one", {"a"});
  Add("one", {"a", "b"});
  EXPECT_EQ(queue_.counts().waiting, 1u);
  queue_.Done("one");
  queue_.Fail("one", absl::UnavailableError("why"), now_);
  queue_.Done("other");
  queue_.Start("other");
  EXPECT_THAT(Next(), ElementsAre("one"));
  queue_.Start("one");
  queue_.Start("one");
  EXPECT_THAT(Next(), IsEmpty());
  EXPECT_EQ(queue_.counts().running, 1u);
  queue_.Done("one");
  queue_.Done("one");
  EXPECT_EQ(queue_.counts().done, 1u);
  EXPECT_TRUE(queue_.Finished());
  EXPECT_THAT(queue_.Blocked(10, now_), IsEmpty());
}

// However often: the recovery must not end because nodes were away for long.
TEST_F(RecoveryQueueTest, WhatMayBeOtherwiseLaterIsNeverGivenUp) {
  queue_.SetUsable({"a"});
  Add("one", {"a", "b"});
  for (int i = 0; i < 20; ++i) {
    ASSERT_THAT(Next(), ElementsAre("one")) << i;
    queue_.Start("one");
    queue_.Wait("one", WaitKind::kSurvivors, absl::FailedPreconditionError("b is away"), now_);
    EXPECT_THAT(Next(), IsEmpty());
    const std::vector<BlockedBlock> blocked = queue_.Blocked(10, now_);
    ASSERT_EQ(blocked.size(), 1u);
    EXPECT_EQ(blocked[0].kind, WaitKind::kSurvivors);
    EXPECT_GT(blocked[0].next_try_in_seconds, 0);
    now_ += seconds(3);
  }
  EXPECT_FALSE(queue_.Finished());
  EXPECT_EQ(queue_.counts().given_up, 0u);
  // Failures that prove something are counted by themselves.
  ASSERT_THAT(Next(), ElementsAre("one"));
  for (int i = 0; i < 3; ++i) Fail("one"), now_ += seconds(3), Next();
  EXPECT_EQ(queue_.counts().given_up, 0u);
  Fail("one");
  EXPECT_EQ(queue_.counts().given_up, 1u);
}

TEST_F(RecoveryQueueTest, ANodeThatComesBackIsTriedAtOnce) {
  queue_.SetUsable({"a"});
  Add("one", {"a", "b"});
  Add("other", {"a", "c"});
  for (const char* block : {"one", "other"}) {
    queue_.Start(block);
    queue_.Wait(block, WaitKind::kSurvivors, absl::FailedPreconditionError("why"), now_);
  }
  ASSERT_EQ(queue_.Pauses().size(), 1u);
  EXPECT_EQ(queue_.Pauses()[0].blocks, 2u);
  EXPECT_EQ(queue_.Pauses()[0].reason, "why");
  queue_.SetUsable({"a", "b"});
  EXPECT_THAT(Next(), ElementsAre("one")) << "b has none of the other's stripe";
}

// {too few, none, one, two, more} to spare.
TEST_F(RecoveryQueueTest, BlocksThatWaitOrRunAreCountedByWhatTheyHaveToSpare) {
  using Spare = RecoveryQueue::Spare;
  const auto counts = [&] {
    std::vector<uint64_t> all;
    for (const Spare spare :
         {Spare::kTooFew, Spare::kNone, Spare::kOne, Spare::kTwo, Spare::kMore}) {
      all.push_back(queue_.CountOf(spare));
    }
    return all;
  };
  Add("early", {"a", "b", "c"});
  EXPECT_THAT(counts(), ElementsAre(1, 0, 0, 0, 0)) << "nobody is known to be usable";
  queue_.SetUsable({"a", "b", "c", "d", "e"});
  EXPECT_THAT(counts(), ElementsAre(0, 0, 1, 0, 0));
  Add("ready", {"a", "b", "c", "d", "e"});
  Add("runs", {"a", "b", "c", "d"});
  Add("pauses", {"a", "b"});
  Add("done", {"a"});
  queue_.AddThere({"there", 100, 2, {"a", "b"}});
  queue_.Start("runs");
  Fail("pauses");
  EXPECT_THAT(counts(), ElementsAre(1, 1, 1, 1, 1));
  queue_.Start("done");
  queue_.Done("done");
  EXPECT_THAT(counts(), ElementsAre(0, 1, 1, 1, 1));
  queue_.SetUsable({"a", "c", "d", "e"});
  EXPECT_THAT(counts(), ElementsAre(1, 1, 1, 1, 0)) << "also of what runs and pauses";
  queue_.SetHolders("runs", {"a"});
  EXPECT_THAT(counts(), ElementsAre(2, 1, 0, 1, 0));
  queue_.AddThere({"early", 100, 2, {}});
  EXPECT_THAT(counts(), ElementsAre(2, 0, 0, 1, 0));
  queue_.LoseAll(now_);
  EXPECT_THAT(counts(), ElementsAre(3, 1, 0, 1, 0)) << "there and early";
  now_ += seconds(1);
  for (int i = 1; i < 4; ++i) Next(), Fail("pauses"), now_ += seconds(3);
  ASSERT_EQ(queue_.counts().given_up, 1u);
  EXPECT_THAT(counts(), ElementsAre(2, 1, 0, 1, 0));
}

TEST_F(RecoveryQueueTest, WhatPausesIsCountedByItsKind) {
  queue_.SetUsable({"a"});
  for (const char* block : {"one", "two", "there"}) {
    Add(block, {"a", "b"});
    queue_.Start(block);
    queue_.Wait(block, WaitKind::kSurvivors, absl::FailedPreconditionError("b is away"), now_);
  }
  Add("failed", {"a"});
  Fail("failed");
  const auto count = [&](WaitKind kind) {
    const auto found = queue_.pausing_by_kind().find(kind);
    return found == queue_.pausing_by_kind().end() ? 0 : found->second;
  };
  EXPECT_EQ(count(WaitKind::kSurvivors), 3u);
  EXPECT_EQ(count(WaitKind::kFailed), 1u);
  queue_.AddThere({"there", 100, 2, {}});
  EXPECT_EQ(count(WaitKind::kSurvivors), 2u);
  now_ += seconds(1);
  Next();
  EXPECT_EQ(count(WaitKind::kSurvivors), 0u);
  EXPECT_EQ(count(WaitKind::kFailed), 0u);
  queue_.Start("one");
  queue_.Wait("one", WaitKind::kTarget, absl::FailedPreconditionError("nobody takes it"), now_);
  EXPECT_EQ(count(WaitKind::kTarget), 1u);
}

TEST_F(RecoveryQueueTest, WhatTheNodeHasAgainIsLeftAloneUntilItIsAway) {
  queue_.SetUsable({"a", "b"});
  for (const char* block : {"done", "failed", "ready", "running"}) Add(block, {"a", "b"});
  queue_.Start("done");
  queue_.Done("done");
  for (int i = 0; i < 4; ++i) Fail("failed"), now_ += seconds(3), Next();
  ASSERT_EQ(queue_.counts().given_up, 1u);
  queue_.Start("running");
  for (const char* block : {"done", "failed", "ready", "running", "new"}) {
    queue_.AddThere({block, 100, 2, {"a", "b"}});
  }
  RecoveryQueue::Counts counts = queue_.counts();
  EXPECT_TRUE(queue_.Finished());
  EXPECT_EQ(counts.there, 4u);
  EXPECT_EQ(counts.there_bytes, 400u);
  EXPECT_EQ(counts.done, 1u);
  EXPECT_EQ(counts.given_up, 0u);
  EXPECT_EQ(counts.all, 5u);
  EXPECT_THAT(Next(), IsEmpty());
  EXPECT_THAT(queue_.Blocked(10, now_), IsEmpty());
  queue_.Done("running");  // it has ended in the meantime
  Add("ready", {"a", "b"});
  EXPECT_THAT(Next(), ElementsAre("ready"));
  queue_.LoseAll(now_);
  counts = queue_.counts();
  EXPECT_EQ(counts.there, 0u);
  EXPECT_EQ(counts.waiting, 4u);
  EXPECT_EQ(counts.all_bytes, 500u);
  EXPECT_EQ(Next().size(), 4u);
}

}  // namespace
}  // namespace ecpipe::recovery_queue_test
