// SPDX-License-Identifier: Apache-2.0
#include "rpc/convert/repair_proto.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ecpipe::repair_proto_test {
namespace {

RepairGrant Sample() {
  RepairGrant grant;
  grant.repair_id = 7;
  grant.part.repair_id = 7;
  grant.part.attempt = 2;
  grant.part.grid = {0, 1000, 100};
  HopSpec& hop = grant.part.hops.emplace_back();
  hop.hop = 1;
  hop.slices = LaneSlices::Create({{0, 10, 1}}, 10).value();
  hop.rows = {0, 1};
  hop.stored_rows = {0, 1};
  hop.inputs.push_back({{7, 2, 0, 0, 0}, {}, "a:1", "n0", {0, 1}, {}});
  grant.scheme = "rp";
  grant.stripe_id = "s";
  grant.block_lengths = {1000, 800};
  grant.cost.loads = {{"n0", 1000, 0}};
  grant.cost.depth = 3;
  grant.checksum = ChecksumKind{ChecksumKind::Type::kCrc32, 512};
  grant.corrupt = {{4, "uuid-4"}};
  return grant;
}

v1::RepairTarget TwoBlocks() {
  v1::RepairTarget target;
  target.add_block_ids("a");
  target.add_block_ids("b");
  return target;
}

TEST(RepairProto, AGrantComesOverTheWireWhole) {
  RepairGrant sample = Sample();
  sample.stripe_digest = "of its bytes";
  v1::BeginRepairResponse proto;
  GrantToProto(sample, &proto);
  EXPECT_EQ(proto.block_bytes(), 800u) << "an older requestor takes the shortest";
  const absl::StatusOr<RepairGrant> got = GrantFromProto(proto, TwoBlocks());
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->repair_id, 7u);
  EXPECT_EQ(got->part.attempt, 2u);
  EXPECT_EQ(got->part.hops.size(), 1u);
  EXPECT_EQ(got->scheme, "rp");
  EXPECT_EQ(got->stripe_id, "s");
  EXPECT_EQ(got->stripe_digest, "of its bytes");
  v1::BeginRepairRequest::Resume resume;
  ResumeToProto({.failure = absl::AbortedError(""), .stripe_digest = "of its bytes"}, &resume);
  EXPECT_EQ(ResumeFromProto(resume).stripe_digest, "of its bytes");
  EXPECT_EQ(got->block_lengths, sample.block_lengths);
  ASSERT_EQ(got->cost.loads.size(), 1u);
  EXPECT_EQ(got->cost.loads[0].node, "n0");
  EXPECT_EQ(got->cost.depth, 3);
  EXPECT_EQ(got->checksum, sample.checksum);
  EXPECT_EQ(got->corrupt, sample.corrupt);
}

TEST(RepairProto, AVerdictComesOverTheWireWhole) {
  v1::FinishRepairRequest proto;
  VerdictToProto({absl::AbortedError("enough"), 1000, 0.25}, &proto);
  const RepairVerdict verdict = VerdictFromProto(proto);
  EXPECT_EQ(verdict.status, absl::AbortedError("enough"));
  EXPECT_EQ(verdict.verified_bytes, 1000u);
  EXPECT_EQ(verdict.first_byte_seconds, 0.25);
  proto.Clear();
  VerdictToProto({absl::OkStatus(), 1000}, &proto);
  EXPECT_EQ(VerdictFromProto(proto).first_byte_seconds, std::nullopt);
  for (const double impossible : {-0.1, 1e9, std::nan(""), HUGE_VAL}) {
    proto.set_first_byte_seconds(impossible);
    EXPECT_EQ(VerdictFromProto(proto).first_byte_seconds, std::nullopt) << impossible;
  }
}

TEST(RepairProto, OnlyAGrantOfBlocksThatNodesStoreHasNoPart) {
  RepairGrant sample = Sample();
  sample.part = {};
  v1::BeginRepairResponse proto;
  GrantToProto(sample, &proto);
  EXPECT_FALSE(proto.has_part());
  v1::RepairTarget target = TwoBlocks();
  EXPECT_TRUE(absl::IsInvalidArgument(GrantFromProto(proto, target).status()));
  target.add_hosts("n7");
  target.add_hosts("n8");
  const absl::StatusOr<RepairGrant> got = GrantFromProto(proto, target);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_TRUE(got->part.hops.empty());
}

TEST(RepairProto, AnOlderCoordinatorTellsTheShortestLengthOnly) {
  v1::BeginRepairResponse proto;
  GrantToProto(Sample(), &proto);
  proto.clear_block_lengths();
  v1::RepairTarget target = TwoBlocks();
  EXPECT_TRUE(absl::IsFailedPrecondition(GrantFromProto(proto, target).status()));
  target.mutable_facts();
  EXPECT_EQ(GrantFromProto(proto, target)->block_lengths, (std::vector<uint64_t>{800, 800}));
  target = v1::RepairTarget();
  target.add_block_ids("a");
  EXPECT_EQ(GrantFromProto(proto, target)->block_lengths, std::vector<uint64_t>{800});
}

}  // namespace
}  // namespace ecpipe::repair_proto_test
