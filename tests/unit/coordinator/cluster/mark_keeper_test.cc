// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cluster/mark_keeper.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ecpipe::mark_keeper_test {
namespace {

// A disk that is full until it is not.
class FullStore : public CorruptBlockStore {
 public:
  absl::Status Keep(const CorruptBlock& block) override {
    MutexLock lock(&mutex);
    ++calls;
    if (full) return absl::ResourceExhaustedError("no space");
    kept[block.block_id] = block.reason;
    changed.NotifyAll();
    return absl::OkStatus();
  }
  absl::Status Forget(const std::string& block_id, const std::string&) override {
    MutexLock lock(&mutex);
    ++calls;
    if (full) return absl::ResourceExhaustedError("no space");
    kept.erase(block_id);
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<CorruptBlock>> Load() override { return std::vector<CorruptBlock>{}; }

  Mutex mutex;
  CondVar changed;
  bool full = true;
  int calls = 0;
  std::map<std::string, std::string> kept;
};

class MarkKeeperTest : public testing::Test {
 protected:
  FakeClock clock_;
  FullStore store_;
  std::optional<MarkKeeper> keeper_{std::in_place, &store_, &clock_};
};

TEST_F(MarkKeeperTest, WhatTheStoreRefusesIsTriedAgainLaterEachTime) {
  store_.kept["repaired"] = "flipped";
  {
    CorruptBlocks blocks(&*keeper_);
    blocks.Add({"corrupt", "n1", "flipped", 5});
    blocks.Add({"repaired", "n1", "flipped", 5});
    blocks.Forget("repaired");
  }
  EXPECT_EQ(keeper_->counts().failures, 3u);
  EXPECT_EQ(keeper_->counts().unkept, 2u);
  const int before = store_.calls;
  keeper_->TryAgain();
  EXPECT_EQ(store_.calls, before) << "too soon";
  Duration pause = MarkKeeper::kFirstPause;
  for (int i = 1; i <= 10; ++i) {
    clock_.Advance(pause - std::chrono::milliseconds(1));
    keeper_->TryAgain();
    EXPECT_EQ(store_.calls, before + i - 1) << "too soon";
    clock_.Advance(std::chrono::milliseconds(1));
    keeper_->TryAgain();
    EXPECT_EQ(store_.calls, before + i) << "one try, then a pause";
    pause = std::min(2 * pause, MarkKeeper::kLongestPause);
  }
  store_.full = false;
  clock_.Advance(pause);
  keeper_->TryAgain();
  EXPECT_EQ(store_.kept, (std::map<std::string, std::string>{{"corrupt", "flipped"}}));
  EXPECT_EQ(keeper_->counts().unkept, 0u);
}

TEST_F(MarkKeeperTest, TheLatestChangeIsTheOneThatIsKept) {
  EXPECT_FALSE(keeper_->Keep({"b", "n1", "first", 5}).ok());
  store_.full = false;
  EXPECT_TRUE(keeper_->Keep({"b", "n1", "second", 6}).ok());
  clock_.Advance(MarkKeeper::kLongestPause);
  keeper_->TryAgain();
  EXPECT_EQ(store_.kept.at("b"), "second");
}

TEST_F(MarkKeeperTest, TheEndTriesALastTime) {
  EXPECT_FALSE(keeper_->Keep({"b", "n1", "flipped", 5}).ok());
  store_.full = false;
  keeper_.reset();
  EXPECT_EQ(store_.kept.at("b"), "flipped");
}

TEST_F(MarkKeeperTest, IsBoundedAndDropsNoMarkThatIsToBeKept) {
  EXPECT_FALSE(keeper_->Keep({"a", "n1", "flipped", 5}).ok());
  for (size_t i = 0; i < MarkKeeper::kMostUnkept; ++i) {
    EXPECT_FALSE(keeper_->Forget("b" + std::to_string(i), "n1").ok());
  }
  EXPECT_EQ(keeper_->counts().unkept, MarkKeeper::kMostUnkept);
  store_.full = false;
  keeper_.reset();
  EXPECT_EQ(store_.kept.count("a"), 1u);
}

TEST_F(MarkKeeperTest, ItsThreadTriesAgain) {
  MarkKeeper keeper(&store_, &Clock::System());
  keeper.Start();
  EXPECT_FALSE(keeper.Keep({"b", "n1", "flipped", 5}).ok());
  const TimePoint give_up = Clock::System().Now() + std::chrono::seconds(60);
  MutexLock lock(&store_.mutex);
  store_.full = false;
  while (store_.kept.empty() && store_.changed.WaitUntil(lock, give_up)) {
  }
  EXPECT_EQ(store_.kept.size(), 1u);
}

}  // namespace
}  // namespace ecpipe::mark_keeper_test
