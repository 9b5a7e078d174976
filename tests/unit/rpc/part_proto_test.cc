// SPDX-License-Identifier: Apache-2.0
#include "rpc/convert/part_proto.h"

#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <functional>

namespace ecpipe::part_proto_test {
namespace {

using google::protobuf::util::MessageDifferencer;

EdgeToken Token(uint8_t first) {
  EdgeToken token{};
  for (size_t i = 0; i < token.size(); ++i) token[i] = static_cast<uint8_t>(first + i);
  return token;
}

// Two hops that between them use every field: a helper with a block, partial sums and a raw input,
// and a requestor.
RepairPart Sample() {
  RepairPart part;
  part.repair_id = 0xfedcba9876543210;
  part.attempt = 3;
  part.grid = {100, 1000, 64};
  part.transport = TransportKind::kRedis;
  part.serial = true;
  part.hops.reserve(2);
  HopSpec& helper = part.hops.emplace_back();
  helper.lane = 1;
  helper.hop = 2;
  helper.slices = LaneSlices::Create({{0, 4, 2}, {8, 3, 1}}, part.grid.slice_count()).value();
  helper.rows = {0, 5};
  helper.block = LocalBlock{"blk_1", 4096, {0, 255}};
  helper.block->sha256 = std::string(64, '5');
  helper.inputs.push_back({{part.repair_id, 3, 1, 0, 0}, Token(1), "a:1", "n0", {0, 5}, {}});
  helper.inputs.push_back({{part.repair_id, 3, 1, 1, 7}, Token(2), "b:2", "n1", {0}, {9, 0}});
  helper.outputs.push_back({{part.repair_id, 3, 1, 2, 0}, Token(240), "n3", {0}});
  helper.outputs.push_back({{part.repair_id, 3, 1, 2, 1}, Token(4), "n4", {5}, true});
  HopSpec& requestor = part.hops.emplace_back();
  requestor.lane = 1;
  requestor.hop = 3;
  requestor.slices = helper.slices;
  requestor.rows = {5};
  requestor.inputs.push_back({{part.repair_id, 3, 1, 2, 2}, Token(9), "[::1]:3", "n2", {5}, {}});
  requestor.stored_rows = {5};
  part.sha256 = {std::string(64, 'a'), "", std::string(64, '7')};
  return part;
}

void ExpectSameHop(const HopSpec& got, const HopSpec& expected) {
  EXPECT_EQ(got.lane, expected.lane);
  EXPECT_EQ(got.hop, expected.hop);
  EXPECT_EQ(got.slices.runs(), expected.slices.runs());
  EXPECT_EQ(got.rows, expected.rows);
  EXPECT_EQ(got.stored_rows, expected.stored_rows);
  ASSERT_EQ(got.block.has_value(), expected.block.has_value());
  if (got.block) {
    EXPECT_EQ(got.block->block_id, expected.block->block_id);
    EXPECT_EQ(got.block->bytes, expected.block->bytes);
    EXPECT_EQ(got.block->coefficients, expected.block->coefficients);
    EXPECT_EQ(got.block->sub_blocks, expected.block->sub_blocks);
    EXPECT_EQ(got.block->sha256, expected.block->sha256);
  }
  ASSERT_EQ(got.inputs.size(), expected.inputs.size());
  for (size_t i = 0; i < got.inputs.size(); ++i) {
    EXPECT_EQ(got.inputs[i].edge, expected.inputs[i].edge);
    EXPECT_EQ(got.inputs[i].token, expected.inputs[i].token);
    EXPECT_EQ(got.inputs[i].address, expected.inputs[i].address);
    EXPECT_EQ(got.inputs[i].node, expected.inputs[i].node);
    EXPECT_EQ(got.inputs[i].rows, expected.inputs[i].rows);
    EXPECT_EQ(got.inputs[i].coefficients, expected.inputs[i].coefficients);
  }
  ASSERT_EQ(got.outputs.size(), expected.outputs.size());
  for (size_t i = 0; i < got.outputs.size(); ++i) {
    EXPECT_EQ(got.outputs[i].edge, expected.outputs[i].edge);
    EXPECT_EQ(got.outputs[i].token, expected.outputs[i].token);
    EXPECT_EQ(got.outputs[i].node, expected.outputs[i].node);
    EXPECT_EQ(got.outputs[i].rows, expected.outputs[i].rows);
    EXPECT_EQ(got.outputs[i].measured, expected.outputs[i].measured);
  }
}

TEST(PartProto, SurvivesTheWire) {
  const RepairPart part = Sample();
  v1::RepairPart proto;
  ASSERT_TRUE(proto.ParseFromString(PartToProto(part).SerializeAsString()));
  const absl::StatusOr<RepairPart> got = PartFromProto(proto);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->repair_id, part.repair_id);
  EXPECT_EQ(got->attempt, part.attempt);
  EXPECT_EQ(got->grid, part.grid);
  EXPECT_EQ(got->layout, part.layout);
  EXPECT_EQ(got->transport, part.transport);
  EXPECT_EQ(got->serial, part.serial);
  EXPECT_EQ(got->sha256, part.sha256);
  ASSERT_EQ(got->hops.size(), part.hops.size());
  for (size_t i = 0; i < part.hops.size(); ++i) ExpectSameHop(got->hops[i], part.hops[i]);
  EXPECT_TRUE(MessageDifferencer::Equals(PartToProto(*got), proto));
}

TEST(PartProto, ChecksumsThatCannotBeAreRefused) {
  for (const std::string& sha256 :
       {std::string(63, 'a'), std::string(64, 'A'), std::string(1, 0)}) {
    RepairPart part = Sample();
    part.sha256[1] = sha256;
    EXPECT_TRUE(absl::IsInvalidArgument(PartFromProto(PartToProto(part)).status())) << sha256;
    part = Sample();
    part.hops[0].block->sha256 = sha256;
    EXPECT_TRUE(absl::IsInvalidArgument(PartFromProto(PartToProto(part)).status())) << sha256;
  }
  RepairPart part = Sample();
  part.sha256.resize(kMaxRows + 1);
  EXPECT_TRUE(absl::IsInvalidArgument(PartFromProto(PartToProto(part)).status()));
}

// A requestor's part: one row of a block and two check rows.
TEST(PartProto, CheckRowsSurviveTheWire) {
  RepairPart part = Sample();
  HopSpec hop = part.hops[0];
  hop.block.reset();
  hop.outputs.clear();
  hop.rows = hop.stored_rows = {0, 1, 2};
  hop.inputs.resize(1);
  hop.inputs[0].rows = hop.rows;
  hop.inputs[0].coefficients.clear();
  part.hops = {hop};
  part.check.rows = 2;
  part.check.sources = {{.block_index = 0, .block_id = "b1", .node = "n1", .column = {1, 255}},
                        {.block_index = 0, .block_id = "b2", .node = "n2", .column = {7, 0}}};
  const absl::StatusOr<RepairPart> got = PartFromProto(PartToProto(part));
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->check, part.check);
  part.check.rows = 3;
  EXPECT_FALSE(PartFromProto(PartToProto(part)).ok());
}

