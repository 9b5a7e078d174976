// SPDX-License-Identifier: Apache-2.0
#include "requestor/files/block_verifier.h"

#include <gmock/gmock.h>

#include "base/bytes/sha256.h"
#include "unit/requestor/files/coding_fixture.h"

namespace ecpipe::block_verifier_test {
namespace {

using ::testing::HasSubstr;

class BlockVerifier : public CodingFixture {
 protected:
  void SetUp() override { manifest_ = Encoded(Noise(380), Options("rs(5,3)", 100)); }

  VerifyReport Report() const {
    const auto report = VerifyBlocks(manifest_, scratch_.File("out"));
    EXPECT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->stripes.size(), 2u);
    return *report;
  }
  const VerifiedBlock& BlockOf(const VerifyReport& report, size_t block) const {
    return report.stripes[0].blocks[block];
  }

  Manifest manifest_;
};

TEST_F(BlockVerifier, FindsNothingWrongWithFreshBlocks) {
  const VerifyReport report = Report();
  EXPECT_TRUE(report.ok());
  for (const VerifiedStripe& stripe : report.stripes) {
    EXPECT_EQ(stripe.parity, ParityState::kMatches);
    ASSERT_EQ(stripe.blocks.size(), 5u);
    for (const VerifiedBlock& block : stripe.blocks) EXPECT_EQ(block.state, BlockState::kOk);
  }
  EXPECT_EQ(BlockOf(report, 3).block_id, "x-s00000-b03");
}

TEST_F(BlockVerifier, TellsEachKindOfDamage) {
  std::filesystem::remove(Block(manifest_, 0, 0));
  Put(Block(manifest_, 0, 1), "short");
  Flip(Block(manifest_, 0, 4), 99);
  const VerifyReport report = Report();
  EXPECT_FALSE(report.ok());
  EXPECT_EQ(BlockOf(report, 0).state, BlockState::kMissing);
  EXPECT_EQ(BlockOf(report, 1).state, BlockState::kWrongLength);
  EXPECT_THAT(BlockOf(report, 1).detail, HasSubstr("has 5 bytes instead of 100"));
  EXPECT_EQ(BlockOf(report, 2).state, BlockState::kOk);
  EXPECT_EQ(BlockOf(report, 4).state, BlockState::kWrongChecksum);
  EXPECT_EQ(report.stripes[0].parity, ParityState::kUnknown) << "data is missing";
  EXPECT_EQ(report.stripes[1].parity, ParityState::kMatches);
}

TEST_F(BlockVerifier, ADirectoryIsNoBlock) {
  std::filesystem::remove(Block(manifest_, 0, 0));
  std::filesystem::create_directory(Block(manifest_, 0, 0));
  EXPECT_EQ(BlockOf(Report(), 0).state, BlockState::kUnreadable);
}

TEST_F(BlockVerifier, DamagedDataOrParityDiffers) {
  Flip(Block(manifest_, 0, 1), 50);
  Flip(Block(manifest_, 1, 4), 50);
  const VerifyReport report = Report();
  EXPECT_EQ(report.stripes[0].parity, ParityState::kDiffers);
  EXPECT_EQ(report.stripes[1].parity, ParityState::kDiffers);
}

// A block that was wrong already when its checksum was taken.
TEST_F(BlockVerifier, ParityDoesNotRestOnChecksums) {
  Flip(Block(manifest_, 0, 3), 50);
  const Bytes content = Content(Block(manifest_, 0, 3));
  Sha256 sha256;
  sha256.Update({reinterpret_cast<const uint8_t*>(content.data()), content.size()});
  manifest_.stripes[0].blocks[3].sha256 = sha256.FinishHex();
  const VerifyReport report = Report();
  EXPECT_EQ(BlockOf(report, 3).state, BlockState::kOk);
  EXPECT_EQ(report.stripes[0].parity, ParityState::kDiffers);
  EXPECT_FALSE(report.ok());
}

TEST_F(BlockVerifier, SomeParityIsEnoughToCompare) {
  std::filesystem::remove(Block(manifest_, 0, 3));
  EXPECT_EQ(Report().stripes[0].parity, ParityState::kMatches);
  std::filesystem::remove(Block(manifest_, 0, 4));
  const VerifyReport report = Report();
  EXPECT_EQ(report.stripes[0].parity, ParityState::kUnknown);
  EXPECT_FALSE(report.ok());
}

TEST_F(BlockVerifier, TellsOfProgressInBytesOfAllBlocks) {
  std::filesystem::remove(Block(manifest_, 0, 3));
  Told told;
  EXPECT_TRUE(VerifyBlocks(manifest_, scratch_.File("out"), told.Callback()).ok());
  told.ExpectReached(manifest_.stripes.size() * manifest_.stripes[0].blocks.size() *
                     manifest_.block_bytes);
}

TEST_F(BlockVerifier, RefusesAManifestThatDoesNotHoldTogether) {
  manifest_.stripes[1].blocks[0].node = "..";
  EXPECT_TRUE(absl::IsInvalidArgument(VerifyBlocks(manifest_, scratch_.File("out")).status()));
}

TEST(VerifyNames, AreThoseOfTheDocumentation) {
  EXPECT_STREQ(BlockStateName(BlockState::kOk), "ok");
  EXPECT_STREQ(BlockStateName(BlockState::kMissing), "missing");
  EXPECT_STREQ(BlockStateName(BlockState::kWrongLength), "wrong length");
  EXPECT_STREQ(BlockStateName(BlockState::kWrongChecksum), "wrong checksum");
  EXPECT_STREQ(BlockStateName(BlockState::kUnreadable), "unreadable");
  EXPECT_STREQ(ParityStateName(ParityState::kMatches), "matches");
  EXPECT_STREQ(ParityStateName(ParityState::kDiffers), "differs");
  EXPECT_STREQ(ParityStateName(ParityState::kUnknown), "unknown");
}

}  // namespace
}  // namespace ecpipe::block_verifier_test
