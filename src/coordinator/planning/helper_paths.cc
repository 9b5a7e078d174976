// SPDX-License-Identifier: Apache-2.0
#include "coordinator/planning/helper_paths.h"

#include <algorithm>
#include <map>
#include <utility>

#include "coordinator/planning/path_search.h"

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
  std::vector<Links::End> helpers;
  for (const int block : blocks) helpers.push_back(links.At(NodeOf(request, block)));
  std::map<std::string, double> rows_wanted;  // by requestor
  for (const std::string& requestor : request.requestors) rows_wanted[requestor] += 1;
  std::vector<std::pair<Links::End, double>> takers;  // with the rows that each wants
  for (const auto& [requestor, wanted] : rows_wanted) {
    takers.emplace_back(links.At(requestor), wanted);
  }
  const int count = static_cast<int>(blocks.size());
  LinkSpeeds speeds(count);
  for (int from = 0; from < count; ++from) {
    const Links::End& sender = helpers[static_cast<size_t>(from)];
    for (int to = 0; to < count; ++to) {
      if (from == to) continue;
      speeds.Set(from, to, links.Between(sender, helpers[static_cast<size_t>(to)]) / rows);
    }
    double last = sender.up() / rows;
    for (const auto& [taker, wanted] : takers) {
      last = std::min(last, links.Between(sender, taker) / wanted);
    }
    speeds.Set(from, speeds.requestor(), last);
  }
  return speeds;
}

RackRule RulesAmong(const PlanRequest& request, const std::vector<int>& blocks) {
  const Links links(request.cluster);
  const std::string& home = links.At(request.requestors[0]).rack();
  RackRule rule;
  std::map<std::string, int> numbers;
  const auto number = [&](const std::string& rack) {
    return numbers.try_emplace(rack, static_cast<int>(numbers.size())).first->second;
  };
  for (const int block : blocks) {
    const std::string& rack = links.At(NodeOf(request, block)).rack();
    rule.rack_of.push_back(number(rack.empty() ? "\n" + NodeOf(request, block) : rack));
  }
  if (numbers.contains(home)) rule.home = numbers[home];
  rule.most_remote = FewestRemoteRacks(rule, static_cast<int>(request.equation.terms.size()));
  return rule;
}

using FindPath = WidestPath (*)(const PlanRequest& request, const std::vector<int>& blocks);

WidestPath AnyPath(const PlanRequest& request, const std::vector<int>& blocks) {
  return FindWidestPath(SpeedsAmong(request, blocks),
                        static_cast<int>(request.equation.terms.size()));
}

WidestPath PathOfFewestRacks(const PlanRequest& request, const std::vector<int>& blocks) {
  return FindWidestPath(SpeedsAmong(request, blocks), RulesAmong(request, blocks),
                        static_cast<int>(request.equation.terms.size()));
}

// Of all survivors if the code can use what is found, else of the blocks that it chose itself.
std::vector<EquationTerm> TermsOf(const PlanRequest& request, FindPath find) {
  const auto found = [&](const std::vector<int>& blocks) {
    std::vector<int> order;
    for (const int helper : find(request, blocks).helpers) {
      order.push_back(blocks[static_cast<size_t>(helper)]);
    }
    return order;
  };
  if (request.code != nullptr) {
    const std::vector<int> order = found(request.survivors);
    absl::StatusOr<RepairEquation> equation =
        request.code->Equation(request.equation.failed, order);
    if (equation.ok() && BlocksOf(*equation) == order) return std::move(equation->terms);
  }
  return Reordered(request, found(BlocksOf(request.equation)));
}

}  // namespace

std::vector<EquationTerm> RackAwarePath(const PlanRequest& request) {
  return TermsOf(request, PathOfFewestRacks);
}

std::vector<EquationTerm> WeightedPath(const PlanRequest& request) {
  return TermsOf(request, AnyPath);
}

std::vector<std::vector<int>> PathsThrough(const std::vector<std::vector<std::string>>& nodes,
                                           const PlanRequest& request) {
  std::vector<std::vector<int>> paths;
  for (const std::vector<std::string>& names : nodes) {
    std::vector<int>& path = paths.emplace_back();
    for (const std::string& name : names) {
      const auto found = std::find_if(request.survivors.begin(), request.survivors.end(),
                                      [&](int block) { return NodeOf(request, block) == name; });
      if (found == request.survivors.end()) return {};
      path.push_back(*found);
    }
  }
  return paths;
}

}  // namespace ecpipe