// The helper of Sample() over a code with two sub-blocks in units of 8: its range ends at byte 1100
// of the 2048 of each.
RepairPart SubBlockSample() {
  RepairPart part = Sample();
  part.layout = {2, 8};
  part.hops[0].block->sub_blocks = {0, 1};
  part.hops[0].block->coefficients = {0, 255, 3, 0};
  part.hops[0].inputs[1].rows = {0, 1};
  part.hops[0].inputs[1].coefficients = {9, 0, 0, 9};
  return part;
}

TEST(PartProto, SubBlocksSurviveTheWire) {
  const RepairPart part = SubBlockSample();
  const absl::StatusOr<RepairPart> got = PartFromProto(PartToProto(part));
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->layout, part.layout);
  ExpectSameHop(got->hops[0], part.hops[0]);
}

TEST(PartProto, ABlockWithoutSubBlocksIsReadWhole) {
  v1::RepairPart proto = PartToProto(Sample());
  proto.clear_layout();
  proto.mutable_hops(0)->mutable_block()->clear_sub_blocks();
  const absl::StatusOr<RepairPart> got = PartFromProto(proto);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->layout, BlockLayout());
  EXPECT_EQ(got->hops[0].block->sub_blocks, std::vector<uint32_t>{0});
}

TEST(PartProto, BlocksOfSeveralRowsAreStoredWhole) {
  RepairPart part = SubBlockSample();
  part.hops.erase(part.hops.begin());
  part.grid = {0, 1000, 64};
  HopSpec& requestor = part.hops[0];
  requestor.rows = {4, 5};
  requestor.inputs[0].rows = {4, 5};
  requestor.stored_rows = {4, 5};
  part.stores = {{4, "blk_9", 2000}};
  const auto parsed = [&] { return PartFromProto(PartToProto(part)).status(); };
  EXPECT_TRUE(parsed().ok()) << parsed();
  part.stores = {{5, "blk_9", 2000}};
  EXPECT_TRUE(absl::IsInvalidArgument(parsed())) << "not its first row";
  part.stores = {{4, "blk_9", 1000}};
  EXPECT_TRUE(absl::IsInvalidArgument(parsed())) << "not the whole block";
  part.stores = {{4, "blk_9", 2001}};
  EXPECT_TRUE(absl::IsInvalidArgument(parsed())) << "no whole number of groups";
  part.stores = {{4, "blk_9", 2000}};
  requestor.stored_rows = {4};
  EXPECT_TRUE(absl::IsInvalidArgument(parsed())) << "a row is missing";
}

