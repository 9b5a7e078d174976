// SPDX-License-Identifier: Apache-2.0
#include "coordinator/repairs/part_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "coordinator/planning/planner.h"

namespace ecpipe::part_builder_test {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kBlockBytes = 1000;

// A stripe of rs(9,6) on nodes N0 .. N8, of which the first blocks are lost.
class PartBuilder : public ::testing::Test {
 protected:
  PartBuilder() {
    stripe_.block_bytes = kBlockBytes;
    for (int i = 0; i < 9; ++i) {
      const std::string number = std::to_string(i);
      stripe_.blocks.push_back({"block-" + number, "N" + number});
      context_.addresses["N" + number] = "10.0.0." + number + ":7000";
    }
    for (int i = 0; i < 3; ++i) {
      context_.addresses["R" + std::to_string(i)] = "10.0.1." + std::to_string(i) + ":7000";
    }
    context_.repair_id = 0xabcdef;
    context_.attempt = 2;
    context_.stripe = &stripe_;
    context_.new_token = [this] {
      EdgeToken token{};
      token[0] = ++tokens_;
      return token;
    };
  }

  RepairPlan Plan(const std::string& scheme, int failed_count) const {
    std::vector<int> failed;
    std::vector<int> survivors;
    PlanRequest request;
    for (int i = 0; i < 9; ++i) {
      (i < failed_count ? failed : survivors).push_back(i);
      request.block_nodes.push_back("N" + std::to_string(i));
    }
    for (int i = 0; i < failed_count; ++i) request.requestors.push_back("R" + std::to_string(i));
    request.scheme = scheme;
    request.grid = {.offset = 100, .bytes = 850, .slice_bytes = 100};
    request.equation = (*CreateErasureCode("rs(9,6)"))->Equation(failed, survivors).value();
    return MakePlan(request).value();
  }

