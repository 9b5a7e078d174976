// SPDX-License-Identifier: Apache-2.0
// Plans of rp-flow on random links: what flows through their hops is the lost block.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "codec/gf256.h"
#include "coordinator/planning/plan_cost.h"

namespace ecpipe::tree_plans_test {
namespace {

using Random = std::mt19937_64;

PlanRequest RequestFor(const std::string& code, std::vector<int> failed, uint32_t slices) {
  PlanRequest request;
  request.scheme = "rp-flow";
  request.code = CreateErasureCode(code).value();
  for (int i = 0; i < request.code->n(); ++i) {
    request.block_nodes.push_back("N" + std::to_string(i));
    if (std::find(failed.begin(), failed.end(), i) == failed.end()) request.survivors.push_back(i);
  }
  request.equation = request.code->Equation(failed, request.survivors).value();
  request.requestors.assign(failed.size(), "R");
  const uint64_t unit = std::max(1u, request.equation.layout.unit_bytes);
  request.grid = {0, slices * unit * 1000, static_cast<uint32_t>(unit * 1000)};
  return request;
}

void RandomLinks(Random& random, PlanRequest* request) {
  const auto speed = [&] { return 1e6 * static_cast<double>(10 + random() % 190); };
  auto links = std::make_shared<LinkTable>();
  std::vector<std::string> nodes = request->block_nodes;
  nodes.push_back("R");
  for (const std::string& node : nodes) {
    request->cluster.nodes.push_back({.node = node,
                                      .rack = "rack-" + std::to_string(random() % 3),
                                      .up_bytes_per_second = speed(),
                                      .down_bytes_per_second = speed()});
    for (const std::string& other : nodes) {
      if (other != node && random() % 2 == 0) (*links)[{node, other}] = speed() / 4;
    }
  }
  request->cluster.links = links;
  if (random() % 2 == 0) request->cluster.rack_bytes_per_second = 2 * speed();
}

// One byte of each block of a random stripe.
std::vector<uint8_t> Stripe(Random& random, const ErasureCode& code) {
  const Matrix& generator = code.generator();
  std::vector<uint8_t> data;
  for (int i = 0; i < generator.columns(); ++i) data.push_back(static_cast<uint8_t>(random()));
  std::vector<uint8_t> bytes;
  for (int i = 0; i < generator.rows(); ++i) {
    uint8_t sum = 0;
    for (int j = 0; j < generator.columns(); ++j) {
      sum ^= GfMultiply(generator.at(i, j), data[static_cast<size_t>(j)]);
    }
    bytes.push_back(sum);
  }
  return bytes;
}

// What the last hop of the lane has in each row, worked out byte by byte.
std::vector<uint8_t> Flow(const RepairPlan& plan, const PlanLane& lane,
                          const std::vector<uint8_t>& stripe) {
  std::vector<std::vector<uint8_t>> sums;
  for (const PlanHop& hop : lane.hops) {
    std::vector<uint8_t> rows(plan.rows(), 0);
    for (size_t s = 0; hop.block_index >= 0 && s < hop.sub_blocks.size(); ++s) {
      const size_t at =
          static_cast<size_t>(hop.block_index) * plan.layout.sub_blocks + hop.sub_blocks[s];
      for (size_t r = 0; r < hop.rows.size(); ++r) {
        rows[hop.rows[r]] ^= GfMultiply(hop.coefficients[s * hop.rows.size() + r], stripe[at]);
      }
    }
    for (const PlanInput& input : hop.inputs) {
      EXPECT_TRUE(input.coefficients.empty());
      for (const Row row : input.rows) rows[row] ^= sums[static_cast<size_t>(input.from_hop)][row];
    }
    sums.push_back(std::move(rows));
  }
  return sums.back();
}

// Each hop but the last is sent to one other, and no node is there twice. The last helper sends to
// all requestors.
void ExpectInTree(const PlanLane& lane, size_t helpers, size_t requestors = 1) {
  ASSERT_EQ(lane.hops.size(), helpers + requestors);
  std::set<std::string> nodes;
  std::multiset<int> senders;
  for (const PlanHop& hop : lane.hops) {
    EXPECT_TRUE(nodes.insert(hop.node).second) << hop.node;
    for (const PlanInput& input : hop.inputs) senders.insert(input.from_hop);
  }
  const int last = static_cast<int>(helpers) - 1;
  for (int i = 0; i < last; ++i) EXPECT_EQ(senders.count(i), 1u);
  EXPECT_EQ(senders.count(last), requestors);
  EXPECT_EQ(lane.hops.back().node[0], 'R');
}

void ExpectRebuilds(const PlanRequest& request, Random& random) {
  const RepairPlan plan = MakePlan(request).value();
  const std::vector<uint8_t> stripe = Stripe(random, *request.code);
  EXPECT_LE(plan.lanes.size(), 64u);
  for (const PlanLane& lane : plan.lanes) {
    ASSERT_NO_FATAL_FAILURE(ExpectInTree(lane, request.equation.terms.size()));
    const std::vector<uint8_t> rows = Flow(plan, lane, stripe);
    for (size_t row = 0; row < rows.size(); ++row) {
      const size_t failed = row / plan.layout.sub_blocks;
      const size_t at = static_cast<size_t>(plan.failed[failed]) * plan.layout.sub_blocks +
                        row % plan.layout.sub_blocks;
      EXPECT_EQ(rows[row], stripe[at]) << "row " << row;
    }
  }
}

TEST(TreePlans, RebuildTheBlocks) {
  Random random(20260416);
  size_t most_lanes = 0;
  for (const char* code :
       {"rs(14,10)", "rs(9,6)", "rs-legacy(6,3)", "lrc(12,2,2)", "xor(5,4)", "rotated-rs(8,6)"}) {
    for (int round = 0; round < 12; ++round) {
      PlanRequest request = RequestFor(code, {static_cast<int>(random() % 4)}, 200);
      RandomLinks(random, &request);
      SCOPED_TRACE(std::string(code) + " round " + std::to_string(round));
      ASSERT_NO_FATAL_FAILURE(ExpectRebuilds(request, random));
      most_lanes = std::max(most_lanes, MakePlan(request)->lanes.size());
    }
  }
  EXPECT_GE(most_lanes, 10u);
}

TEST(TreePlans, RebuildSeveralBlocksForOneRequestor) {
  Random random(20260417);
  for (int round = 0; round < 10; ++round) {
    PlanRequest request = RequestFor("rs(14,10)", {0, 12}, 200);
    RandomLinks(random, &request);
    ASSERT_NO_FATAL_FAILURE(ExpectRebuilds(request, random));
  }
}

// What leaves the last helper are the lost blocks, each for its own requestor; and more trees than
// the best path.
TEST(TreePlans, RebuildSeveralBlocksForAsManyRequestors) {
  Random random(20260423);
  std::vector<double> gains;
  for (int round = 0; round < 20; ++round) {
    PlanRequest request = RequestFor("rs(14,10)", {0, 12}, 2000);
    request.requestors = {"R", "R2"};
    RandomLinks(random, &request);
    request.cluster.rack_bytes_per_second = 0;
    const RepairPlan plan = MakePlan(request).value();
    const std::vector<uint8_t> stripe = Stripe(random, *request.code);
    for (const PlanLane& lane : plan.lanes) {
      ASSERT_NO_FATAL_FAILURE(ExpectInTree(lane, 10, 2));
      for (size_t i = 0; i < 2; ++i) {
        PlanLane to_one = lane;
        to_one.hops.resize(11);
        to_one.hops[10] = lane.hops[10 + i];
        EXPECT_EQ(to_one.hops[10].node, request.requestors[i]);
        const std::vector<uint8_t> rows = Flow(plan, to_one, stripe);
        EXPECT_EQ(rows[i], stripe[static_cast<size_t>(plan.failed[i])]);
      }
    }
    const double flow = EstimateCost(plan, request.cluster).seconds;
    request.scheme = "rp-weighted";
    gains.push_back(EstimateCost(MakePlan(request).value(), request.cluster).seconds / flow);
    EXPECT_GE(gains.back(), 0.99);
  }
  std::sort(gains.begin(), gains.end());
  EXPECT_GE(gains[gains.size() / 2], 1.5);
}

// Without a code, as in a repair that parity verifies, the helpers are those of the equation.
TEST(TreePlans, KeepToTheHelpersOfTheEquation) {
  Random random(20260418);
  size_t most_lanes = 0;
  for (int round = 0; round < 10; ++round) {
    PlanRequest request = RequestFor("rs(14,10)", {3}, 200);
    RandomLinks(random, &request);
    PlanRequest without = request;
    without.code = nullptr;
    std::shuffle(without.equation.terms.begin(), without.equation.terms.end(), random);
    std::set<int> allowed;
    for (const EquationTerm& term : request.equation.terms) allowed.insert(term.block_index);
    const RepairPlan plan = MakePlan(without).value();
    most_lanes = std::max(most_lanes, plan.lanes.size());
    for (const PlanLane& lane : plan.lanes) {
      ASSERT_NO_FATAL_FAILURE(ExpectInTree(lane, 10));
      for (const PlanHop& hop : lane.hops) {
        EXPECT_TRUE(hop.block_index < 0 || allowed.contains(hop.block_index));
      }
    }
  }
  EXPECT_GT(most_lanes, 1u);
}

// No worse than the best path, and auto takes the better of the two.
TEST(TreePlans, AreNoSlowerThanAPath) {
  Random random(20260419);
  std::vector<double> gains;
  for (int round = 0; round < 40; ++round) {
    PlanRequest request = RequestFor("rs(14,10)", {0}, 2000);
    RandomLinks(random, &request);
    const auto seconds = [&](const char* scheme) {
      request.scheme = scheme;
      return EstimateCost(ChoosePlan(request).value(), request.cluster).seconds;
    };
    const double path = seconds("rp-weighted");
    const double trees = seconds("rp-flow");
    EXPECT_LE(trees, 1.01 * path) << "round " << round;
    EXPECT_LE(seconds("auto"), trees);
    gains.push_back(path / trees);
  }
  std::sort(gains.begin(), gains.end());
  EXPECT_GE(gains[gains.size() / 2], 1.5);
}

// What repairs in flight have of links is not there: busy nodes send less, and all is slower.
TEST(TreePlans, LeaveAloneWhatOthersHaveOfLinks) {
  Random random(20260422);
  for (int round = 0; round < 10; ++round) {
    PlanRequest request = RequestFor("rs(14,10)", {0}, 2000);
    RandomLinks(random, &request);
    const auto cost = [&] { return EstimateCost(MakePlan(request).value(), request.cluster); };
    const auto sent_by_busy = [](const PlanCost& of) {
      uint64_t bytes = 0;
      for (const NodeLoad& load : of.loads) {
        if (load.node == "N1" || load.node == "N2" || load.node == "N3") bytes += load.up_bytes;
      }
      return bytes;
    };
    const PlanCost idle = cost();
    for (const size_t node : {1, 2, 3}) request.cluster.nodes[node].shares = {0.2, 0.2};
    const PlanCost busy = cost();
    EXPECT_LE(sent_by_busy(busy), sent_by_busy(idle)) << "round " << round;
    EXPECT_GE(busy.seconds, idle.seconds * 0.98) << "plans are within a percent or two of the best";
  }
}

TEST(TreePlans, ASingleSliceTakesOneTree) {
  Random random(20260420);
  PlanRequest request = RequestFor("rs(14,10)", {0}, 1);
  RandomLinks(random, &request);
  request.grid.slice_bytes *= 1000;
  request.grid.bytes *= 1000;
  EXPECT_EQ(MakePlan(request)->lanes.size(), 1u);
}

// It is done before a packing is found.
TEST(TreePlans, ASmallReadTakesAPath) {
  Random random(20260421);
  PlanRequest request = RequestFor("rs(14,10)", {0}, 2000);
  RandomLinks(random, &request);
  request.cluster.nodes.back().down_bytes_per_second = 1e9;  // the requestor's
  request.cluster.rack_bytes_per_second = 0;
  EXPECT_GT(MakePlan(request)->lanes.size(), 1u);
  request.grid = {0, 8192, 4096};
  const RepairPlan plan = MakePlan(request).value();
  ASSERT_EQ(plan.lanes.size(), 1u);
  EXPECT_EQ(plan.lanes[0].hops.back().inputs.size(), 1u);
}

}  // namespace
}  // namespace ecpipe::tree_plans_test
