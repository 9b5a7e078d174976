// SPDX-License-Identifier: Apache-2.0
#include "coordinator/planning/trees/spanning_tree.h"

#include <algorithm>

namespace ecpipe {
namespace {

std::vector<size_t> CheapestParents(const ArcCosts& costs) {
  std::vector<size_t> parents(costs.nodes(), costs.nodes());
  for (size_t from = 0; from < costs.nodes(); ++from) {
    for (size_t to = 0; to < costs.nodes(); ++to) {
      if (to != from && costs.At(from, to) < costs.At(from, parents[from])) parents[from] = to;
    }
  }
  return parents;
}

// Some circle of nodes that are each other's parents; empty if there is none.
std::vector<size_t> FindCircle(const std::vector<size_t>& parents) {
  const size_t root = parents.size();
  std::vector<size_t> seen_from(root, root);
  for (size_t start = 0; start < root; ++start) {
    size_t node = start;
    while (node != root && seen_from[node] == root) {
      seen_from[node] = start;
      node = parents[node];
    }
    if (node == root || seen_from[node] != start) continue;
    std::vector<size_t> circle = {node};
    for (size_t next = parents[node]; next != node; next = parents[next]) circle.push_back(next);
    return circle;
  }
  return {};
}

// The graph with a circle made into one node, which is the last one before the root.
struct Contracted {
  ArcCosts costs;
  std::vector<size_t> nodes;   // the old name of each node outside the circle; then of the root
  std::vector<size_t> leaves;  // by new receiver: the node of the circle that best sends there
  std::vector<size_t> enters;  // by new sender: the node of the circle that it best sends to
};

Contracted Contract(const ArcCosts& costs, const std::vector<size_t>& parents,
                    const std::vector<size_t>& circle) {
  std::vector<size_t> outside;
  for (size_t node = 0; node <= costs.nodes(); ++node) {
    if (std::find(circle.begin(), circle.end(), node) == circle.end()) outside.push_back(node);
  }
  const size_t count = outside.size();  // with the root, and so without the circle
  Contracted to{ArcCosts(count), std::move(outside), std::vector<size_t>(count + 1, circle[0]),
                std::vector<size_t>(count, circle[0])};
  const size_t centre = count - 1;
  const auto old_name = [&](size_t node) { return to.nodes[node == count ? centre : node]; };
  for (size_t from = 0; from < centre; ++from) {
    for (size_t receiver = 0; receiver <= count; ++receiver) {
      if (receiver == centre || receiver == from) continue;
      to.costs.At(from, receiver) = costs.At(old_name(from), old_name(receiver));
    }
    for (const size_t node : circle) {
      if (costs.At(old_name(from), node) < costs.At(old_name(from), to.enters[from])) {
        to.enters[from] = node;
      }
    }
    to.costs.At(from, centre) = costs.At(old_name(from), to.enters[from]);
  }
  // Who leaves the circle saves the arc that he had in it.
  const auto extra = [&](size_t node, size_t receiver) {
    return costs.At(node, old_name(receiver)) - costs.At(node, parents[node]);
  };
  for (size_t receiver = 0; receiver <= count; ++receiver) {
    if (receiver == centre) continue;
    for (const size_t node : circle) {
      if (extra(node, receiver) < extra(to.leaves[receiver], receiver)) {
        to.leaves[receiver] = node;
      }
    }
    to.costs.At(centre, receiver) = extra(to.leaves[receiver], receiver);
  }
  return to;
}

}  // namespace

std::vector<size_t> CheapestSpanningTree(const ArcCosts& costs) {
  std::vector<size_t> parents = CheapestParents(costs);
  const std::vector<size_t> circle = FindCircle(parents);
  if (circle.empty()) return parents;
  const Contracted inner = Contract(costs, parents, circle);
  const std::vector<size_t> found = CheapestSpanningTree(inner.costs);
  const size_t count = inner.costs.nodes();
  const size_t centre = count - 1;
  const auto old_name = [&](size_t node) { return inner.nodes[node == count ? centre : node]; };
  for (size_t node = 0; node < centre; ++node) {
    parents[old_name(node)] = found[node] == centre ? inner.enters[node] : old_name(found[node]);
  }
  parents[inner.leaves[found[centre]]] = old_name(found[centre]);
  return parents;
}

}  // namespace ecpipe