  Stripe stripe_;
  PartContext context_;
  uint8_t tokens_ = 0;
};

TEST_F(PartBuilder, WhoTakesBlocksIsToldTheirChecksums) {
  for (BlockPlace& place : stripe_.blocks) place.sha256 = std::string(64, place.block_id.back());
  const auto parts = BuildParts(Plan("rp", 2), context_);
  ASSERT_TRUE(parts.ok()) << parts.status();
  const std::vector<std::string> both = {std::string(64, '0'), std::string(64, '1')};
  for (const auto& [node, part] : *parts) {
    EXPECT_EQ(part.sha256, node[0] == 'R' ? both : std::vector<std::string>{}) << node;
    if (node[0] == 'R') continue;
    // Who reads one is told which it is.
    EXPECT_EQ(part.hops[0].block->sha256, std::string(64, node.back())) << node;
  }
}

using Parts = std::map<std::string, RepairPart>;

struct Sender {
  std::string node;
  HopOutput output;
};

std::map<EdgeId, Sender> SendersOf(const Parts& parts) {
  std::map<EdgeId, Sender> senders;
  for (const auto& [node, part] : parts) {
    for (const HopSpec& hop : part.hops) {
      for (const HopOutput& output : hop.outputs) {
        EXPECT_TRUE(senders.try_emplace(output.edge, Sender{node, output}).second);
      }
    }
  }
  return senders;
}

// Finds the sender of every input, and leaves none over.
void ExpectEndsAgree(const Parts& parts, const PartContext& context) {
  std::map<EdgeId, Sender> senders = SendersOf(parts);
  std::set<EdgeToken> tokens;
  for (const auto& [node, part] : parts) {
    for (const HopSpec& hop : part.hops) {
      for (const HopInput& input : hop.inputs) {
        const auto sender = senders.find(input.edge);
        ASSERT_NE(sender, senders.end());
        EXPECT_EQ(sender->second.node, input.node);
        EXPECT_EQ(sender->second.output.node, node);
        EXPECT_EQ(sender->second.output.token, input.token);
        EXPECT_EQ(sender->second.output.rows, input.rows);
        EXPECT_EQ(input.address, context.addresses.at(input.node));
        EXPECT_TRUE(tokens.insert(input.token).second) << "two streams share a token";
        senders.erase(sender);
      }
    }
  }
  EXPECT_TRUE(senders.empty()) << "an output without a receiver";
}

// Each hop of the plan is in the part of its node, with its work unchanged.
void ExpectHopsOf(const RepairPlan& plan, const Parts& parts, const Stripe& stripe) {
  size_t hops = 0;
  for (const auto& [node, part] : parts) {
    for (const HopSpec& spec : part.hops) {
      const PlanLane& lane = plan.lanes.at(spec.lane);
      const PlanHop& hop = lane.hops.at(spec.hop);
      EXPECT_EQ(hop.node, node);
      EXPECT_EQ(spec.slices.runs(), lane.slices.runs());
      EXPECT_EQ(spec.rows, hop.rows);
      EXPECT_EQ(spec.stored_rows, hop.stored_rows);
      ASSERT_EQ(spec.inputs.size(), hop.inputs.size());
      for (size_t i = 0; i < hop.inputs.size(); ++i) {
        EXPECT_EQ(spec.inputs[i].coefficients, hop.inputs[i].coefficients);
      }
      ASSERT_EQ(spec.block.has_value(), hop.block_index >= 0);
      ++hops;
      if (!spec.block) continue;
      EXPECT_EQ(spec.block->block_id,
                stripe.blocks.at(static_cast<size_t>(hop.block_index)).block_id);
      EXPECT_EQ(spec.block->bytes, stripe.block_bytes);
      EXPECT_EQ(spec.block->coefficients, hop.coefficients);
      EXPECT_EQ(spec.block->sub_blocks, hop.sub_blocks);
    }
  }
  size_t expected = 0;
  for (const PlanLane& lane : plan.lanes) expected += lane.hops.size();
  EXPECT_EQ(hops, expected);
}

TEST_F(PartBuilder, BothEndsOfEveryEdgeAgree) {
  for (const char* scheme : {"rp", "ppr", "conventional"}) {
    for (const int failed_count : {1, 2, 3}) {
      SCOPED_TRACE(scheme + std::to_string(failed_count));
      tokens_ = 0;
      const RepairPlan plan = Plan(scheme, failed_count);
      const auto parts = BuildParts(plan, context_);
      ASSERT_TRUE(parts.ok()) << parts.status();
      ASSERT_NO_FATAL_FAILURE(ExpectEndsAgree(*parts, context_));
      ASSERT_NO_FATAL_FAILURE(ExpectHopsOf(plan, *parts, stripe_));
      for (const auto& [node, part] : *parts) {
        EXPECT_TRUE(ValidatePart(part).ok()) << node << ": " << ValidatePart(part);
        EXPECT_EQ(part.repair_id, context_.repair_id);
        EXPECT_EQ(part.attempt, 2u);
        EXPECT_EQ(part.grid, plan.grid);
        EXPECT_EQ(part.transport, TransportKind::kTcp);
      }
    }
  }
}

TEST_F(PartBuilder, LanesDoNotShareEdges) {
  RepairPlan plan = Plan("rp", 1);
  plan.lanes.push_back(plan.lanes[0]);
  plan.lanes[0].slices = LaneSlices::Create({{0, 5, 2}}, 9).value();
  plan.lanes[1].slices = LaneSlices::Create({{1, 4, 2}}, 9).value();
  ASSERT_TRUE(ValidatePlan(plan).ok()) << ValidatePlan(plan);
  const auto parts = BuildParts(plan, context_);
  ASSERT_TRUE(parts.ok()) << parts.status();
  ASSERT_NO_FATAL_FAILURE(ExpectEndsAgree(*parts, context_));
  ASSERT_NO_FATAL_FAILURE(ExpectHopsOf(plan, *parts, stripe_));
  EXPECT_EQ(parts->at("N3").hops.size(), 2u);
}

TEST_F(PartBuilder, ANodeThatAsksForItsOwnRepairHasOnePart) {
  RepairPlan plan = Plan("rp", 1);
  plan.lanes[0].hops.back().node = "N6";
  const auto parts = BuildParts(plan, context_);
  ASSERT_TRUE(parts.ok()) << parts.status();
  ASSERT_NO_FATAL_FAILURE(ExpectEndsAgree(*parts, context_));
  EXPECT_EQ(parts->size(), 6u);
  EXPECT_EQ(parts->at("N6").hops.size(), 2u);
  EXPECT_TRUE(ValidatePart(parts->at("N6")).ok()) << ValidatePart(parts->at("N6"));
}

TEST_F(PartBuilder, OnlySendersNeedAnAddress) {
  context_.addresses.erase("R0");
  EXPECT_TRUE(BuildParts(Plan("rp", 1), context_).ok());
  const auto forwarding = BuildParts(Plan("conventional", 2), context_);
  EXPECT_EQ(forwarding.status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(PartBuilder, SaysWhichNodeHasNoAddress) {
  context_.transport = TransportKind::kRedis;
  context_.addresses["N4"] = "";
  const auto parts = BuildParts(Plan("rp", 1), context_);
  EXPECT_EQ(parts.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(parts.status().message()),
              HasSubstr("node N4 has no address for the redis transport"));
}

TEST_F(PartBuilder, StreamsThatHaveTheirLinksForThemselvesAreMeasured) {
  const auto measured = [&](const std::string& scheme, int failed_count) {
    std::set<std::pair<std::string, std::string>> links;
    for (const auto& [edge, sender] :
         SendersOf(BuildParts(Plan(scheme, failed_count), context_).value())) {
      if (sender.output.measured) links.insert({sender.node, sender.output.node});
    }
    return links;
  };
  EXPECT_EQ(measured("rp", 1).size(), 6u) << "every link of a path";
  EXPECT_EQ(measured("rp", 3).size(), 5u) << "but where it fans out";
  EXPECT_TRUE(measured("conventional", 1).empty());
  EXPECT_TRUE(measured("rp-cyclic", 1).empty());
}

}  // namespace
}  // namespace ecpipe::part_builder_test
