// SPDX-License-Identifier: Apache-2.0
// Whatever the scheme, a plan must compute the repair equation: plans are run here on symbols,
// where a row is its coefficients of the stripe's blocks.
#include "coordinator/planning/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <random>

#include "absl/strings/str_join.h"
#include "codec/gf256.h"
#include "coordinator/planning/scheme.h"

namespace ecpipe::planner_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint64_t kSeed = 20260107;

// A row on its way: coefficient by block index and sub-block, without zeros.
using Symbol = std::map<std::pair<int, uint32_t>, uint8_t>;

void Add(Symbol* sum, const Symbol& other, uint8_t factor) {
  if (sum->empty() && factor == 1) {
    *sum = other;
    return;
  }
  for (const auto& [place, coefficient] : other) {
    uint8_t& cell = (*sum)[place];
    cell ^= GfMultiply(coefficient, factor);
    if (cell == 0) sum->erase(place);
  }
}

// What the requestor of a row stores, and where.
struct Stored {
  std::string node;
  Symbol symbol;
};

using HopRows = std::map<Row, Symbol>;

HopRows RunHop(const PlanHop& hop, const std::vector<HopRows>& before) {
  HopRows rows;
  const size_t count = hop.rows.size();
  for (size_t r = 0; r < count; ++r) {
    Symbol& sum = rows[hop.rows[r]];
    for (const PlanInput& input : hop.inputs) {
      const HopRows& sender = before.at(static_cast<size_t>(input.from_hop));
      if (!input.coefficients.empty()) {
        for (size_t i = 0; i < input.rows.size(); ++i) {
          Add(&sum, sender.at(input.rows[i]), input.coefficients[i * count + r]);
        }
      } else if (std::count(input.rows.begin(), input.rows.end(), hop.rows[r]) > 0) {
        Add(&sum, sender.at(hop.rows[r]), 1);
      }
    }
    for (size_t s = 0; hop.block_index >= 0 && s < hop.sub_blocks.size(); ++s) {
      Add(&sum, {{{hop.block_index, hop.sub_blocks[s]}, 1}}, hop.coefficients[s * count + r]);
    }
  }
  return rows;
}

std::map<Row, Stored> RunLane(const PlanLane& lane) {
  std::map<Row, Stored> stored;
  std::vector<HopRows> hops;
  for (const PlanHop& hop : lane.hops) {
    hops.push_back(RunHop(hop, hops));
    for (const Row row : hop.stored_rows) {
      EXPECT_TRUE(stored.try_emplace(row, Stored{hop.node, hops.back().at(row)}).second);
    }
  }
  return stored;
}

Symbol Expected(const RepairEquation& equation, size_t row) {
  Symbol symbol;
  for (const EquationTerm& term : equation.terms) {
    for (size_t s = 0; s < term.sub_blocks.size(); ++s) {
      const uint8_t coefficient = term.coefficients[s * equation.rows() + row];
      if (coefficient != 0) symbol[{term.block_index, term.sub_blocks[s]}] = coefficient;
    }
  }
  return symbol;
}

// What a lane's result must be: without a code the request's equation, else that of the helpers
// which the scheme chose.
RepairEquation EquationOf(const PlanRequest& request, const PlanLane& lane) {
  if (request.code == nullptr) return request.equation;
  std::vector<int> blocks;
  for (const PlanHop& hop : lane.hops) {
    if (hop.block_index >= 0) blocks.push_back(hop.block_index);
  }
  return request.code->Equation(request.equation.failed, blocks).value();
}

void ExpectComputesTheEquation(const PlanRequest& request, const RepairPlan& plan) {
  EXPECT_TRUE(ValidatePlan(plan).ok()) << ValidatePlan(plan);
  EXPECT_EQ(plan.scheme, request.scheme);
  EXPECT_EQ(plan.grid, request.grid);
  EXPECT_EQ(plan.failed, request.equation.failed);
  std::vector<int> carried(plan.grid.slice_count(), 0);
  for (const PlanLane& lane : plan.lanes) {
    for (uint32_t i = 0; i < lane.slices.count(); ++i) ++carried.at(lane.slices.SliceIndex(i));
    const RepairEquation equation = EquationOf(request, lane);
    const std::map<Row, Stored> stored = RunLane(lane);
    ASSERT_EQ(stored.size(), equation.rows());
    for (const auto& [row, result] : stored) {
      EXPECT_EQ(result.node, request.requestors.at(row / equation.layout.sub_blocks));
      EXPECT_EQ(result.symbol, Expected(equation, row)) << "row " << row;
    }
    for (const PlanHop& hop : lane.hops) {
      if (hop.block_index >= 0) {
        EXPECT_EQ(hop.node, request.block_nodes.at(static_cast<size_t>(hop.block_index)));
      }
    }
  }
  EXPECT_EQ(std::count(carried.begin(), carried.end(), 1), plan.grid.slice_count());
}

