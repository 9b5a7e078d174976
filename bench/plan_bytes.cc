// SPDX-License-Identifier: Apache-2.0
// Which node sends how many bytes to which, by ECPipe's own planners. For bench/degraded.py, which
// asks for thousands of plans. A question a line on standard input, an answer a line:
//
//   cluster RACKS NODE_RATE RACK_RATE     RACKS: the rack of each node, "0,0,1,1"; bytes per
//                                         second of a node's and of a rack's links, 0: no limit
//   plan SCHEME CODE BYTES FAILED SURVIVORS NODES REQUESTOR
//                                         SURVIVORS: block indices in order of preference;
//                                         NODES: of each block; nodes are numbers from 0 on
//   undecodable CODE MOST                 patterns of at most MOST lost blocks that lose data
//
//   ok [FROM>TO:BYTES ...]                of a plan; a pair appears once
//   ok [PATTERN ...]                      a pattern has bit i if block i is lost, in hexadecimal
//   error TEXT
#include <bit>
#include <charconv>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/status.h"
#include "coordinator/planning/plan_cost.h"
#include "coordinator/planning/planner.h"

namespace ecpipe {
namespace {

// Where no link of nodes is limited: so much faster than racks that it never decides.
constexpr double kUnlimitedBytesPerSecond = 1e15;
// Patterns are bits of a number, and there are 2^n of them.
constexpr int kMostBlocksOfPatterns = 24;

absl::StatusOr<std::vector<int>> Numbers(std::string_view text) {
  std::vector<int> numbers;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    int number = 0;
    const auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc() || number < 0 || (next != end && *next != ',')) {
      return absl::InvalidArgumentError("not a list of numbers: " + std::string(text));
    }
    numbers.push_back(number);
    at = next == end ? end : next + 1;
  }
  return numbers;
}

std::string NodeName(int node) { return std::to_string(node); }
std::string RackName(int rack) { return "rack-" + std::to_string(rack); }

// The cluster that was last described, and the codes that were asked for.
class Planners {
 public:
  absl::StatusOr<std::string> Answer(const std::string& question) {
    std::istringstream words(question);
    std::string verb;
    words >> verb;
    if (verb == "cluster") return SetCluster(words);
    if (verb == "plan") return Plan(words);
    if (verb == "undecodable") return Undecodable(words);
    return absl::InvalidArgumentError("neither cluster, plan nor undecodable: " + verb);
  }

 private:
  absl::StatusOr<std::string> SetCluster(std::istringstream& words);
  absl::StatusOr<std::string> Plan(std::istringstream& words);
  absl::StatusOr<std::string> Undecodable(std::istringstream& words);
  absl::StatusOr<std::shared_ptr<const ErasureCode>> Code(const std::string& name);

  std::map<std::string, std::shared_ptr<const ErasureCode>> codes_;
  PlanRequest request_;  // its cluster is the one that was described
};

absl::StatusOr<std::shared_ptr<const ErasureCode>> Planners::Code(const std::string& name) {
  const auto found = codes_.find(name);
  if (found != codes_.end()) return found->second;
  ECPIPE_ASSIGN_OR_RETURN(auto code, CreateErasureCode(name));
  return codes_.emplace(name, std::move(code)).first->second;
}

absl::StatusOr<std::string> Planners::SetCluster(std::istringstream& words) {
  std::string racks_text;
  double node_rate = 0;
  double rack_rate = 0;
  if (!(words >> racks_text >> node_rate >> rack_rate)) {
    return absl::InvalidArgumentError("a cluster has racks, a rate of nodes and one of racks");
  }
  ECPIPE_ASSIGN_OR_RETURN(const std::vector<int> racks, Numbers(racks_text));
  ClusterView cluster;
  cluster.default_bytes_per_second = node_rate > 0 ? node_rate : kUnlimitedBytesPerSecond;
  cluster.rack_bytes_per_second = rack_rate;
  LinkTable links;
  for (size_t node = 0; node < racks.size(); ++node) {
    cluster.nodes.push_back({NodeName(static_cast<int>(node)), RackName(racks[node])});
    for (const int other : racks) {
      if (other != racks[node]) links[{RackName(racks[node]), RackName(other)}] = rack_rate;
    }
  }
  // What a path can have at most from rack to rack; without it rp-weighted knows of no slow link.
  if (rack_rate > 0) cluster.links = std::make_shared<LinkTable>(std::move(links));
  request_.cluster = std::move(cluster);
  return "ok";
}

