// SPDX-License-Identifier: Apache-2.0
#include "coordinator/helper_paths.h"

#include <algorithm>
#include <map>

#include "common/status.h"
#include "coordinator/path_search.h"

namespace ecpipe {
namespace {

const std::string& NodeOf(const PlanRequest& request, int block) {
  return request.block_nodes[static_cast<size_t>(block)];
}

std::vector<int> BlocksOf(const RepairEquation& equation) {
  std::vector<int> blocks;
  for (const EquationTerm& term : equation.terms) blocks.push_back(term.block_index);
  return blocks;
}

// The blocks among which a scheme may choose, those to prefer first.
std::vector<int> Candidates(const PlanRequest& request) {
  return request.code == nullptr ? BlocksOf(request.equation) : request.survivors;
}

// The terms of the request's own equation, in another order.
std::vector<EquationTerm> Reordered(const PlanRequest& request, const std::vector<int>& blocks) {
  std::vector<EquationTerm> terms;
  for (const int block : blocks) {
    terms.push_back(
        *std::find_if(request.equation.terms.begin(), request.equation.terms.end(),
                      [&](const EquationTerm& term) { return term.block_index == block; }));
  }
  return terms;
}

LinkSpeeds SpeedsAmong(const PlanRequest& request, const std::vector<int>& blocks) {
  const Links links(request.cluster);
  const double rows = static_cast<double>(request.equation.failed.size());
  std::map<std::string, double> rows_wanted;  // by requestor
  for (const std::string& requestor : request.requestors) rows_wanted[requestor] += 1;
  const int count = static_cast<int>(blocks.size());
  LinkSpeeds speeds(count);
  for (int from = 0; from < count; ++from) {
    const std::string& sender = NodeOf(request, blocks[static_cast<size_t>(from)]);
    for (int to = 0; to < count; ++to) {
      if (from == to) continue;
      speeds.Set(from, to,
                 links.Between(sender, NodeOf(request, blocks[static_cast<size_t>(to)])) / rows);
    }
    double last = links.Up(sender) / rows;
    for (const auto& [requestor, wanted] : rows_wanted) {
      last = std::min(last, links.Between(sender, requestor) / wanted);
    }
    speeds.Set(from, speeds.requestor(), last);
  }
  return speeds;
}

std::vector<int> BestPath(const PlanRequest& request, const std::vector<int>& blocks) {
  const WidestPath path =
      FindWidestPath(SpeedsAmong(request, blocks), static_cast<int>(request.equation.terms.size()));
  std::vector<int> order;
  for (const int helper : path.helpers) order.push_back(blocks[static_cast<size_t>(helper)]);
  return order;
}

}  // namespace

absl::StatusOr<std::vector<EquationTerm>> RackAwarePath(const PlanRequest& request) {
  const Links links(request.cluster);
  const std::string& home = links.RackOf(request.requestors[0]);
  struct Rack {
    bool is_home = false;
    std::vector<int> blocks;
  };
  std::vector<Rack> racks;
  std::map<std::string, size_t> index;
  for (const int block : Candidates(request)) {
    const std::string& rack = links.RackOf(NodeOf(request, block));
    const std::string key = rack.empty() ? "\n" + NodeOf(request, block) : rack;
    const auto [found, added] = index.try_emplace(key, racks.size());
    if (added) racks.push_back({!home.empty() && rack == home, {}});
    racks[found->second].blocks.push_back(block);
  }
  std::stable_sort(racks.begin(), racks.end(), [](const Rack& a, const Rack& b) {
    if (a.is_home != b.is_home) return a.is_home;
    return a.blocks.size() > b.blocks.size();
  });
  std::vector<int> order;
  for (const Rack& rack : racks) {
    order.insert(order.end(), rack.blocks.begin(), rack.blocks.end());
  }
  std::vector<EquationTerm> terms;
  if (request.code == nullptr) {
    terms = Reordered(request, order);
  } else {
    ECPIPE_ASSIGN_OR_RETURN(RepairEquation equation,
                            request.code->Equation(request.equation.failed, order));
    terms = std::move(equation.terms);
  }
  std::reverse(terms.begin(), terms.end());
  return terms;
}

absl::StatusOr<std::vector<EquationTerm>> WeightedPath(const PlanRequest& request) {
  if (request.code != nullptr) {
    const std::vector<int> order = BestPath(request, request.survivors);
    absl::StatusOr<RepairEquation> equation =
        request.code->Equation(request.equation.failed, order);
    if (equation.ok() && BlocksOf(*equation) == order) return std::move(equation->terms);
  }
  return Reordered(request, BestPath(request, BlocksOf(request.equation)));
}

}  // namespace ecpipe
