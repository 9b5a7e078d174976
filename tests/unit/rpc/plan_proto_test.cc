// SPDX-License-Identifier: Apache-2.0
#include "rpc/convert/plan_proto.h"

#include <gtest/gtest.h>

#include <functional>

namespace ecpipe::plan_proto_test {
namespace {

// Two helpers in a path, and the client that stores block 3 of the stripe.
v1::ExplainRepairResponse Sample() {
  v1::ExplainRepairResponse proto;
  proto.set_scheme("rp");
  proto.mutable_grid()->set_bytes(1000);
  proto.mutable_grid()->set_slice_bytes(100);
  proto.mutable_layout()->set_sub_blocks(1);
  proto.add_failed(3);
  auto* lane = proto.add_lanes();
  auto* run = lane->add_slices();
  run->set_count(10);
  run->set_stride(1);
  for (int i = 0; i < 3; ++i) {
    auto* hop = lane->add_hops();
    const bool client = i == 2;
    hop->set_node_id("n" + std::to_string(i));
    hop->set_block_index(client ? -1 : i);
    hop->add_rows(0);
    if (!client) {
      hop->set_coefficients("\x05");
      hop->add_sub_blocks(0);
    }
    if (client) hop->add_stored_rows(0);
    if (i == 0) continue;
    hop->add_inputs()->set_from_hop(static_cast<uint32_t>(i - 1));
    hop->mutable_inputs(0)->add_rows(0);
  }
  return proto;
}

TEST(PlanProto, ReadsAPlan) {
  const auto plan = PlanFromProto(Sample());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->scheme, "rp");
  EXPECT_EQ(plan->grid, (SliceGrid{0, 1000, 100}));
  EXPECT_EQ(plan->failed, std::vector<int>{3});
  ASSERT_EQ(plan->lanes.size(), 1u);
  EXPECT_EQ(plan->lanes[0].slices.count(), 10u);
  ASSERT_EQ(plan->lanes[0].hops.size(), 3u);
  const PlanHop& helper = plan->lanes[0].hops[1];
  EXPECT_EQ(helper.node, "n1");
  EXPECT_EQ(helper.block_index, 1);
  EXPECT_EQ(helper.coefficients, std::vector<uint8_t>{5});
  ASSERT_EQ(helper.inputs.size(), 1u);
  EXPECT_EQ(helper.inputs[0].from_hop, 0);
  EXPECT_EQ(plan->lanes[0].hops[2].stored_rows, std::vector<Row>{0});
}

TEST(PlanProto, WhatNoPlanHoldsIsRefused) {
  const std::pair<const char*, std::function<void(v1::ExplainRepairResponse*)>> cases[] = {
      {"no grid", [](auto* proto) { proto->clear_grid(); }},
      {"no layout", [](auto* proto) { proto->clear_layout(); }},
      {"nothing failed", [](auto* proto) { proto->clear_failed(); }},
      {"no lane", [](auto* proto) { proto->clear_lanes(); }},
      {"slices outside",
       [](auto* proto) { proto->mutable_lanes(0)->mutable_slices(0)->set_count(11); }},
      // As 16 bits these would be rows that there are.
      {"a row", [](auto* proto) { proto->mutable_lanes(0)->mutable_hops(0)->set_rows(0, 65536); }},
      {"a stored row",
       [](auto* proto) { proto->mutable_lanes(0)->mutable_hops(2)->set_stored_rows(0, 65536); }},
      {"a row of an input",
       [](auto* proto) {
         proto->mutable_lanes(0)->mutable_hops(1)->mutable_inputs(0)->set_rows(0, 65536);
       }},
      {"an input from itself",
       [](auto* proto) {
         proto->mutable_lanes(0)->mutable_hops(1)->mutable_inputs(0)->set_from_hop(1);
       }},
      {"an input from far away",
       [](auto* proto) {
         proto->mutable_lanes(0)->mutable_hops(1)->mutable_inputs(0)->set_from_hop(0xffffffff);
       }},
  };
  for (const auto& [what, change] : cases) {
    v1::ExplainRepairResponse proto = Sample();
    change(&proto);
    EXPECT_FALSE(PlanFromProto(proto).ok()) << what;
  }
}

}  // namespace
}  // namespace ecpipe::plan_proto_test