std::string StreamsText(const RepairPlan& plan) {
  std::map<std::pair<std::string, std::string>, uint64_t> bytes;
  for (const PlanLane& lane : plan.lanes) {
    for (const PlanHop& hop : lane.hops) {
      for (const PlanInput& input : hop.inputs) {
        const std::string& sender = lane.hops[static_cast<size_t>(input.from_hop)].node;
        if (sender == hop.node) continue;
        bytes[{sender, hop.node}] += LaneBytes(plan, lane) * input.rows.size();
      }
    }
  }
  std::string text = "ok";
  for (const auto& [ends, count] : bytes) {
    text += " " + ends.first + ">" + ends.second + ":" + std::to_string(count);
  }
  return text;
}

absl::StatusOr<std::string> Planners::Plan(std::istringstream& words) {
  std::string code_name, survivors_text, nodes_text;
  int failed = 0;
  int requestor = 0;
  words >> request_.scheme >> code_name >> request_.grid.bytes >> failed >> survivors_text >>
      nodes_text >> requestor;
  if (!words) return absl::InvalidArgumentError("a plan has seven words");
  ECPIPE_ASSIGN_OR_RETURN(request_.code, Code(code_name));
  ECPIPE_ASSIGN_OR_RETURN(request_.survivors, Numbers(survivors_text));
  ECPIPE_ASSIGN_OR_RETURN(const std::vector<int> nodes, Numbers(nodes_text));
  if (nodes.size() != static_cast<size_t>(request_.code->n())) {
    return absl::InvalidArgumentError("one node for each block of the code");
  }
  request_.block_nodes.clear();
  for (const int node : nodes) request_.block_nodes.push_back(NodeName(node));
  request_.requestors = {NodeName(requestor)};
  ECPIPE_ASSIGN_OR_RETURN(request_.equation,
                          request_.code->Equation(std::vector<int>{failed}, request_.survivors));
  ECPIPE_ASSIGN_OR_RETURN(const RepairPlan plan, MakePlan(request_));
  return StreamsText(plan);
}

absl::StatusOr<std::string> Planners::Undecodable(std::istringstream& words) {
  std::string code_name;
  int most = 0;
  if (!(words >> code_name >> most)) return absl::InvalidArgumentError("which code, how many?");
  ECPIPE_ASSIGN_OR_RETURN(const auto code, Code(code_name));
  if (code->n() > kMostBlocksOfPatterns) {
    return absl::InvalidArgumentError("too many patterns for " + code_name);
  }
  std::ostringstream text;
  text << "ok" << std::hex;
  for (uint32_t pattern = 1; pattern < uint32_t{1} << code->n(); ++pattern) {
    if (std::popcount(pattern) > most) continue;
    std::vector<int> failed, survivors;
    for (int block = 0; block < code->n(); ++block) {
      (pattern >> block & 1 ? failed : survivors).push_back(block);
    }
    if (!code->Equation(failed, survivors).ok()) text << " " << pattern;
  }
  return text.str();
}

}  // namespace
}  // namespace ecpipe

int main() {
  std::ios::sync_with_stdio(false);
  ecpipe::Planners planners;
  for (std::string line; std::getline(std::cin, line);) {
    const auto answer = planners.Answer(line);
    std::cout << (answer.ok() ? *answer : "error " + std::string(answer.status().message()))
              << std::endl;  // whoever asked waits for it
  }
  return 0;
}
