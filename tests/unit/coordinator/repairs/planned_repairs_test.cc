// SPDX-License-Identifier: Apache-2.0
// What the planner makes of a request: its range, its hosts, and what it refuses.
#include "unit/coordinator/repairs/repairs_fixture.h"

namespace ecpipe::planned_repairs_test {
namespace {

class PlannedRepairs : public Repairs {
 protected:
  absl::Status Refusal(const RepairRequest& request) {
    return coordinator_.Explain(request).status();
  }
};

// Sub-blocks of b0 have 500 bytes in units of 10, so 20 bytes of the block are one unit of each.
TEST_F(PlannedRepairs, ARangeCoversWholeUnitsOfSubBlocks) {
  catalog_.stripes["s1000"].code = "rotated-rs(6,4,2,10)";
  const auto grid = [&](uint64_t offset, uint64_t bytes, uint32_t slice_bytes) {
    RepairRequest request = Request("b0");
    request.offset = offset;
    request.bytes = bytes;
    request.slice_bytes = slice_bytes;
    return coordinator_.Explain(request)->plan.grid;
  };
  EXPECT_EQ(grid(20, 20, 10), (SliceGrid{10, 10, 10}));
  EXPECT_EQ(grid(20, 21, 10), (SliceGrid{10, 20, 10}));
  EXPECT_EQ(grid(39, 1, 10), (SliceGrid{10, 10, 10}));
  EXPECT_EQ(grid(0, 1000, 29), (SliceGrid{0, 500, 20}));
  EXPECT_EQ(grid(0, 1000, 9), (SliceGrid{0, 500, 10})) << "a slice has one unit at least";
  RepairRequest request = Request("b0");
  request.slice_bytes = kMaxSliceBytes + 1;
  EXPECT_TRUE(absl::IsInvalidArgument(Refusal(request)));
}

TEST_F(PlannedRepairs, ARangeIsWithinItsBlock) {
  const auto refusal = [&](uint64_t offset, uint64_t bytes) {
    RepairRequest request = Request("b0");
    request.offset = offset;
    request.bytes = bytes;
    return Refusal(request);
  };
  EXPECT_TRUE(refusal(500, 500).ok());
  EXPECT_EQ(refusal(500, 501).message(),
            "the range of 501 bytes from byte 500 is not within the block's 1000 bytes");
  EXPECT_EQ(refusal(1000, 0).message(),
            "the range from byte 1000 is not within the block's 1000 bytes");
}

TEST_F(PlannedRepairs, WhatCannotBeRepairedIsNamed) {
  for (const char* node : {"n2", "n3", "n4"}) coordinator_.nodes().NoAnswer(node, "it hangs");
  catalog_.stripes["s1000"].code = "rs(6,5)";
  RepairRequest request = Request("b0");
  catalog_.stripes["s1000"].blocks[1].node = "";
  EXPECT_TRUE(Says(Refusal(request), "block b0 cannot be repaired now")) << Refusal(request);
  request.block_ids = {"b0", "b5"};
  EXPECT_TRUE(Says(Refusal(request), "blocks b0, b5 cannot be repaired now")) << Refusal(request);
}

TEST_F(PlannedRepairs, ADirectReadTakesTheBytesAsTheyAre) {
  const auto planned = coordinator_.Explain(Request("b5", "direct"));
  ASSERT_TRUE(planned.ok()) << planned.status();
  EXPECT_EQ(planned->plan.lanes[0].hops[0].coefficients, std::vector<uint8_t>{1});
}

TEST_F(PlannedRepairs, AsManyBlocksAsAPlanHasRows) {
  RepairRequest request;
  request.block_ids.assign(kMaxRows, "nowhere");
  EXPECT_TRUE(absl::IsNotFound(Refusal(request))) << Refusal(request);
  request.block_ids.emplace_back("nowhere");
  EXPECT_TRUE(Says(Refusal(request), "from 1 to 64 blocks, not 65")) << Refusal(request);
}

TEST_F(PlannedRepairs, WhatEarlierAttemptsSawOfLinksCounts) {
  RepairRequest request = Request("b0", "rp-all");
  const double seconds = coordinator_.Explain(request)->cost.seconds;
  for (int i = 1; i < 6; ++i) request.seen.up["n" + std::to_string(i)] = 100;
  EXPECT_GT(coordinator_.Explain(request)->cost.seconds, seconds * 1000);
}

TEST_F(PlannedRepairs, ParityVerifiesWithSchemesThatChooseHelpers) {
  RepairRequest request = Request("b0", "rp-all");
  EXPECT_GT(coordinator_.Explain(request)->plan.lanes.size(), 1u);
  request.verify = Verification::kParity;
  const auto planned = coordinator_.Explain(request);
  ASSERT_TRUE(planned.ok()) << planned.status();
  for (const PlanLane& lane : planned->plan.lanes) {
    EXPECT_EQ(lane.hops[0].rows.size(), 2u) << "of the block, and of the check";
  }
}

TEST(RacksOfRepairs, HaveLinksOfTheirOwn) {
  MemoryCatalog catalog;
  MemoryJournal journal;
  FakeHelpers helpers;
  FakeClock clock;
  FakeListener listener;
  RepairCoordinator::Options options;
  options.planner.rack_bytes_per_second = 1;
  RepairCoordinator coordinator(&catalog, &journal, &helpers, &clock, options, &listener);
  for (int i = 0; i < 6; ++i) {
    NodeRecord record = FakeNode("n" + std::to_string(i));
    record.rack = "r" + std::to_string(i);
    ASSERT_TRUE(coordinator.Register(record).ok());
  }
  RepairRequest request;
  request.block_ids = {"b0"};
  request.scheme = "rp";
  EXPECT_GE(coordinator.Explain(request)->cost.seconds, 1000) << "a block has 1,000 bytes";
}

class PlannedPaths : public PlannedRepairs {
 protected:
  using Lanes = std::vector<std::pair<std::vector<std::string>, uint32_t>>;

