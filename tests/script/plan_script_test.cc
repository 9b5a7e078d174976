// SPDX-License-Identifier: Apache-2.0
// Runs plans/*.txt: requests in a small language, each with the plan that it must lead to beside
// it.
//   plan <scheme> code=rs(6,4) failed=0[,1] survivors=1,2,... range=<offset>+<bytes> slice=<bytes>
//   <expected text>
//   <blank line>
// ECPIPE_UPDATE_SCRIPTS=1 writes what came out back into the files, for a person to read and judge.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "common/status.h"
#include "coordinator/plan_cost.h"
#include "coordinator/planner.h"

namespace ecpipe {
namespace {

std::vector<int> Numbers(const std::string& text) {
  std::vector<int> numbers;
  std::istringstream in(text);
  for (std::string item; std::getline(in, item, ',');) numbers.push_back(std::stoi(item));
  return numbers;
}

std::string Listed(const auto& values) {
  std::string text;
  for (const auto value : values) text += (text.empty() ? "" : ",") + std::to_string(value);
  return text;
}

std::string HopText(const PlanHop& hop, size_t index) {
  std::string text = "  " + std::to_string(index) + " " + hop.node + " rows " + Listed(hop.rows);
  if (hop.block_index >= 0) {
    text += " block " + std::to_string(hop.block_index) + " x" + Listed(hop.coefficients);
  }
  for (const PlanInput& input : hop.inputs) {
    text += " <" + std::to_string(input.from_hop) + ":" + Listed(input.rows);
    if (!input.coefficients.empty()) text += "x" + Listed(input.coefficients);
  }
  if (!hop.stored_rows.empty()) text += " stores " + Listed(hop.stored_rows);
  return text + "\n";
}

std::string PlanText(const RepairPlan& plan) {
  constexpr double kBytesPerSecond = 1000;
  std::string text = plan.scheme + ": " + std::to_string(plan.grid.slice_count()) + " slices\n";
  for (const PlanLane& lane : plan.lanes) {
    text += "lane of " + std::to_string(lane.slices.count()) + "\n";
    for (size_t i = 0; i < lane.hops.size(); ++i) text += HopText(lane.hops[i], i);
  }
  const PlanCost cost = EstimateCost(plan, {}, kBytesPerSecond);
  char line[128];
  std::snprintf(line, sizeof line, "busiest %llu total %llu depth %d timeslots %.3f\n",
                static_cast<unsigned long long>(cost.busiest_link_bytes),
                static_cast<unsigned long long>(cost.total_bytes), cost.depth, cost.timeslots);
  return text + line;
}

absl::StatusOr<RepairPlan> Plan(const std::string& request_line) {
  std::istringstream words(request_line);
  std::string word;
  PlanRequest request;
  words >> word >> request.scheme;
  std::map<std::string, std::string> options;
  while (words >> word) options[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
  ECPIPE_ASSIGN_OR_RETURN(const auto code, CreateErasureCode(options.at("code")));
  const std::vector<int> failed = Numbers(options.at("failed"));
  if (request.scheme == "direct") {
    request.equation = {failed, {{failed[0], {1}}}};
  } else {
    ECPIPE_ASSIGN_OR_RETURN(request.equation,
                            code->Equation(failed, Numbers(options.at("survivors"))));
  }
  const std::string& range = options.at("range");
  request.grid.offset = std::stoull(range);
  request.grid.bytes = std::stoull(range.substr(range.find('+') + 1));
  request.grid.slice_bytes = static_cast<uint32_t>(std::stoul(options.at("slice")));
  for (int i = 0; i < code->n(); ++i) request.block_nodes.push_back("N" + std::to_string(i));
  for (size_t i = 0; i < failed.size(); ++i) {
    request.requestors.push_back("R" + std::to_string(i));
  }
  return ChoosePlan(request, 1000);
}

std::string Outcome(const std::string& request_line) {
  const absl::StatusOr<RepairPlan> plan = Plan(request_line);
  return plan.ok() ? PlanText(*plan) : "error " + StatusText(plan.status()) + "\n";
}

class PlanScripts : public ::testing::TestWithParam<std::string> {};

TEST_P(PlanScripts, PlansAreAsWritten) {
  const std::string path = std::string(PLAN_SCRIPTS) + "/" + GetParam() + ".txt";
  std::ifstream file(path);
  ASSERT_TRUE(file) << path;
  std::string rewritten;
  std::string line;
  int cases = 0;
  while (std::getline(file, line)) {
    if (line.rfind("plan ", 0) != 0) {
      rewritten += line + "\n";
      continue;
    }
    const std::string request_line = line;
    std::string expected;
    while (std::getline(file, line) && !line.empty()) expected += line + "\n";
    const std::string outcome = Outcome(request_line);
    EXPECT_EQ(outcome, expected) << request_line;
    rewritten += request_line + "\n" + outcome + "\n";
    ++cases;
  }
  EXPECT_GT(cases, 0);
  file.close();
  if (std::getenv("ECPIPE_UPDATE_SCRIPTS") != nullptr) std::ofstream(path) << rewritten;
}

INSTANTIATE_TEST_SUITE_P(All, PlanScripts,
                         ::testing::Values("conventional", "ppr", "rp", "errors"),
                         [](const auto& parameter) { return parameter.param; });

}  // namespace
}  // namespace ecpipe