TEST(PartProto, AProbeStoresNothingAndGoesOverTcp) {
  RepairPart part = Sample();
  part.hops.erase(part.hops.begin());
  part.grid = {0, 1000, 64};
  part.probe = true;
  EXPECT_FALSE(PartFromProto(PartToProto(part)).ok());
  part.transport = TransportKind::kTcp;
  const absl::StatusOr<RepairPart> got = PartFromProto(PartToProto(part));
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_TRUE(got->probe);
  part.stores = {{5, "blk_9", 1000}};
  EXPECT_TRUE(absl::IsInvalidArgument(PartFromProto(PartToProto(part)).status()));
}

TEST(PartProto, StoredBlocksSurviveAndAreChecked) {
  RepairPart part = Sample();
  part.hops.erase(part.hops.begin());
  part.grid = {0, 1000, 64};
  part.stores = {{5, "blk_9", 1000}};
  const absl::StatusOr<RepairPart> got = PartFromProto(PartToProto(part));
  ASSERT_TRUE(got.ok()) << got.status();
  ASSERT_EQ(got->stores.size(), 1u);
  EXPECT_EQ(got->stores[0].row, 5);
  EXPECT_EQ(got->stores[0].block_id, "blk_9");
  EXPECT_EQ(got->stores[0].bytes, 1000u);
  const auto refused = [&](std::vector<StoredBlock> stores) {
    part.stores = std::move(stores);
    return absl::IsInvalidArgument(PartFromProto(PartToProto(part)).status());
  };
  EXPECT_TRUE(refused({{4, "blk_9", 1000}})) << "a row that does not end here";
  EXPECT_TRUE(refused({{5, "", 1000}}));
  EXPECT_TRUE(refused({{5, "blk_9", 1001}})) << "not the whole block";
  EXPECT_TRUE(refused({{5, "blk_9", 1000}, {5, "blk_8", 1000}}));
  EXPECT_TRUE(refused({{5, "blk_9", 1000}, {6, "blk_8", 1000}}));
  v1::RepairPart far = PartToProto(part);
  far.mutable_stores(0)->set_row(1u << 16);
  EXPECT_TRUE(absl::IsInvalidArgument(PartFromProto(far).status()));
}

TEST(PartProto, TransportsAreTakenOrNamed) {
  EXPECT_EQ(TransportFromProto(v1::TRANSPORT_UNSPECIFIED, TransportKind::kRedis).value(),
            TransportKind::kRedis);
  for (const TransportKind kind : {TransportKind::kTcp, TransportKind::kRedis}) {
    EXPECT_EQ(TransportFromProto(TransportToProto(kind), TransportKind::kTcp).value(), kind);
  }
  const absl::Status status =
      TransportFromProto(static_cast<v1::Transport>(77), TransportKind::kTcp).status();
  EXPECT_EQ(status, absl::InvalidArgumentError("unknown transport 77"));
}

struct Malformed {
  const char* what;
  std::function<void(v1::RepairPart*)> damage;
};

v1::Hop* Helper(v1::RepairPart* part) { return part->mutable_hops(0); }

TEST(PartProto, ABlockMayEndWithinTheRange) {
  v1::RepairPart proto = PartToProto(Sample());
  Helper(&proto)->mutable_block()->set_bytes(101);
  EXPECT_TRUE(PartFromProto(proto).ok()) << "the range begins at 100";
}

TEST(PartProto, ChecksumKindsSurvive) {
  for (const auto type : {ChecksumKind::Type::kCrc32, ChecksumKind::Type::kCrc32c}) {
    const ChecksumKind kind{type, 1024};
    EXPECT_EQ(ChecksumFromProto(ChecksumToProto(kind)), kind);
  }
  EXPECT_EQ(ChecksumFromProto(v1::ChecksumKind()), std::nullopt);
}

