// SPDX-License-Identifier: Apache-2.0
// Runs plans/*.txt: requests in a small language, each with the plan that it must lead to beside
// it.
//   plan <scheme> code=rs(6,4) failed=0[,1] survivors=1,2,... range=<offset>+<bytes> slice=<bytes>
//       [to=R0,R1,...] [racks=...] [shared=...] [speeds=...] [up=...] [down=...] [links=...]
//   (one line; see ReadCluster)
//   <expected text>
//   <blank line>
// ECPIPE_UPDATE_SCRIPTS=1 writes what came out back into the files, for a person to read and judge.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>

#include "base/status.h"
#include "coordinator/planning/plan_cost.h"
#include "coordinator/planning/scheme.h"
#include "script/script_names.h"

namespace ecpipe::plan_script_test {
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
    text += " block " + std::to_string(hop.block_index);
    if (hop.sub_blocks != std::vector<uint32_t>{0}) text += "/" + Listed(hop.sub_blocks);
    text += " x" + Listed(hop.coefficients);
  }
  for (const PlanInput& input : hop.inputs) {
    text += " <" + std::to_string(input.from_hop) + ":" + Listed(input.rows);
    if (!input.coefficients.empty()) text += "x" + Listed(input.coefficients);
  }
  if (!hop.stored_rows.empty()) text += " stores " + Listed(hop.stored_rows);
  return text + "\n";
}

std::string PlanText(const RepairPlan& plan, const ClusterView& cluster) {
  std::string text = plan.scheme + ": " + std::to_string(plan.grid.slice_count()) + " slices\n";
  for (const PlanLane& lane : plan.lanes) {
    text += "lane of " + std::to_string(lane.slices.count());
    for (const SliceRun& run : lane.slices.runs()) {
      if (run.stride != 1) {
        text += " from " + std::to_string(run.first) + " by " + std::to_string(run.stride);
      }
    }
    text += "\n";
    for (size_t i = 0; i < lane.hops.size(); ++i) text += HopText(lane.hops[i], i);
  }
  const PlanCost cost = EstimateCost(plan, cluster);
  char line[160];
  std::snprintf(line, sizeof line, "busiest %llu total %llu depth %d timeslots %.3f",
                static_cast<unsigned long long>(cost.busiest_link_bytes),
                static_cast<unsigned long long>(cost.total_bytes), cost.depth, cost.timeslots);
  text += line;
  if (cost.cross_rack_bytes > 0) text += " cross-rack " + std::to_string(cost.cross_rack_bytes);
  return text + "\n";
}

PlanNode& NodeOf(const std::string& name, ClusterView* cluster) {
  for (PlanNode& node : cluster->nodes) {
    if (node.node == name) return node;
  }
  return cluster->nodes.emplace_back(PlanNode{.node = name});
}

// NODE:SPEED;...
void ReadSpeeds(const std::string& text, double PlanNode::* speed, ClusterView* cluster) {
  std::istringstream speeds(text);
  for (std::string entry; std::getline(speeds, entry, ';');) {
    const size_t colon = entry.find(':');
    NodeOf(entry.substr(0, colon), cluster).*speed = std::stod(entry.substr(colon + 1));
  }
}

// FROM>TO:SPEED;... Null: none.
std::shared_ptr<const LinkTable> ReadLinks(const std::string& text) {
  auto links = std::make_shared<LinkTable>();
  std::istringstream list(text);
  for (std::string link; std::getline(list, link, ';');) {
    const size_t arrow = link.find('>');
    const size_t colon = link.find(':');
    (*links)[{link.substr(0, arrow), link.substr(arrow + 1, colon - arrow - 1)}] =
        std::stod(link.substr(colon + 1));
  }
  return links->empty() ? nullptr : links;
}

// racks=home:N1,N2;other:N3, rackspeed=500 (of a rack's links), shared=home>other:300 (of all
// streams between two racks), speeds=R0:2000 (of a node's links), up=N1:500 and down=N1:500 (of one
// of them), and links=N1>N2:500;N2>R0:20 (bytes per second; the default is 1000).
void ReadCluster(std::map<std::string, std::string>& options, ClusterView* cluster) {
  cluster->default_bytes_per_second = 1000;
  if (options.contains("rackspeed")) {
    cluster->rack_bytes_per_second = std::stod(options["rackspeed"]);
  }
  std::istringstream racks(options["racks"]);
  for (std::string rack; std::getline(racks, rack, ';');) {
    std::istringstream nodes(rack.substr(rack.find(':') + 1));
    for (std::string node; std::getline(nodes, node, ',');) {
      NodeOf(node, cluster).rack = rack.substr(0, rack.find(':'));
    }
  }
  for (const char* of : {"speeds", "up"}) {
    ReadSpeeds(options[of], &PlanNode::up_bytes_per_second, cluster);
  }
  for (const char* of : {"speeds", "down"}) {
    ReadSpeeds(options[of], &PlanNode::down_bytes_per_second, cluster);
  }
  cluster->links = ReadLinks(options["links"]);
  cluster->shared_by_racks = ReadLinks(options["shared"]);
}

absl::StatusOr<std::string> Plan(const std::string& request_line) {
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
    request.code = code;
    request.survivors = Numbers(options.at("survivors"));
    ECPIPE_ASSIGN_OR_RETURN(request.equation, code->Equation(failed, request.survivors));
  }
  const std::string& range = options.at("range");
  request.grid.offset = std::stoull(range);
  request.grid.bytes = std::stoull(range.substr(range.find('+') + 1));
  request.grid.slice_bytes = static_cast<uint32_t>(std::stoul(options.at("slice")));
  for (int i = 0; i < code->n(); ++i) request.block_nodes.push_back("N" + std::to_string(i));
  std::istringstream to(options["to"]);
  for (size_t i = 0; i < failed.size(); ++i) {
    std::string requestor = "R" + std::to_string(i);
    std::getline(to, requestor, ',');
    request.requestors.push_back(requestor.empty() ? "R" + std::to_string(i) : requestor);
  }
  ReadCluster(options, &request.cluster);
  ECPIPE_ASSIGN_OR_RETURN(const RepairPlan plan, ChoosePlan(request));
  return PlanText(plan, request.cluster);
}

std::string Outcome(const std::string& request_line) {
  const absl::StatusOr<std::string> plan = Plan(request_line);
  return plan.ok() ? *plan : "error " + StatusText(plan.status()) + "\n";
}

class PlanScript : public ::testing::TestWithParam<std::string> {};

TEST_P(PlanScript, PlansAreAsWritten) {
  const std::string path = std::string(SCRIPT_FOLDER) + "/" + GetParam() + ".txt";
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

INSTANTIATE_TEST_SUITE_P(All, PlanScript, ::testing::ValuesIn(ScriptNames(SCRIPT_FOLDER)),
                         [](const auto& parameter) { return parameter.param; });

TEST(PlanScripts, EverySchemeHasOne) {
  for (const std::string& scheme : SchemeNames()) {
    std::string name = scheme;
    std::replace(name.begin(), name.end(), '-', '_');
    const std::string path = std::string(SCRIPT_FOLDER) + "/" + name + ".txt";
    std::ifstream file(path);
    int plans = 0;
    for (std::string line; std::getline(file, line);) {
      if (line.rfind("plan " + scheme + " ", 0) == 0) ++plans;
    }
    EXPECT_GT(plans, 0) << "scheme " << scheme << " has no plan in " << path;
  }
}

}  // namespace
}  // namespace ecpipe::plan_script_test
