// SPDX-License-Identifier: Apache-2.0
// The cheapest in-tree of all nodes of a directed graph: the algorithm of Chu and Liu, and Edmonds.
#pragma once

#include <cstddef>
#include <vector>

namespace ecpipe {

// The cost of each arc from a node 0 to nodes - 1 to another one, or to the root, which is `nodes`.
class ArcCosts {
 public:
  explicit ArcCosts(size_t nodes) : nodes_(nodes), costs_(nodes * (nodes + 1)) {}

  size_t nodes() const { return nodes_; }
  double& At(size_t from, size_t to) { return costs_[from * (nodes_ + 1) + to]; }
  double At(size_t from, size_t to) const { return costs_[from * (nodes_ + 1) + to]; }

 private:
  size_t nodes_;
  std::vector<double> costs_;
};

// The parent of each node, in a tree that ends at the root and costs least. Costs are 0 or more; an
// arc from a node to itself is not looked at. Cubic in the worst case, mostly about quadratic.
std::vector<size_t> CheapestSpanningTree(const ArcCosts& costs);

}  // namespace ecpipe
