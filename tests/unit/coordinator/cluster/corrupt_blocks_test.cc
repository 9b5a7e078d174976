// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cluster/corrupt_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "unit/coordinator/repairs/repairs_fixture.h"

namespace ecpipe {
namespace {

TEST(CorruptBlocks, KnowsWhatWasAddedUntilItIsForgotten) {
  CorruptBlocks blocks;
  EXPECT_TRUE(blocks.Add({"b1", "n1", "flipped", 5}));
  EXPECT_FALSE(blocks.Add({"b1", "n1", "once more", 6}));
  EXPECT_EQ(blocks.Reason("b1", "n1"), "flipped");
  EXPECT_EQ(blocks.Reason("b1", "n2"), "") << "another copy";
  EXPECT_EQ(blocks.Reason("b2", "n1"), "");
  EXPECT_TRUE(blocks.Add({"b1", "n2", "there, too", 7}));
  ASSERT_EQ(blocks.All().size(), 1u);
  EXPECT_EQ(blocks.All()[0].node, "n2");
  EXPECT_EQ(blocks.found(), 2u);
  blocks.Forget("b1");
  blocks.Forget("b1");
  EXPECT_TRUE(blocks.All().empty());
  EXPECT_EQ(blocks.Reason("b1", "n2"), "");
}

TEST(CorruptBlocks, AreBounded) {
  CorruptBlocks blocks;
  for (size_t i = 0; i <= CorruptBlocks::kMost; ++i) {
    blocks.Add({"b" + std::to_string(i), "n", std::string(10'000, 'x'), 0});
  }
  EXPECT_EQ(blocks.All().size(), CorruptBlocks::kMost);
  EXPECT_EQ(blocks.Reason("b0", "n"), "") << "the oldest went";
  EXPECT_EQ(blocks.Reason("b1", "n").size(), CorruptBlocks::kMaxReasonBytes);
}

class CorruptReports : public Repairs {
 protected:
  std::vector<std::string> Helpers() {
    std::vector<std::string> nodes;
    for (const auto& handout : helpers_.last) nodes.push_back(handout.helper.node);
    return nodes;
  }
  bool Helps(const std::string& node) {
    const std::vector<std::string> nodes = Helpers();
    return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
  }
};

TEST_F(CorruptReports, ACorruptBlockIsNoSourceUntilItIsStoredAnew) {
  coordinator_.ReportCorrupt("n2", 1, "b2", "does not match");
  ASSERT_TRUE(coordinator_.BeginRepair(Request("b0")).ok());
  EXPECT_FALSE(Helps("n2"));
  coordinator_.ReportCorrupt("n3", 1, "b3", "does not match either");
  const absl::Status status = coordinator_.BeginRepair(Request("b0")).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_TRUE(Says(status, "b2 on n2: it is corrupt: does not match")) << status;
  EXPECT_TRUE(Says(coordinator_.BeginRepair(Request("b2", "direct")).status(), "it is corrupt"));
}

TEST_F(CorruptReports, ARepairInPlaceDecodesFromTheOthersAndClearsIt) {
  coordinator_.ReportCorrupt("n2", 1, "b2", "does not match");
  RepairRequest request = Request("b2");
  request.hosts = {"n2"};
  const auto grant = coordinator_.BeginRepair(request);
  ASSERT_TRUE(grant.ok()) << grant.status();
  for (const auto& handout : helpers_.last) {
    for (const HopSpec& hop : handout.part.hops) {
      EXPECT_TRUE(!hop.block || hop.block->block_id != "b2");
    }
  }
  for (const std::string& node : Helpers()) {
    coordinator_.ReportPart(node, grant->repair_id, 0, absl::OkStatus());
  }
  EXPECT_EQ(journal_.records.at(grant->repair_id).state, RepairState::kDone);
  EXPECT_TRUE(coordinator_.corrupt().All().empty());
}

TEST_F(CorruptReports, OnlyThoseWhoCanKnowAreHeard) {
  coordinator_.ReportCorrupt("n1", 1, "b2", "says a stranger");
  coordinator_.ReportCorrupt("", 1, "b2", "says nobody's requestor");
  coordinator_.ReportCorrupt("n2", 1, "no-such-block", "");
  EXPECT_TRUE(coordinator_.corrupt().All().empty());
  const auto grant = coordinator_.BeginRepair(Request("b0"));
  coordinator_.ReportCorrupt("n1", grant->repair_id, "b2", "says a helper that sees no rows");
  EXPECT_TRUE(coordinator_.corrupt().All().empty());
  coordinator_.ReportCorrupt("", grant->repair_id, "b2", "parity");
  ASSERT_EQ(coordinator_.corrupt().All().size(), 1u);
  EXPECT_EQ(coordinator_.corrupt().All()[0].node, "n2");
}

TEST_F(CorruptReports, VerificationReadsMoreSurvivorsOrSaysWhyItCannot) {
  RepairRequest request = Request("b0");
  request.verify = Verification::kParity;
  const auto grant = coordinator_.BeginRepair(request);
  ASSERT_TRUE(grant.ok()) << grant.status();
  EXPECT_EQ(helpers_.last.size(), 5u);
  EXPECT_EQ(grant->part.check.rows, 1u);
  EXPECT_EQ(grant->part.check.sources.size(), 5u);
  EXPECT_EQ(grant->part.hops[0].stored_rows.size(), 2u);
  request.verify = Verification::kLocate;
  const absl::Status two = coordinator_.BeginRepair(request).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(two)) << two;
  EXPECT_TRUE(Says(two, "needs 6 survivors, but only 5 can be used")) << two;
  request.scheme = "direct";
  EXPECT_TRUE(absl::IsInvalidArgument(coordinator_.BeginRepair(request).status()));
  EXPECT_FALSE(VerificationNamed("maybe").ok());
}

}  // namespace
}  // namespace ecpipe