  // The nodes of each lane, without the requestor, and how many slices it has.
  Lanes LanesOf(const RepairRequest& request) {
    const auto planned = coordinator_.Explain(request);
    EXPECT_TRUE(planned.ok()) << planned.status();
    if (!planned.ok()) return {};
    Lanes lanes;
    for (const PlanLane& lane : planned->plan.lanes) {
      auto& [nodes, slices] = lanes.emplace_back();
      for (const PlanHop& hop : lane.hops) nodes.push_back(hop.node);
      nodes.pop_back();
      slices = lane.slices.count();
    }
    return lanes;
  }
  PlannedPaths() {
    request_.slice_bytes = 200;  // five slices
    request_.paths = {{"n5", "n1", "n2", "n3"}, {"n5", "n4", "n2", "n3"}};
  }

  RepairRequest request_ = Request("b0", "rp");
};

TEST_F(PlannedPaths, EachHasAnEqualPartOfTheSlices) {
  EXPECT_EQ(LanesOf(request_), (Lanes{{request_.paths[0], 3}, {request_.paths[1], 2}}));
}

TEST_F(PlannedPaths, AreNotTakenIfANodeCannotHelp) {
  catalog_.stripes["s1000"].blocks[4].node = "";
  EXPECT_EQ(LanesOf(request_).size(), 1u);
}

TEST_F(PlannedPaths, AreNotTakenIfTheyDoNotRebuildTheBlock) {
  request_.paths[1].pop_back();
  EXPECT_EQ(LanesOf(request_).size(), 1u) << "three are too few";
}

TEST_F(PlannedPaths, AreNotTakenWhereParityVerifies) {
  request_.verify = Verification::kParity;
  EXPECT_EQ(LanesOf(request_).size(), 1u);
}

TEST_F(PlannedPaths, NeedASliceEach) {
  request_.slice_bytes = 1000;
  EXPECT_EQ(LanesOf(request_).size(), 1u);
}

TEST_F(PlannedPaths, AreForOneScheme) {
  request_.scheme = "rp-cyclic";
  const Lanes lanes = LanesOf(request_);
  EXPECT_EQ(lanes.size(), 3u);
  request_.paths.clear();
  EXPECT_EQ(LanesOf(request_), lanes);
}

TEST(Verification, HasThreeNames) {
  EXPECT_EQ(*VerificationNamed("none"), Verification::kNone);
  EXPECT_EQ(*VerificationNamed("parity"), Verification::kParity);
  EXPECT_EQ(*VerificationNamed("locate"), Verification::kLocate);
}

}  // namespace
}  // namespace ecpipe::planned_repairs_test
