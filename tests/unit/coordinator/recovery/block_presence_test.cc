// SPDX-License-Identifier: Apache-2.0
#include "coordinator/recovery/block_presence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/coordinator/fakes.h"

namespace ecpipe::block_presence_test {
namespace {

using ::testing::HasSubstr;

class BlockPresenceTest : public testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 6; ++i) {
      if (i == 5) continue;
      ASSERT_TRUE(nodes_.Register(FakeNode("n" + std::to_string(i))).ok());
    }
  }

  CheckedBlock Check(const std::string& block_id) {
    return CheckPresence({block_id}, check_).at(0);
  }

  FakeClock clock_;
  MemoryCatalog catalog_;
  NodeRegistry nodes_{&clock_, std::chrono::seconds(5), {}, ""};
  CorruptBlocks corrupt_;
  FakeHelpers helpers_;
  const PresenceCheck check_{&catalog_, &nodes_, &corrupt_,
                             &helpers_, &clock_, std::chrono::seconds(1)};
};

TEST_F(BlockPresenceTest, EachBlockHasItsAnswer) {
  helpers_.missing.emplace("b0", absl::NotFoundError("no root has b0"));
  helpers_.missing.emplace("b1", uint64_t{999});
  helpers_.missing.emplace("b2", absl::PermissionDeniedError("not a regular file"));
  helpers_.down.insert("n4");
  corrupt_.Add({.block_id = "b3", .node = "n3", .reason = "its checksum", .found_unix_ms = 1});
  const std::vector<CheckedBlock> checked =
      CheckPresence({"b5", "b4", "b3", "b2", "b1", "b0", "stranger"}, check_);
  ASSERT_EQ(checked.size(), 7u);
  EXPECT_EQ(checked[0].presence, Presence::kNotAsked);
  EXPECT_THAT(checked[0].detail, HasSubstr("not registered"));
  EXPECT_EQ(checked[1].presence, Presence::kNotAsked);
  EXPECT_THAT(checked[1].detail, HasSubstr("refused"));
  EXPECT_EQ(checked[2].presence, Presence::kCorrupt);
  EXPECT_EQ(checked[2].detail, "its checksum");
  EXPECT_EQ(checked[3].presence, Presence::kUnreadable);
  EXPECT_EQ(checked[4].presence, Presence::kWrongLength);
  EXPECT_THAT(checked[4].detail, HasSubstr("999 bytes instead of 1000"));
  EXPECT_EQ(checked[5].presence, Presence::kMissing);
  EXPECT_EQ(checked[6].presence, Presence::kUnknown);
  EXPECT_EQ(checked[4].node, "n1");
  EXPECT_EQ(checked[4].block_id, "b1");
}

TEST_F(BlockPresenceTest, AnotherBlockOfItsNameIsNotTheBlock) {
  for (BlockPlace& place : catalog_.stripes["s1000"].blocks) place.sha256 = std::string(64, 'a');
  helpers_.stored_sha256 = {{"b0", std::string(64, 'a')}, {"b1", std::string(64, 'b')}};
  EXPECT_EQ(Check("b0").presence, Presence::kThere);
  EXPECT_EQ(Check("b2").presence, Presence::kThere) << "its store does not say";
  EXPECT_TRUE(corrupt_.All().empty());
  const CheckedBlock stale = Check("b1");
  EXPECT_EQ(stale.presence, Presence::kCorrupt);
  EXPECT_THAT(stale.detail, HasSubstr("it was stored with SHA-256 bbb"));
  EXPECT_THAT(corrupt_.Suspicion("b1", "n1"), HasSubstr("another one than the catalog has"));
  EXPECT_TRUE(corrupt_.NextCheck(clock_.Now())) << "it is looked at";
}

TEST_F(BlockPresenceTest, ABlockThatIsThere) {
  EXPECT_EQ(Check("b1").presence, Presence::kThere);
  EXPECT_EQ(Check("b1").detail, "");
}

TEST_F(BlockPresenceTest, ADeadNodeIsNotAsked) {
  clock_.Advance(std::chrono::seconds(6));
  EXPECT_EQ(Check("b1").presence, Presence::kNotAsked);
  EXPECT_THAT(Check("b1").detail, HasSubstr("dead"));
}

}  // namespace
}  // namespace ecpipe::block_presence_test
