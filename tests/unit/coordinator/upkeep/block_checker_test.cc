// SPDX-License-Identifier: Apache-2.0
#include "coordinator/upkeep/block_checker.h"

#include <gtest/gtest.h>

#include "unit/coordinator/fakes.h"

namespace ecpipe::block_checker_test {
namespace {

using Verdict = CorruptBlocks::Verdict;

const std::string kSha(64, 'a');
const std::string kOther(64, 'b');

TEST(BlockChecker, ItsHelperOrItsSha256Decides) {
  const auto judge = [](const absl::StatusOr<WholeBlock>& answer,
                        const std::optional<WholeBlock>& expected) {
    return BlockChecker::Judge(answer, expected).verdict;
  };
  const WholeBlock whole{1000, kSha, false};
  const WholeBlock checked{1000, kSha, true};
  EXPECT_EQ(judge(absl::DataLossError("flipped"), std::nullopt), Verdict::kCorrupt);
  EXPECT_EQ(judge(absl::UnavailableError("silent"), std::nullopt), Verdict::kAskAgain);
  EXPECT_EQ(judge(absl::NotFoundError("gone"), whole), Verdict::kAskAgain);
  EXPECT_EQ(judge(checked, std::nullopt), Verdict::kSound);
  EXPECT_EQ(judge(whole, std::nullopt), Verdict::kUndecided);
  EXPECT_EQ(judge(whole, WholeBlock{1000, "", false}), Verdict::kUndecided);
  EXPECT_EQ(judge(whole, WholeBlock{1000, kSha, false}), Verdict::kSound);
  EXPECT_EQ(judge(whole, WholeBlock{1001, "", false}), Verdict::kCorrupt);
  EXPECT_EQ(judge(checked, WholeBlock{1000, kOther, false}), Verdict::kCorrupt)
      << "its checksums were made of wrong bytes";
}

class Checks : public ::testing::Test {
 protected:
  void SetUp() override {
    for (BlockPlace& place : catalog_.stripes["s1000"].blocks) place.sha256 = kSha;
    ASSERT_TRUE(nodes_.Register(FakeNode("n2")).ok());
  }

  FakeClock clock_;
  MemoryCatalog catalog_;
  CorruptBlocks corrupt_;
  NodeRegistry nodes_{&clock_, std::chrono::seconds(5), {}, ""};
  absl::StatusOr<WholeBlock> answer_ = WholeBlock{1000, kSha, false};
  int asked_ = 0;
  BlockChecker checker_{
      &corrupt_, &nodes_, &catalog_, &clock_,
      [this](const HelperAddress& helper, const std::string& block_id, const std::stop_token&) {
        EXPECT_EQ(helper.control_address, "n2:1");
        EXPECT_EQ(block_id, "b2");
        ++asked_;
        return answer_;
      }};
};

TEST_F(Checks, AnyBlockOfTheCatalogCanBeChecked) {
  EXPECT_FALSE(checker_.CheckNext()) << "nobody has a doubt";
  EXPECT_TRUE(absl::IsNotFound(checker_.CheckSoon("stranger")));
  ASSERT_TRUE(checker_.CheckSoon("b2").ok());
  EXPECT_FALSE(corrupt_.Suspicion("b2", "n2").empty());
  EXPECT_TRUE(checker_.CheckNext());
  EXPECT_TRUE(corrupt_.All().empty());
  answer_ = WholeBlock{1000, kOther, true};
  ASSERT_TRUE(checker_.CheckSoon("b2").ok());
  EXPECT_TRUE(checker_.CheckNext());
  EXPECT_FALSE(corrupt_.Reason("b2", "n2").empty());
  EXPECT_EQ(asked_, 2);
}

TEST_F(Checks, WhatWasPutRightByOtherMeansIsSoundAgain) {
  corrupt_.Add({"b2", "n2", "flipped", 1});
  EXPECT_FALSE(checker_.CheckNext()) << "its helper has spoken";
  ASSERT_TRUE(checker_.CheckSoon("b2").ok());
  EXPECT_TRUE(checker_.CheckNext());
  EXPECT_TRUE(corrupt_.All().empty());
}

TEST_F(Checks, ADeadHelperIsAskedWhenItIsBack) {
  clock_.Advance(std::chrono::seconds(6));
  ASSERT_TRUE(checker_.CheckSoon("b2").ok());
  EXPECT_TRUE(checker_.CheckNext());
  EXPECT_EQ(asked_, 0);
  EXPECT_FALSE(checker_.CheckNext());
  ASSERT_TRUE(nodes_.Register(FakeNode("n2")).ok());
  clock_.Advance(CorruptBlocks::kCheckAgain);
  ASSERT_TRUE(nodes_.Register(FakeNode("n2")).ok());
  EXPECT_TRUE(checker_.CheckNext());
  EXPECT_EQ(asked_, 1);
  EXPECT_TRUE(corrupt_.All().empty());
}

}  // namespace
}  // namespace ecpipe::block_checker_test
