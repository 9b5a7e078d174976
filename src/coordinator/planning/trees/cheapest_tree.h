// SPDX-License-Identifier: Apache-2.0
// A cheap in-tree for prices on limits: the column that a packing lacks.
#pragma once

#include <cstdint>
#include <vector>

#include "coordinator/planning/trees/flow_network.h"

namespace ecpipe {

struct PricedTree {
  InTree tree;
  double price = 0;
};

// Looks for the cheapest in-tree of network.needed() helpers, where an arc costs the sum of the
// prices of the limits that it uses. A heuristic, since the problem is NP-hard: the tree grows from
// the requestor by the cheapest arc, or grows over all helpers and loses its dearest leaves; then
// helpers move to cheaper parents, and cheaper helpers take the place of leaves. Where all helpers
// are needed, FindThoroughly() is exact.
class CheapestTree {
 public:
  // `network` outlives the object.
  explicit CheapestTree(const FlowNetwork* network);

  // One price, 0 or more, for each limit.
  PricedTree Find(const std::vector<double>& prices);
  // The same with the cheapest tree of each set of helpers that is looked at, and a look at all
  // sets that differ in one helper. Takes some hundred times as long.
  PricedTree FindThoroughly(const std::vector<double>& prices);
  // About the number of elementary steps of all calls. What is counted takes three of them.
  uint64_t steps() const { return 3 * steps_; }

 private:
  double& Cost(int from, int to) { return cost_[Index(from, to)]; }
  size_t Index(int from, int to) const {
    return static_cast<size_t>(from) * (static_cast<size_t>(helpers_) + 1) +
           static_cast<size_t>(to);
  }
  void PriceArcs(const std::vector<double>& prices);
  // Makes the tree from nothing, until it has `size` helpers; `first`, or the cheapest if that is
  // none, is the first of them.
  void Grow(int size, int first, InTree* tree);
  void CutLeaves(InTree* tree);
  bool MoveHelpers(InTree* tree);
  bool SwapLeaf(InTree* tree);
  void Improve(InTree* tree);
  std::vector<int> ChildrenOf(const InTree& tree) const;
  bool IsBelow(const InTree& tree, int node, int above) const;
  double PriceOf(const InTree& tree);
  PricedTree Priced(InTree tree);
  PricedTree Grown(int first);
  PricedTree Cut();
  // The cheapest tree of these helpers.
  PricedTree SpanningTree(const std::vector<int>& helpers);
  bool Exchange(PricedTree* best);
  bool MaySend(const InTree& tree, int helper, int to) const;
  PricedTree BestOfAllEntries(PricedTree best);

  const FlowNetwork& network_;
  const int helpers_;
  uint64_t steps_ = 0;
  std::vector<double> cost_;
};

}  // namespace ecpipe
