// SPDX-License-Identifier: Apache-2.0
// A packing of in-trees (docs/design/019-trees.md): each lane is a tree of k helpers, and the lanes
// together use what the links have. A single path is as fast as its slowest link; a packing is
// bounded by what can flow to the requestor.
#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "coordinator/planning/helper_paths.h"
#include "coordinator/planning/lanes.h"
#include "coordinator/planning/scheme.h"
#include "coordinator/planning/trees/tree_packing.h"
#include "coordinator/planning/trees/whole_slices.h"

namespace ecpipe::schemes {
namespace {

// Each lane is a hop with streams and buffers at every node of its tree.
constexpr size_t kMostTrees = 64;
// What the lanes of a part may keep in buffers, of three slices each: a quarter of what a helper
// gives all parts by default.
constexpr uint64_t kBufferBytes = 128u << 20;
// Planning takes at most this share of the time of the repair.
constexpr double kPlanningShare = 0.02;
// In less time than this nothing is packed.
constexpr double kLeastPlanningSeconds = 50e-6;
// An elementary step takes about a nanosecond.
constexpr double kStepsPerSecond = 1e9;
// For each pair of helpers: 4 ms for 14 nodes.
constexpr uint64_t kMostStepsOfPair = 23'000;
// 45 ms, for more than 45 nodes.
constexpr uint64_t kMostSteps = 45'000'000;
// A packing that gains less than this over a path is not worth its lanes.
constexpr double kLeastGainOverPath = 1.01;

// The blocks that may help, and what limits the streams between their nodes.
struct Problem {
  std::vector<int> blocks;  // block index of each helper
  FlowNetwork network;
  std::vector<double> speeds;  // of each arc, from * (helpers + 1) + to

  double SpeedOf(int from, int to) const {
    return speeds[static_cast<size_t>(from) * (blocks.size() + 1) + static_cast<size_t>(to)];
  }
};

class ProblemMaker {
 public:
  explicit ProblemMaker(const PlanRequest& request)
      : request_(request), links_(request.cluster), takers_(Takers(request)) {}

  Problem Make(std::vector<int> blocks) {
    const auto helpers = static_cast<int>(blocks.size());
    const auto needed = static_cast<int>(request_.equation.terms.size());
    Problem problem{std::move(blocks), FlowNetwork(helpers, needed), {}};
    for (int from = 0; from < helpers; ++from) {
      for (int to = 0; to < helpers; ++to) AddArc(from, to, NodeOf(problem, to), &problem);
      if (takers_.size() == 1) {
        AddArc(from, helpers, takers_[0].node, &problem);
      } else {
        AddFan(from, &problem);
      }
    }
    if (takers_.size() > 1 || !KnowsRequestor(problem)) problem.network.LetOneHelperEnter();
    return problem;
  }

 private:
  const std::string& NodeOf(const Problem& problem, int helper) const {
    const int block = problem.blocks[static_cast<size_t>(helper)];
    return request_.block_nodes[static_cast<size_t>(block)];
  }

  // A wrong guess of its downlink would cost as many times as much as helpers send to it.
  bool KnowsRequestor(const Problem& problem) const {
    const std::string& requestor = takers_[0].node;
    for (const PlanNode& node : request_.cluster.nodes) {
      if (node.node == requestor && node.down_bytes_per_second > 0) return true;
    }
    const Links::End end = links_.At(requestor);
    for (int helper = 0; helper < static_cast<int>(problem.blocks.size()); ++helper) {
      if (links_.Known(links_.At(NodeOf(problem, helper)), end)) return true;
    }
    return false;
  }