PlanRequest RequestFor(const ErasureCode& code, const std::vector<int>& failed,
                       const std::vector<int>& survivors) {
  PlanRequest request;
  request.grid = {.offset = 0, .bytes = 600, .slice_bytes = 100};
  request.equation = code.Equation(failed, survivors).value();
  for (int i = 0; i < code.n(); ++i) request.block_nodes.push_back("N" + std::to_string(i));
  for (size_t i = 0; i < failed.size(); ++i) request.requestors.push_back("R" + std::to_string(i));
  return request;
}

PlanRequest SmallRequest(int failed_count) {
  const std::vector<int> all{0, 1, 2, 3, 4, 5};
  return RequestFor(**CreateErasureCode("rs(6,4)"), {all.begin(), all.begin() + failed_count},
                    {all.begin() + failed_count, all.end()});
}

// A random code, erasure, order of survivors and grid; now and then one requestor wants all.
PlanRequest RandomRequest(std::mt19937_64& random) {
  const bool rotated = random() % 4 == 0;
  const int k = rotated ? 2 + static_cast<int>(random() % 12) : 1 + static_cast<int>(random() % 24);
  const int parities =
      rotated ? 2 + static_cast<int>(random() % 3) : 1 + static_cast<int>(random() % 8);
  const std::string name = (rotated ? "rotated-rs(" : "rs(") + std::to_string(k + parities) + "," +
                           std::to_string(k) + (rotated ? ",2,100)" : ")");
  std::vector<int> blocks(static_cast<size_t>(k + parities));
  std::iota(blocks.begin(), blocks.end(), 0);
  std::shuffle(blocks.begin(), blocks.end(), random);
  const auto failed_end =
      blocks.begin() + 1 + static_cast<ptrdiff_t>(random() % static_cast<unsigned>(parities));
  PlanRequest request = RequestFor(**CreateErasureCode(name), {blocks.begin(), failed_end},
                                   {failed_end, blocks.end()});
  request.grid.offset = random() % 1000;
  request.grid.bytes = 1 + random() % 5000;
  request.grid.slice_bytes = 1 + static_cast<uint32_t>(random() % 700);
  LinkTable links;
  for (const std::string& node : request.block_nodes) {
    request.cluster.nodes.push_back({.node = node,
                                     .rack = std::string(random() % 4, 'r'),
                                     .up_bytes_per_second = static_cast<double>(random() % 3)});
    if (random() % 2 == 0) {
      links[{node, request.block_nodes[0]}] = static_cast<double>(1 + random() % 3);
    }
  }
  if (!links.empty()) request.cluster.links = std::make_shared<LinkTable>(links);
  if (random() % 2 == 0) {
    request.code = *CreateErasureCode(name);
    request.survivors.assign(failed_end, blocks.end());
  }
  if (random() % 4 == 0) request.requestors.assign(request.requestors.size(), "R");
  return request;
}

TEST(Planner, EverySchemeComputesTheEquation) {
  std::mt19937_64 random(kSeed);
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    PlanRequest request = RandomRequest(random);
    for (const std::string& scheme : SchemesThatRepair()) {
      SCOPED_TRACE(scheme);
      request.scheme = scheme;
      const auto plan = MakePlan(request);
      ASSERT_TRUE(plan.ok()) << plan.status();
      ASSERT_NO_FATAL_FAILURE(ExpectComputesTheEquation(request, *plan));
      if (HasFailure()) return;
    }
  }
}

TEST(Planner, TheLargestStripeAndTheMostRowsFit) {
  std::vector<int> blocks(255);
  std::iota(blocks.begin(), blocks.end(), 0);
  const auto wide = *CreateErasureCode("rs(255,191)");
  for (const size_t failed_count : {size_t{1}, kMaxRows}) {
    const auto failed_end = blocks.begin() + static_cast<ptrdiff_t>(failed_count);
    PlanRequest request =
        RequestFor(*wide, {blocks.begin(), failed_end}, {failed_end, blocks.end()});
    for (const std::string& scheme : SchemesThatRepair()) {
      request.scheme = scheme;
      const auto plan = MakePlan(request);
      ASSERT_TRUE(plan.ok()) << plan.status();
      ASSERT_NO_FATAL_FAILURE(ExpectComputesTheEquation(request, *plan));
    }
  }
}

