// SPDX-License-Identifier: Apache-2.0
#include "requestor/catalog/block_verification.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace ecpipe::block_verification_test {
namespace {

using ::testing::SizeIs;

// Answers for so many blocks a call, and never for those that nobody answers for.
class FewAtATime : public CatalogApi {
 public:
  absl::StatusOr<std::vector<BlockCheck>> CheckBlocks(
      const std::vector<std::string>& block_ids) override {
    EXPECT_LE(block_ids.size(), kMaxBlocksInCheck);
    ++calls;
    std::vector<BlockCheck> checks;
    size_t left = per_call;
    for (const std::string& block_id : block_ids) {
      BlockCheck check{block_id, "n", BlockVerdict::kNotAsked, ""};
      const auto known = verdicts.find(block_id);
      const BlockVerdict verdict = known == verdicts.end() ? BlockVerdict::kThere : known->second;
      if (left > 0 && verdict != BlockVerdict::kNotAsked) {
        check.verdict = verdict;
        --left;
      }
      checks.push_back(check);
    }
    return checks;
  }

  absl::StatusOr<std::vector<std::string>> NodeBlocks(const std::string&) override {
    return None();
  }
  absl::StatusOr<PutCounts> TryPut(const std::vector<Stripe>&) override { return None(); }
  absl::Status RemoveStripes(const std::vector<std::string>&) override { return None(); }
  absl::StatusOr<ExtraCopyPage> ExtraCopies(const std::string&, const std::string&) override {
    return None();
  }
  absl::StatusOr<std::vector<ExtraCopyView>> RemoveExtraCopies(
      const std::string&, const std::vector<ExtraCopyView>&) override {
    return None();
  }
  absl::Status ForgetNode(const std::string&, bool) override { return None(); }
  absl::StatusOr<uint64_t> DrainNode(const RecoveryRequest&) override { return None(); }
  absl::StatusOr<uint64_t> MaintainNode(const std::string&, double) override { return None(); }
  absl::Status ReadmitNode(const std::string&) override { return None(); }
  Effects WouldDrain(const RecoveryRequest&) override { return None(); }
  Effects WouldMaintain(const std::string&, double) override { return None(); }
  Effects WouldReadmit(const std::string&) override { return None(); }
  Effects WouldRecover(const RecoveryRequest&, IfLive) override { return None(); }
  Effects WouldChange(uint64_t, RecoveryChange) override { return None(); }
  Effects WouldSetLimits(const LimitsChange&) override { return None(); }
  Effects WouldClear(const std::string&) override { return None(); }
  Effects WouldRemove(const std::vector<std::string>&) override { return None(); }
  Effects WouldForget(const std::string&, bool) override { return None(); }

  size_t per_call = kMaxBlocksInCheck;
  std::map<std::string, BlockVerdict> verdicts;
  int calls = 0;

 private:
  static absl::Status None() { return absl::UnimplementedError("not faked"); }
};

std::vector<std::string> Blocks(size_t count) {
  std::vector<std::string> blocks;
  for (size_t i = 0; i < count; ++i) blocks.push_back("b" + std::to_string(i));
  return blocks;
}

TEST(BlockVerification, AsksAgainForWhatHadNoAnswer) {
  FewAtATime catalog;
  catalog.per_call = 10;
  const Verification sum = SumOf(VerifyBlocks(&catalog, Blocks(35), {}).value());
  EXPECT_EQ(sum.Text(), "35 of 35 blocks verified");
  EXPECT_THAT(sum.wrong, SizeIs(0));
  EXPECT_EQ(catalog.calls, 4);
}

TEST(BlockVerification, EndsWhenNobodyAnswers) {
  FewAtATime catalog;
  catalog.verdicts = {{"b1", BlockVerdict::kNotAsked}, {"b3", BlockVerdict::kMissing}};
  int rests = 0;
  const Patience patience{.tries = 3, .rest = [&] { ++rests; }};
  const Verification sum = SumOf(VerifyBlocks(&catalog, Blocks(4), patience).value());
  EXPECT_EQ(sum.verified, 2u);
  ASSERT_THAT(sum.wrong, SizeIs(2));
  EXPECT_EQ(sum.wrong[0].block_id, "b1");
  EXPECT_EQ(sum.wrong[1].verdict, BlockVerdict::kMissing);
  EXPECT_EQ(catalog.calls, 4) << "one call brought answers, three did not";
  EXPECT_EQ(rests, 2);
}

TEST(BlockVerification, AsksForManyInSeveralCalls) {
  FewAtATime catalog;
  EXPECT_EQ(SumOf(VerifyBlocks(&catalog, Blocks(2500), {}).value()).verified, 2500u);
  EXPECT_EQ(catalog.calls, 3);
  EXPECT_THAT(VerifyBlocks(&catalog, {}, {}).value(), SizeIs(0));
}

}  // namespace
}  // namespace ecpipe::block_verification_test