TEST(PartProto, SubBlocksThatAreNotThereAreRefused) {
  const Malformed cases[] = {
      {"no sub-blocks", [](auto* part) { part->mutable_layout()->set_sub_blocks(0); }},
      {"too many", [](auto* part) { part->mutable_layout()->set_sub_blocks(kMaxSubBlocks + 1); }},
      {"no unit", [](auto* part) { part->mutable_layout()->set_unit_bytes(0); }},
      {"a unit over the limit",
       [](auto* part) { part->mutable_layout()->set_unit_bytes(kMaxUnitBytes + 1); }},
      {"units without sub-blocks", [](auto* part) { part->mutable_layout()->set_sub_blocks(1); }},
      {"a block of half a group",
       [](auto* part) { Helper(part)->mutable_block()->set_bytes(4096 + 8); }},
      {"a range beyond the sub-block", [](auto* part) { part->mutable_grid()->set_offset(1049); }},
      {"a sub-block too many",
       [](auto* part) { Helper(part)->mutable_block()->add_sub_blocks(2); }},
      {"one that the layout has not",
       [](auto* part) { Helper(part)->mutable_block()->set_sub_blocks(1, 2); }},
      {"one twice", [](auto* part) { Helper(part)->mutable_block()->set_sub_blocks(0, 1); }},
      {"only the first's coefficients",
       [](auto* part) { Helper(part)->mutable_block()->set_coefficients("xy"); }},
      {"one raw row's coefficients",
       [](auto* part) { Helper(part)->mutable_inputs(1)->set_coefficients("xy"); }},
  };
  ASSERT_TRUE(PartFromProto(PartToProto(SubBlockSample())).ok());
  for (const Malformed& malformed : cases) {
    v1::RepairPart proto = PartToProto(SubBlockSample());
    malformed.damage(&proto);
    const absl::Status status = PartFromProto(proto).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << malformed.what << ": " << status;
  }
}

