// SPDX-License-Identifier: Apache-2.0
#include "coordinator/planning/trees/cheapest_tree.h"

#include <limits>
#include <utility>

#include "coordinator/planning/trees/spanning_tree.h"

namespace ecpipe {
namespace {

constexpr int kNone = -1;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
// A change must gain more than rounding can.
constexpr double kLeastSaving = 1e-12;

bool Inside(const InTree& tree, int helper) {
  return tree.parent[static_cast<size_t>(helper)] != InTree::kOutside;
}

}  // namespace

CheapestTree::CheapestTree(const FlowNetwork* network)
    : network_(*network),
      helpers_(network->helpers()),
      cost_(static_cast<size_t>(helpers_) * (static_cast<size_t>(helpers_) + 1)) {}

void CheapestTree::PriceArcs(const std::vector<double>& prices) {
  for (int from = 0; from < helpers_; ++from) {
    for (int to = 0; to <= helpers_; ++to) {
      double cost = 0;
      for (const uint32_t limit : network_.LimitsOf(from, to)) cost += prices[limit];
      Cost(from, to) = from == to ? kInfinity : cost;
    }
  }
  steps_ += 3 * cost_.size();
}

void CheapestTree::Grow(int size, int first, InTree* tree) {
  std::vector<double> best(static_cast<size_t>(helpers_));
  std::vector<int> to(static_cast<size_t>(helpers_), helpers_);
  for (int helper = 0; helper < helpers_; ++helper) {
    best[static_cast<size_t>(helper)] = Cost(helper, helpers_);
  }
  tree->parent.assign(static_cast<size_t>(helpers_), InTree::kOutside);
  for (int count = 0; count < size; ++count) {
    int next = count == 0 ? first : kNone;
    for (int helper = 0; helper < helpers_; ++helper) {
      if (Inside(*tree, helper) || (count == 0 && first != kNone)) continue;
      if (next < 0 || best[static_cast<size_t>(helper)] < best[static_cast<size_t>(next)]) {
        next = helper;
      }
    }
    tree->parent[static_cast<size_t>(next)] = to[static_cast<size_t>(next)];
    if (count == 0 && network_.one_enters()) best.assign(best.size(), kInfinity);
    for (int helper = 0; helper < helpers_; ++helper) {
      const double cost = Cost(helper, next);
      if (cost >= best[static_cast<size_t>(helper)] || Inside(*tree, helper)) continue;
      best[static_cast<size_t>(helper)] = cost;
      to[static_cast<size_t>(helper)] = next;
    }
  }
  steps_ += 2 * static_cast<uint64_t>(size) * static_cast<uint64_t>(helpers_);
}

std::vector<int> CheapestTree::ChildrenOf(const InTree& tree) const {
  std::vector<int> children(static_cast<size_t>(helpers_) + 1, 0);
  for (const int parent : tree.parent) {
    if (parent != InTree::kOutside) ++children[static_cast<size_t>(parent)];
  }
  return children;
}

void CheapestTree::CutLeaves(InTree* tree) {
  std::vector<int> children = ChildrenOf(*tree);
  for (int count = helpers_; count > network_.needed(); --count) {
    int dearest = -1;
    for (int helper = 0; helper < helpers_; ++helper) {
      if (!Inside(*tree, helper) || children[static_cast<size_t>(helper)] > 0) continue;
      if (dearest < 0 || Cost(helper, tree->parent[static_cast<size_t>(helper)]) >
                             Cost(dearest, tree->parent[static_cast<size_t>(dearest)])) {
        dearest = helper;
      }
    }
    int& parent = tree->parent[static_cast<size_t>(dearest)];
    --children[static_cast<size_t>(parent)];
    parent = InTree::kOutside;
    steps_ += static_cast<uint64_t>(helpers_);
  }
}

bool CheapestTree::IsBelow(const InTree& tree, int node, int above) const {
  while (node != helpers_ && node != above) node = tree.parent[static_cast<size_t>(node)];
  return node == above;
}

// Whether that node may receive what the helper, or who takes its place, sends.
bool CheapestTree::MaySend(const InTree& tree, int helper, int to) const {
  if (to != helpers_) return Inside(tree, to);
  return !network_.one_enters() || tree.parent[static_cast<size_t>(helper)] == helpers_;
}

bool CheapestTree::MoveHelpers(InTree* tree) {
  bool moved = false;
  for (int helper = 0; helper < helpers_; ++helper) {
    if (!Inside(*tree, helper)) continue;
    int& parent = tree->parent[static_cast<size_t>(helper)];
    for (int to = 0; to <= helpers_; ++to) {
      if (Cost(helper, to) >= Cost(helper, parent) - kLeastSaving) continue;
      if (!MaySend(*tree, helper, to)) continue;
      if (to != helpers_ && IsBelow(*tree, to, helper)) continue;
      parent = to;
      moved = true;
    }
  }
  steps_ += static_cast<uint64_t>(network_.needed()) * static_cast<uint64_t>(helpers_);
  return moved;
}

bool CheapestTree::SwapLeaf(InTree* tree) {
  if (network_.needed() == helpers_) return false;
  const std::vector<int> children = ChildrenOf(*tree);
  int leaf = -1;
  for (int helper = 0; helper < helpers_; ++helper) {
    if (!Inside(*tree, helper) || children[static_cast<size_t>(helper)] > 0) continue;
    if (leaf < 0 || Cost(helper, tree->parent[static_cast<size_t>(helper)]) >
                        Cost(leaf, tree->parent[static_cast<size_t>(leaf)])) {
      leaf = helper;
    }
  }
  int best = -1;
  int best_to = helpers_;
  double best_cost = Cost(leaf, tree->parent[static_cast<size_t>(leaf)]) - kLeastSaving;
  for (int helper = 0; helper < helpers_; ++helper) {
    if (Inside(*tree, helper)) continue;
    for (int to = 0; to <= helpers_; ++to) {
      if (to == leaf || Cost(helper, to) >= best_cost || !MaySend(*tree, leaf, to)) continue;
      best = helper;
      best_to = to;
      best_cost = Cost(helper, to);
    }
  }
  steps_ +=
      static_cast<uint64_t>(helpers_ - network_.needed() + 1) * static_cast<uint64_t>(helpers_);
  if (best < 0) return false;
  tree->parent[static_cast<size_t>(leaf)] = InTree::kOutside;
  tree->parent[static_cast<size_t>(best)] = best_to;
  return true;
}

void CheapestTree::Improve(InTree* tree) {
  constexpr int kMostPasses = 4;
  for (int pass = 0; pass < kMostPasses; ++pass) {
    const bool moved = MoveHelpers(tree);
    const bool swapped = SwapLeaf(tree);
    if (!moved && !swapped) return;
  }
}

double CheapestTree::PriceOf(const InTree& tree) {
  double price = 0;
  for (int helper = 0; helper < helpers_; ++helper) {
    if (Inside(tree, helper)) price += Cost(helper, tree.parent[static_cast<size_t>(helper)]);
  }
  return price;
}

PricedTree CheapestTree::Priced(InTree tree) {
  const double price = PriceOf(tree);
  return {std::move(tree), price};
}

PricedTree CheapestTree::Grown(int first) {
  InTree tree;
  Grow(network_.needed(), first, &tree);
  Improve(&tree);
  return Priced(std::move(tree));
}

PricedTree CheapestTree::Cut() {
  InTree tree;
  Grow(helpers_, kNone, &tree);
  MoveHelpers(&tree);
  CutLeaves(&tree);
  Improve(&tree);
  return Priced(std::move(tree));
}

PricedTree CheapestTree::Find(const std::vector<double>& prices) {
  PriceArcs(prices);
  PricedTree grown = Grown(kNone);
  if (network_.needed() == helpers_) return grown;
  PricedTree cut = Cut();
  return cut.price < grown.price ? cut : grown;
}

PricedTree CheapestTree::SpanningTree(const std::vector<int>& helpers) {
  ArcCosts costs(helpers.size());
  for (size_t from = 0; from < helpers.size(); ++from) {
    for (size_t to = 0; to < helpers.size(); ++to) {
      costs.At(from, to) = Cost(helpers[from], helpers[to]);
    }
    costs.At(from, helpers.size()) = Cost(helpers[from], helpers_);
  }
  const std::vector<size_t> parents = CheapestSpanningTree(costs);
  InTree tree;
  tree.parent.assign(static_cast<size_t>(helpers_), InTree::kOutside);
  for (size_t from = 0; from < helpers.size(); ++from) {
    const size_t to = parents[from];
    tree.parent[static_cast<size_t>(helpers[from])] = to == helpers.size() ? helpers_ : helpers[to];
  }
  steps_ += 4 * helpers.size() * helpers.size();
  return Priced(std::move(tree));
}

// The best tree whose helpers are the same but for one. Returns whether it is cheaper.
bool CheapestTree::Exchange(PricedTree* best) {
  std::vector<int> inside;
  std::vector<int> outside;
  for (int helper = 0; helper < helpers_; ++helper) {
    (Inside(best->tree, helper) ? inside : outside).push_back(helper);
  }
  bool better = false;
  for (size_t i = 0; i < inside.size(); ++i) {
    for (const int other : outside) {
      std::vector<int> exchanged = inside;
      exchanged[i] = other;
      PricedTree tree = SpanningTree(exchanged);
      if (tree.price >= best->price - kLeastSaving) continue;
      *best = std::move(tree);
      better = true;
    }
  }
  return better;
}

PricedTree CheapestTree::BestOfAllEntries(PricedTree best) {
  for (int first = 0; first < helpers_; ++first) {
    if (PricedTree tree = Grown(first); tree.price < best.price) best = std::move(tree);
  }
  return best;
}

PricedTree CheapestTree::FindThoroughly(const std::vector<double>& prices) {
  PricedTree best = Find(prices);
  if (network_.one_enters()) return BestOfAllEntries(std::move(best));
  std::vector<int> helpers;
  for (int helper = 0; helper < helpers_; ++helper) {
    if (Inside(best.tree, helper)) helpers.push_back(helper);
  }
  if (PricedTree tree = SpanningTree(helpers); tree.price < best.price) best = std::move(tree);
  constexpr int kMostExchanges = 8;
  constexpr size_t kMostStepsOfExchange = 100'000;
  const size_t others = static_cast<size_t>(helpers_) - helpers.size();
  if (4 * helpers.size() * helpers.size() * helpers.size() * others > kMostStepsOfExchange) {
    return best;
  }
  for (int i = 0; i < kMostExchanges && Exchange(&best); ++i) {
  }
  return best;
}

}  // namespace ecpipe
