// SPDX-License-Identifier: Apache-2.0
// Plans of rp-flow over given links, for packing_test.py, which compares them with what a linear
// program says. Block i of RS(n, k) is on node i, block 0 is lost, and node R asks for it. Lines on
// standard input, any number of problems:
//
//   problem N K BLOCK_BYTES SLICE_BYTES RACK_SPEED   begins one; speeds are in bytes per second
//   node NAME UP DOWN RACK                           RACK may be "-"
//   link FROM TO SPEED
//   plan                                             ends it, and is answered by
//
//   planned SECONDS              of the processor
//   expected SCHEME SECONDS      what a scheme's plan takes, by EstimateCost
//   lane SLICES [FROM>TO ...]    of rp-flow
//   end
#include <algorithm>
#include <ctime>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "base/check.h"
#include "coordinator/planning/plan_cost.h"

namespace ecpipe {
namespace {

struct Problem {
  PlanRequest request;
  LinkTable links;
};

Problem Begin(std::istringstream& words) {
  int n = 0;
  int k = 0;
  Problem problem;
  PlanRequest& request = problem.request;
  words >> n >> k >> request.grid.bytes >> request.grid.slice_bytes >>
      request.cluster.rack_bytes_per_second;
  ECPIPE_CHECK(!words.fail());
  request.code =
      CreateErasureCode("rs(" + std::to_string(n) + "," + std::to_string(k) + ")").value();
  for (int i = 0; i < n; ++i) {
    request.block_nodes.push_back(std::to_string(i));
    if (i > 0) request.survivors.push_back(i);
  }
  request.requestors = {"R"};
  request.equation = request.code->Equation(std::vector<int>{0}, request.survivors).value();
  return problem;
}

void AddNode(std::istringstream& words, ClusterView* cluster) {
  PlanNode node;
  words >> node.node >> node.up_bytes_per_second >> node.down_bytes_per_second >> node.rack;
  ECPIPE_CHECK(!words.fail());
  if (node.rack == "-") node.rack.clear();
  cluster->nodes.push_back(node);
}

void AddLink(std::istringstream& words, LinkTable* links) {
  std::string from;
  std::string to;
  double speed = 0;
  words >> from >> to >> speed;
  ECPIPE_CHECK(!words.fail());
  (*links)[{from, to}] = speed;
}

// The least of several times: others use the processor's caches too.
double SecondsOfPlanning(const PlanRequest& request) {
  constexpr int kTimes = 3;
  double least = 1e9;
  for (int i = 0; i < kTimes; ++i) {
    const std::clock_t begin = std::clock();
    ECPIPE_CHECK(ChoosePlan(request).ok());
    least = std::min(least, static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
  }
  return least;
}

void Answer(PlanRequest request) {
  for (const char* scheme : {"rp", "rp-weighted", "rp-all", "rp-flow"}) {
    request.scheme = scheme;
    const PlanCost cost = EstimateCost(ChoosePlan(request).value(), request.cluster);
    std::cout << "expected " << scheme << " " << cost.seconds << "\n";
  }
  std::cout << "planned " << SecondsOfPlanning(request) << "\n";
  const RepairPlan plan = ChoosePlan(request).value();
  for (const PlanLane& lane : plan.lanes) {
    std::cout << "lane " << lane.slices.count();
    for (const PlanHop& hop : lane.hops) {
      for (const PlanInput& input : hop.inputs) {
        std::cout << " " << lane.hops[static_cast<size_t>(input.from_hop)].node << ">" << hop.node;
      }
    }
    std::cout << "\n";
  }
  std::cout << "end" << std::endl;
}

void Serve() {
  Problem problem;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string verb;
    words >> verb;
    if (verb == "problem") {
      problem = Begin(words);
    } else if (verb == "node") {
      AddNode(words, &problem.request.cluster);
    } else if (verb == "link") {
      AddLink(words, &problem.links);
    } else {
      ECPIPE_CHECK(verb == "plan");
      if (!problem.links.empty()) {
        problem.request.cluster.links = std::make_shared<LinkTable>(std::move(problem.links));
      }
      Answer(std::move(problem.request));
    }
  }
}

}  // namespace
}  // namespace ecpipe

int main() {
  std::cout.precision(9);
  ecpipe::Serve();
}