TEST(PartProto, EveryMalformedFieldIsRefused) {
  const Malformed cases[] = {
      {"no grid", [](auto* part) { part->clear_grid(); }},
      {"an empty range", [](auto* part) { part->mutable_grid()->set_bytes(0); }},
      {"slices of nothing", [](auto* part) { part->mutable_grid()->set_slice_bytes(0); }},
      {"slices over the limit",
       [](auto* part) { part->mutable_grid()->set_slice_bytes(kMaxSliceBytes + 1); }},
      {"an offset that overflows",
       [](auto* part) { part->mutable_grid()->set_offset(UINT64_MAX); }},
      {"a range that begins beyond the block",
       [](auto* part) { part->mutable_grid()->set_offset(4096); }},
      {"no transport", [](auto* part) { part->clear_transport(); }},
      {"an unknown transport",
       [](auto* part) { part->set_transport(static_cast<v1::Transport>(9)); }},
      {"no hops", [](auto* part) { part->clear_hops(); }},
      {"too many hops",
       [](auto* part) {
         const v1::Hop hop = part->hops(0);
         for (size_t i = 0; i < kMaxPartHops; ++i) {
           *part->add_hops() = hop;
           part->mutable_hops(part->hops_size() - 1)->set_hop(static_cast<uint32_t>(i + 10));
         }
       }},
      {"a hop twice", [](auto* part) { part->mutable_hops(1)->set_hop(2); }},
      {"a lane over the limit", [](auto* part) { Helper(part)->set_lane(kMaxLanes); }},
      {"no slices", [](auto* part) { Helper(part)->clear_slices(); }},
      {"an empty run", [](auto* part) { Helper(part)->mutable_slices(0)->set_count(0); }},
      {"a run without stride", [](auto* part) { Helper(part)->mutable_slices(0)->set_stride(0); }},
      {"runs that overlap", [](auto* part) { Helper(part)->mutable_slices(1)->set_first(6); }},
      {"slices outside the range",
       [](auto* part) { Helper(part)->mutable_slices(1)->set_count(100); }},
      {"a run that overflows",
       [](auto* part) {
         Helper(part)->mutable_slices(1)->set_count(UINT32_MAX);
         Helper(part)->mutable_slices(1)->set_stride(UINT32_MAX);
       }},
      {"no rows", [](auto* part) { Helper(part)->clear_rows(); }},
      {"a row over the limit", [](auto* part) { Helper(part)->set_rows(1, kMaxRows); }},
      {"a row that would wrap around", [](auto* part) { Helper(part)->set_rows(1, 65536 + 5); }},
      {"rows out of order",
       [](auto* part) {
         Helper(part)->set_rows(0, 5);
         Helper(part)->set_rows(1, 0);
       }},
      {"a row twice", [](auto* part) { Helper(part)->set_rows(0, 5); }},
      {"a block without id", [](auto* part) { Helper(part)->mutable_block()->clear_block_id(); }},
      {"a block too short", [](auto* part) { Helper(part)->mutable_block()->set_bytes(100); }},
      {"too few coefficients",
       [](auto* part) { Helper(part)->mutable_block()->set_coefficients("x"); }},
      {"too many coefficients",
       [](auto* part) { Helper(part)->mutable_block()->set_coefficients("xyz"); }},
      {"neither block nor input", [](auto* part) { part->mutable_hops(1)->clear_inputs(); }},
      {"rows that go nowhere", [](auto* part) { part->mutable_hops(1)->clear_stored_rows(); }},
      {"a stored row that is none",
       [](auto* part) { part->mutable_hops(1)->set_stored_rows(0, 4); }},
      {"a stored row over the limit",
       [](auto* part) { part->mutable_hops(1)->set_stored_rows(0, 65536 + 5); }},
      {"an input without edge", [](auto* part) { Helper(part)->mutable_inputs(0)->clear_edge(); }},
      {"a short token",
       [](auto* part) {
         Helper(part)->mutable_inputs(0)->mutable_edge()->set_token(std::string(15, 't'));
       }},
      {"a long token",
       [](auto* part) { Helper(part)->mutable_outputs(0)->set_token(std::string(17, 't')); }},
      {"an input without address",
       [](auto* part) { Helper(part)->mutable_inputs(0)->clear_address(); }},
      {"an input without rows",
       [](auto* part) { Helper(part)->mutable_inputs(0)->mutable_edge()->clear_rows(); }},
      {"an input of a row that the hop has not",
       [](auto* part) { Helper(part)->mutable_inputs(0)->mutable_edge()->set_rows(1, 6); }},
      {"an input's row over the limit",
       [](auto* part) { Helper(part)->mutable_inputs(0)->mutable_edge()->set_rows(1, 65536 + 5); }},
      {"a raw input of two rows with the coefficients of one",
       [](auto* part) { Helper(part)->mutable_inputs(1)->mutable_edge()->add_rows(1); }},
      {"a raw input with too few coefficients",
       [](auto* part) { Helper(part)->mutable_inputs(1)->set_coefficients("x"); }},
      {"an edge in twice",
       [](auto* part) {
         Helper(part)->mutable_inputs(1)->mutable_edge()->set_from_hop(0);
         Helper(part)->mutable_inputs(1)->mutable_edge()->set_output(0);
       }},
      {"an edge out twice", [](auto* part) { Helper(part)->mutable_outputs(1)->set_output(0); }},
      {"an output of another hop",
       [](auto* part) { Helper(part)->mutable_outputs(0)->set_from_hop(1); }},
      {"an output without rows",
       [](auto* part) { Helper(part)->mutable_outputs(0)->clear_rows(); }},
      {"an output of a row that the hop has not",
       [](auto* part) { Helper(part)->mutable_outputs(0)->set_rows(0, 1); }},
  };
  ASSERT_TRUE(PartFromProto(PartToProto(Sample())).ok());
  for (const Malformed& malformed : cases) {
    v1::RepairPart proto = PartToProto(Sample());
    malformed.damage(&proto);
    const absl::Status status = PartFromProto(proto).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << malformed.what << ": " << status;
    EXPECT_FALSE(status.message().empty()) << malformed.what;
  }
}

TEST(PartProto, TheRangeMayEndExactlyWithTheBlock) {
  v1::RepairPart proto = PartToProto(Sample());
  proto.mutable_grid()->set_offset(3096);
  EXPECT_TRUE(PartFromProto(proto).ok()) << PartFromProto(proto).status();
}

TEST(PartProto, TooManyInputsOrOutputsAreRefused) {
  v1::RepairPart inputs = PartToProto(Sample());
  while (Helper(&inputs)->inputs_size() <= static_cast<int>(kMaxHopInputs)) {
    v1::HopInput* const added = Helper(&inputs)->add_inputs();
    *added = inputs.hops(0).inputs(0);
    added->mutable_edge()->set_output(static_cast<uint32_t>(100 + inputs.hops(0).inputs_size()));
  }
  EXPECT_TRUE(absl::IsInvalidArgument(PartFromProto(inputs).status()));
  v1::RepairPart outputs = PartToProto(Sample());
  while (Helper(&outputs)->outputs_size() <= static_cast<int>(kMaxHopOutputs)) {
    v1::Edge* const added = Helper(&outputs)->add_outputs();
    *added = outputs.hops(0).outputs(0);
    added->set_output(static_cast<uint32_t>(100 + outputs.hops(0).outputs_size()));
  }
  EXPECT_TRUE(absl::IsInvalidArgument(PartFromProto(outputs).status()));
}

}  // namespace
}  // namespace ecpipe::part_proto_test