  void AddArc(int from, int to, const std::string& receiver, Problem* problem) {
    const std::string& sender = NodeOf(*problem, from);
    const Links::End out = links_.At(sender);
    const Links::End in = links_.At(receiver);
    const double speed = links_.Between(out, in);
    problem->speeds.push_back(speed);
    if (sender == receiver) return;
    const auto use = [&](const char* kind, const std::string& name, double limit) {
      Use(from, to, kind, name, limit, problem);
    };
    use("up", sender, out.up());
    use("down", receiver, in.down());
    if (speed < std::min(out.up(), in.down())) {
      problem->network.Use(from, to, problem->network.AddLimit(speed));
    }
    if (!Links::CrossesRacks(out, in)) return;
    const std::string& sent_from = out.rack();
    const std::string& sent_to = in.rack();
    if (const double shared = links_.BetweenRacks(sent_from, sent_to); shared > 0) {
      use("from rack to rack", sent_from + " " + sent_to, shared);
    }
    const double rack = request_.cluster.rack_bytes_per_second;
    if (rack <= 0) return;
    use("out of", sent_from, rack);
    use("into", sent_to, rack);
  }

  // The arc to several requestors: the helper sends each of them its rows, which together are as
  // much as one stream between helpers.
  void AddFan(int from, Problem* problem) {
    const std::string& sender = NodeOf(*problem, from);
    const Links::End out = links_.At(sender);
    double speed = std::numeric_limits<double>::infinity();  // of the slowest, in whole streams
    double down = std::numeric_limits<double>::infinity();
    for (const Taker& taker : takers_) {
      const double streams =
          static_cast<double>(request_.equation.rows()) / static_cast<double>(taker.rows.size());
      const Links::End in = links_.At(taker.node);
      speed = std::min(speed, links_.Between(out, in) * streams);
      down = std::min(down, in.down() * streams);
    }
    const int fan = static_cast<int>(problem->blocks.size());
    problem->speeds.push_back(speed);
    Use(from, fan, "up", sender, out.up(), problem);
    Use(from, fan, "down", "all requestors", down, problem);
    problem->network.Use(from, fan, problem->network.AddLimit(speed));
  }

  void Use(int from, int to, const char* kind, const std::string& name, double limit,
           Problem* problem) {
    const auto [found, added] = limits_.try_emplace({kind, name});
    if (added) found->second = problem->network.AddLimit(limit);
    problem->network.Use(from, to, found->second);
  }