// Codes with local groups write terms that serve only some of the failed blocks.
TEST(Planner, KeepsTermsThatServeOneRowOnly) {
  PlanRequest request = SmallRequest(2);
  request.equation.terms = {{2, {1, 0}}, {3, {0, 7}}, {4, {9, 9}}, {5, {0, 1}}};
  for (const std::string& scheme : SchemesThatRepair()) {
    request.scheme = scheme;
    ASSERT_NO_FATAL_FAILURE(ExpectComputesTheEquation(request, MakePlan(request).value()));
  }
}

TEST(Planner, TheSameRequestGivesTheSamePath) {
  PlanRequest request = SmallRequest(1);
  request.scheme = "rp";
  for (int round = 0; round < 2; ++round) {
    const RepairPlan plan = MakePlan(request).value();
    std::vector<std::string> path;
    for (const PlanHop& hop : plan.lanes[0].hops) path.push_back(hop.node);
    EXPECT_THAT(path, ElementsAre("N1", "N2", "N3", "N4", "R0"));
  }
}

TEST(Planner, DirectSendsTheBlockAsItIs) {
  PlanRequest request = SmallRequest(1);
  request.scheme = "direct";
  request.equation = {{2}, {{2, {1}}}};
  const auto plan = MakePlan(request);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ExpectComputesTheEquation(request, *plan);
  EXPECT_EQ(plan->lanes[0].hops.size(), 2u);
}

TEST(Planner, TheBaselinesArePathsThatFlowOtherwise) {
  PlanRequest request = SmallRequest(1);
  request.grid = {10, 1000, 64};
  request.scheme = "rp";
  const RepairPlan rp = *MakePlan(request);
  request.scheme = "pipe-b";
  const RepairPlan whole = *MakePlan(request);
  EXPECT_EQ(whole.grid.slice_count(), 1u);
  EXPECT_EQ(whole.grid.offset, 10u);
  EXPECT_EQ(whole.grid.bytes, 1000u);
  EXPECT_FALSE(whole.serial);
  request.scheme = "pipe-s";
  const RepairPlan serial = *MakePlan(request);
  EXPECT_TRUE(serial.serial);
  EXPECT_FALSE(rp.serial);
  EXPECT_EQ(serial.grid, rp.grid);
  EXPECT_EQ(serial.lanes[0].hops.size(), rp.lanes[0].hops.size());
  request.grid = {0, uint64_t{1} << 30, 64};
  request.scheme = "pipe-b";
  EXPECT_EQ(MakePlan(request)->grid.slice_bytes, kMaxSliceBytes);
}

TEST(Planner, RefusesABadRequest) {
  struct Case {
    const char* message;
    std::function<void(PlanRequest*)> spoil;
  };
  const std::string unknown =
      "unknown scheme 'magic'; known are " + absl::StrJoin(SchemeNames(), ", ");
  const Case cases[] = {
      {unknown.c_str(), [](PlanRequest* r) { r->scheme = "magic"; }},
      {"range is empty", [](PlanRequest* r) { r->grid.bytes = 0; }},
      {"slice size must not be 0", [](PlanRequest* r) { r->grid.slice_bytes = 0; }},
      {"from 1 to 64 blocks", [](PlanRequest* r) { r->equation.failed.clear(); }},
      {"from 1 to 64 blocks", [](PlanRequest* r) { r->equation.failed.assign(65, 0); }},
      {"one requestor for each", [](PlanRequest* r) { r->requestors.pop_back(); }},
      {"one requestor for each", [](PlanRequest* r) { r->requestors.push_back("R2"); }},
      {"equation is empty", [](PlanRequest* r) { r->equation.terms.clear(); }},
      {"but the stripe has blocks 0 to 4", [](PlanRequest* r) { r->block_nodes.resize(5); }},
      {"the repair equation uses block index -1, but",
       [](PlanRequest* r) { r->equation.terms[0].block_index = -1; }},
      {"the survivors include block index 6, but the stripe has blocks 0 to 5",
       [](PlanRequest* r) { r->survivors = {5, 6}; }},
      {"the survivors include block index -1, but", [](PlanRequest* r) { r->survivors = {-1}; }},
      {"one coefficient for each",
       [](PlanRequest* r) { r->equation.terms[1].coefficients.pop_back(); }},
      {"one block at a time", [](PlanRequest* r) { r->scheme = "direct"; }},
  };
  for (const Case& test : cases) {
    PlanRequest request = SmallRequest(2);
    test.spoil(&request);
    const auto plan = MakePlan(request);
    EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument) << test.message;
    EXPECT_THAT(std::string(plan.status().message()), HasSubstr(test.message));
  }
}

}  // namespace
}  // namespace ecpipe::planner_test