  const PlanRequest& request_;
  const Links links_;
  const std::vector<Taker> takers_;
  std::map<std::pair<std::string, std::string>, size_t> limits_;
};

// The seconds that a slice of one byte takes through the tree, without its last stream.
double Latency(const Problem& problem, const InTree& tree) {
  const auto helpers = static_cast<int>(problem.blocks.size());
  double longest = 0;
  for (int leaf = 0; leaf < helpers; ++leaf) {
    if (tree.parent[static_cast<size_t>(leaf)] == InTree::kOutside) continue;
    double sum = 0;
    for (int node = leaf; tree.parent[static_cast<size_t>(node)] != helpers;) {
      const int parent = tree.parent[static_cast<size_t>(node)];
      sum += 1 / problem.SpeedOf(node, parent);
      node = parent;
    }
    longest = std::max(longest, sum);
  }
  return longest;
}

// Leaves out the trees whose slices are so long under way that the rest is done sooner alone.
void DropSlowOnes(const PlanRequest& request, const Problem& problem,
                  std::vector<PackedTree>* trees) {
  std::vector<std::pair<double, PackedTree>> by_latency;
  for (PackedTree& tree : *trees) {
    const double latency = Latency(problem, tree.tree);
    by_latency.emplace_back(latency, std::move(tree));
  }
  std::stable_sort(by_latency.begin(), by_latency.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<double> seconds;  // with the trees up to each one
  double rate = 0;
  for (const auto& [latency, tree] : by_latency) {
    rate += tree.rate;
    seconds.push_back(static_cast<double>(request.grid.bytes) / rate +
                      request.grid.slice_bytes * latency);
  }
  const auto best = std::min_element(seconds.begin(), seconds.end()) - seconds.begin();
  trees->clear();
  for (auto& [latency, tree] : by_latency) {
    trees->push_back(std::move(tree));
    if (std::cmp_greater(trees->size(), best)) break;
  }
}

// Appends the helper after all that send to it. Returns its hop.
int AddHops(const PlanRequest& request, const std::map<int, const EquationTerm*>& terms,
            const Problem& problem, const InTree& tree, int helper, PlanLane* lane) {
  const int block = problem.blocks[static_cast<size_t>(helper)];
  PlanHop hop = HelperHop(request, *terms.at(block));
  for (int child = 0; child < static_cast<int>(problem.blocks.size()); ++child) {
    if (tree.parent[static_cast<size_t>(child)] != helper) continue;
    hop.inputs.push_back(
        PartialSums(AddHops(request, terms, problem, tree, child, lane), hop.rows));
  }
  lane->hops.push_back(std::move(hop));
  return static_cast<int>(lane->hops.size()) - 1;
}

PlanLane TreeLane(const PlanRequest& request, const std::vector<EquationTerm>& equation,
                  const Problem& problem, const InTree& tree) {
  std::map<int, const EquationTerm*> terms;
  for (const EquationTerm& term : equation) terms[term.block_index] = &term;
  PlanLane lane;
  const std::vector<Taker> takers = Takers(request);
  const auto helpers = static_cast<int>(problem.blocks.size());
  if (takers.size() > 1) {
    const auto last = std::find(tree.parent.begin(), tree.parent.end(), helpers);
    AddHops(request, terms, problem, tree, static_cast<int>(last - tree.parent.begin()), &lane);
    AddTakers(request, &lane);
    return lane;
  }
  PlanHop centre = CentreHop(request, takers[0]);
  for (int helper = 0; helper < helpers; ++helper) {
    if (tree.parent[static_cast<size_t>(helper)] != helpers) continue;
    centre.inputs.push_back(
        PartialSums(AddHops(request, terms, problem, tree, helper, &lane), centre.rows));
  }
  lane.hops.push_back(std::move(centre));
  return lane;
}

// The terms for the helpers of a tree. Empty: the code cannot use them.
class Equations {
 public:
  explicit Equations(const PlanRequest& request) : request_(request) {}

  const std::vector<EquationTerm>& Of(const std::vector<int>& blocks) {
    const auto [found, added] = known_.try_emplace(blocks);
    if (!added) return found->second;
    const RepairEquation& base = request_.equation;
    std::vector<int> of_base;
    for (const EquationTerm& term : base.terms) of_base.push_back(term.block_index);
    std::sort(of_base.begin(), of_base.end());
    if (of_base == blocks) return found->second = base.terms;
    if (request_.code == nullptr) return found->second;
    absl::StatusOr<RepairEquation> equation = request_.code->Equation(base.failed, blocks);
    if (!equation.ok() || equation->terms.size() != blocks.size()) return found->second;
    return found->second = std::move(equation->terms);
  }

 private:
  const PlanRequest& request_;
  std::map<std::vector<int>, std::vector<EquationTerm>> known_;
};

struct FlowPlan {
  PlanLanes lanes;
  double rate = 0;  // of the packing
};

// No lanes: the code cannot use the helpers of a tree.
FlowPlan Pack(const PlanRequest& request, std::vector<int> blocks) {
  const Problem problem = ProblemMaker(request).Make(std::move(blocks));
  const auto row_bytes = static_cast<double>(request.grid.bytes * request.equation.rows());
  PackingOptions options;
  options.most_trees =
      std::clamp<size_t>(kBufferBytes / (uint64_t{3} * request.grid.slice_bytes), 1, kMostTrees);
  options.most_steps =
      std::min(kMostSteps, kMostStepsOfPair * problem.blocks.size() * problem.blocks.size());
  options.most_steps_at_rate_1 = kPlanningShare * row_bytes * kStepsPerSecond;
  TreePacking packing = PackTrees(problem.network, options);
  DropSlowOnes(request, problem, &packing.trees);
  if (packing.trees.empty()) return {};
  const uint32_t slices = request.grid.slice_count();
  const std::vector<uint32_t> whole = WholeSlices(problem.network, packing.trees, slices);
  FlowPlan plan;
  Equations equations(request);
  std::vector<uint32_t> counts;
  for (size_t i = 0; i < packing.trees.size(); ++i) {
    if (whole[i] == 0) continue;
    const InTree& tree = packing.trees[i].tree;
    std::vector<int> helping;
    for (size_t helper = 0; helper < problem.blocks.size(); ++helper) {
      if (tree.parent[helper] != InTree::kOutside) helping.push_back(problem.blocks[helper]);
    }
    std::sort(helping.begin(), helping.end());
    const std::vector<EquationTerm>& terms = equations.Of(helping);
    if (terms.empty()) return {};
    plan.lanes.push_back(TreeLane(request, terms, problem, tree));
    plan.rate += packing.trees[i].rate;
    counts.push_back(whole[i]);
  }
  const std::vector<LaneSlices> whose = Interleaved(counts, slices);
  for (size_t i = 0; i < plan.lanes.size(); ++i) plan.lanes[i].slices = whose[i];
  return plan;
}

double RateOfPath(const PlanRequest& request, const std::vector<EquationTerm>& path) {
  const Links links(request.cluster);
  const double rack = request.cluster.rack_bytes_per_second;
  // Streams out of each rack, into each, and from one to another.
  std::map<std::pair<std::string, std::string>, int> streams;
  double rate = std::numeric_limits<double>::infinity();
  // `share`: of a stream with all rows.
  const auto cross = [&](const Links::End& from, const Links::End& to, double share) {
    rate = std::min(rate, links.Between(from, to) / share);
    if (!Links::CrossesRacks(from, to)) return;
    const std::string& sent_from = from.rack();
    const std::string& sent_to = to.rack();
    if (const double shared = links.BetweenRacks(sent_from, sent_to); shared > 0) {
      rate = std::min(rate, shared / ++streams[{sent_from, sent_to}]);
    }
    if (rack <= 0) return;
    rate = std::min(rate, rack / ++streams[{sent_from, ""}]);
    rate = std::min(rate, rack / ++streams[{"", sent_to}]);
  };
  std::vector<Links::End> nodes;
  for (const EquationTerm& term : path) {
    nodes.push_back(links.At(request.block_nodes[static_cast<size_t>(term.block_index)]));
  }
  for (size_t i = 0; i + 1 < nodes.size(); ++i) cross(nodes[i], nodes[i + 1], 1);
  // What it sends to all requestors together is as much as one stream with all rows.
  rate = std::min(rate, nodes.back().up());
  for (const Taker& taker : Takers(request)) {
    cross(nodes.back(), links.At(taker.node),
          static_cast<double>(taker.rows.size()) / static_cast<double>(request.equation.rows()));
  }
  return rate;
}

absl::StatusOr<PlanLanes> PlanFlow(const PlanRequest& request) {
  const std::vector<EquationTerm> path = WeightedPath(request);
  const bool racks_limit =
      request.cluster.rack_bytes_per_second > 0 || request.cluster.shared_by_racks != nullptr;
  // What several requestors take of racks' links is not in the program.
  if (Takers(request).size() > 1 && racks_limit) return PlanLanes{PathLane(request, path)};
  const double path_rate = RateOfPath(request, path);
  const auto row_bytes = static_cast<double>(request.grid.bytes * request.equation.rows());
  if (kPlanningShare * row_bytes / path_rate < kLeastPlanningSeconds) {
    return PlanLanes{PathLane(request, path)};
  }
  FlowPlan plan;
  if (request.code != nullptr) plan = Pack(request, request.survivors);
  if (plan.lanes.empty()) {
    std::vector<int> blocks;
    for (const EquationTerm& term : request.equation.terms) blocks.push_back(term.block_index);
    plan = Pack(request, std::move(blocks));
  }
  if (plan.rate <= kLeastGainOverPath * path_rate) {
    return PlanLanes{PathLane(request, path)};
  }
  return std::move(plan.lanes);
}

}  // namespace

extern const Scheme rp_flow = {.name = "rp-flow",
                               .help = "a packing of trees; for unequal links, uses all of them",
                               .timeslots = "1 + (k-1)/s",
                               .source = "beyond the paper",
                               .looks_at = {.links = true},
                               .weighs_lanes = true,
                               .rank = 57,
                               .plan = PlanFlow};

}  // namespace ecpipe::schemes
