// SPDX-License-Identifier: Apache-2.0
#include "coordinator/planning/trees/tree_packing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "coordinator/planning/trees/whole_slices.h"

namespace ecpipe::tree_packing_test {
namespace {

using Random = std::mt19937_64;

double Between(Random& random, double least, double most) {
  return least + (most - least) * static_cast<double>(random() % 100'000) / 1e5;
}

// Random uplinks, downlinks and pairs, and two regions of which one sends through a shared link.
FlowNetwork RandomNetwork(Random& random, int helpers, int needed) {
  FlowNetwork network(helpers, needed);
  std::vector<size_t> up;
  std::vector<size_t> down;
  for (int i = 0; i < helpers; ++i) up.push_back(network.AddLimit(Between(random, 10, 200)));
  for (int i = 0; i <= helpers; ++i) down.push_back(network.AddLimit(Between(random, 10, 200)));
  const bool slow_pairs = random() % 2 == 0;
  const bool regions = random() % 2 == 0;
  const size_t shared = network.AddLimit(Between(random, 20, 300));
  for (int from = 0; from < helpers; ++from) {
    for (int to = 0; to <= helpers; ++to) {
      if (from == to) continue;
      network.Use(from, to, up[static_cast<size_t>(from)]);
      network.Use(from, to, down[static_cast<size_t>(to)]);
      if (slow_pairs) network.Use(from, to, network.AddLimit(Between(random, 2, 60)));
      if (regions && from % 2 == 0 && to % 2 == 1) network.Use(from, to, shared);
    }
  }
  return network;
}

// Every in-tree of network.needed() helpers.
void ForEachTree(const FlowNetwork& network, const std::function<void(const InTree&)>& take) {
  const int helpers = network.helpers();
  InTree tree;
  tree.parent.assign(static_cast<size_t>(helpers), InTree::kOutside);
  const auto ends_at_requestor = [&] {
    int inside = 0;
    if (network.one_enters() && std::count(tree.parent.begin(), tree.parent.end(), helpers) != 1) {
      return false;
    }
    for (int helper = 0; helper < helpers; ++helper) {
      int node = helper;
      if (tree.parent[static_cast<size_t>(node)] == InTree::kOutside) continue;
      ++inside;
      for (int steps = 0; node != helpers; ++steps) {
        node = tree.parent[static_cast<size_t>(node)];
        if (node == InTree::kOutside || steps > helpers) return false;
      }
    }
    return inside == network.needed();
  };
  const std::function<void(int)> choose = [&](int helper) {
    if (helper == helpers) {
      if (ends_at_requestor()) take(tree);
      return;
    }
    for (int to = InTree::kOutside; to <= helpers; ++to) {
      if (to == helper) continue;
      tree.parent[static_cast<size_t>(helper)] = to;
      choose(helper + 1);
    }
    tree.parent[static_cast<size_t>(helper)] = InTree::kOutside;
  };
  choose(0);
}

// The linear program over all trees, by the simplex method on the whole tableau: slow and plain.
double ExactRate(const FlowNetwork& network) {
  const size_t rows = network.limits().size();
  std::vector<std::vector<double>> columns;
  ForEachTree(network, [&](const InTree& tree) {
    std::vector<double>& column = columns.emplace_back(rows, 0);
    for (const LimitUse& use : UsesOf(network, tree)) column[use.limit] = use.times;
  });
  const size_t width = columns.size() + rows + 1;
  std::vector<std::vector<double>> table(rows + 1, std::vector<double>(width, 0));
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < columns.size(); ++j) table[i][j] = columns[j][i];
    table[i][columns.size() + i] = 1;
    table[i][width - 1] = network.limits()[i];
  }
  for (size_t j = 0; j < columns.size(); ++j) table[rows][j] = -1;
  while (true) {
    std::vector<double>& gains = table[rows];
    const auto entering =
        static_cast<size_t>(std::min_element(gains.begin(), gains.end() - 1) - gains.begin());
    if (gains[entering] > -1e-9) return gains[width - 1];
    size_t leaving = rows;
    for (size_t i = 0; i < rows; ++i) {
      if (table[i][entering] < 1e-9) continue;
      const auto ratio = [&](size_t row) { return table[row][width - 1] / table[row][entering]; };
      if (leaving == rows || ratio(i) < ratio(leaving)) leaving = i;
    }
    const double pivot = table[leaving][entering];
    for (double& value : table[leaving]) value /= pivot;
    for (size_t i = 0; i <= rows; ++i) {
      const double by = table[i][entering];
      if (i == leaving || by == 0) continue;
      for (size_t j = 0; j < width; ++j) table[i][j] -= by * table[leaving][j];
    }
  }
}

void ExpectTree(const FlowNetwork& network, const InTree& tree) {
  int inside = 0;
  for (int helper = 0; helper < network.helpers(); ++helper) {
    int node = helper;
    if (tree.parent[static_cast<size_t>(node)] == InTree::kOutside) continue;
    ++inside;
    for (int steps = 0; node != network.requestor(); ++steps) {
      ASSERT_LE(steps, network.helpers()) << "a circle";
      node = tree.parent[static_cast<size_t>(node)];
      ASSERT_NE(node, InTree::kOutside);
    }
  }
  EXPECT_EQ(inside, network.needed());
}

// The share of the limit that is used most.
double Fullest(const FlowNetwork& network, const TreePacking& packing) {
  std::vector<double> load(network.limits().size(), 0);
  for (const PackedTree& packed : packing.trees) {
    for (const LimitUse& use : UsesOf(network, packed.tree)) {
      load[use.limit] += use.times * packed.rate;
    }
  }
  double fullest = 0;
  for (size_t i = 0; i < load.size(); ++i)
    fullest = std::max(fullest, load[i] / network.limits()[i]);
  return fullest;
}

void ExpectPacking(const FlowNetwork& network, const TreePacking& packing, size_t most_trees) {
  ASSERT_FALSE(packing.trees.empty());
  EXPECT_LE(packing.trees.size(), most_trees);
  double rate = 0;
  for (const PackedTree& packed : packing.trees) {
    EXPECT_GT(packed.rate, 0);
    rate += packed.rate;
    ASSERT_NO_FATAL_FAILURE(ExpectTree(network, packed.tree));
  }
  EXPECT_NEAR(rate, packing.rate, 1e-9 * rate);
  EXPECT_LE(Fullest(network, packing), 1 + 1e-9);
}

TEST(TreePacking, IsNearTheBestOfAllTrees) {
  Random random(20260411);
  for (int round = 0; round < 120; ++round) {
    const int helpers = 2 + static_cast<int>(random() % 4);
    const int needed = 1 + static_cast<int>(random() % static_cast<uint64_t>(helpers));
    const FlowNetwork network = RandomNetwork(random, helpers, needed);
    const TreePacking packing = PackTrees(network, {});
    SCOPED_TRACE("round " + std::to_string(round));
    ASSERT_NO_FATAL_FAILURE(ExpectPacking(network, packing, 64));
    const double exact = ExactRate(network);
    EXPECT_GE(packing.rate, 0.95 * exact) << needed << " of " << helpers;
    EXPECT_LE(packing.rate, exact * (1 + 1e-9));
  }
}

TEST(TreePacking, EntersByOneHelperWhereToldTo) {
  Random random(20260421);
  for (int round = 0; round < 60; ++round) {
    const int helpers = 2 + static_cast<int>(random() % 4);
    const int needed = 1 + static_cast<int>(random() % static_cast<uint64_t>(helpers));
    FlowNetwork network = RandomNetwork(random, helpers, needed);
    network.LetOneHelperEnter();
    const TreePacking packing = PackTrees(network, {});
    SCOPED_TRACE("round " + std::to_string(round));
    ASSERT_NO_FATAL_FAILURE(ExpectPacking(network, packing, 64));
    for (const PackedTree& packed : packing.trees) {
      EXPECT_EQ(std::count(packed.tree.parent.begin(), packed.tree.parent.end(), helpers), 1);
    }
    EXPECT_GE(packing.rate, 0.9 * ExactRate(network));
  }
}

TEST(TreePacking, KeepsTheLimitsOfLargeNetworks) {
  Random random(20260412);
  for (const int helpers : {13, 15, 30, 59}) {
    const FlowNetwork network = RandomNetwork(random, helpers, 2 * helpers / 3);
    PackingOptions options;
    options.most_steps = 250'000 * static_cast<uint64_t>(helpers);
    for (const size_t most_trees : {size_t{64}, size_t{3}}) {
      options.most_trees = most_trees;
      const TreePacking packing = PackTrees(network, options);
      SCOPED_TRACE(std::to_string(helpers) + " helpers");
      ASSERT_NO_FATAL_FAILURE(ExpectPacking(network, packing, most_trees));
    }
  }
}

// The time that it takes is bounded by the steps, also by fewer for what is repaired fast.
TEST(TreePacking, EndsWhenItsTimeIsUp) {
  Random random(20260413);
  const FlowNetwork network = RandomNetwork(random, 59, 40);
  PackingOptions options;
  options.most_steps = 100'000;
  const TreePacking early = PackTrees(network, options);
  ASSERT_NO_FATAL_FAILURE(ExpectPacking(network, early, 64));
  // One tree more is looked for after the last look at the budget.
  EXPECT_LT(early.steps, 250'000u);
  options = {};
  options.most_steps_at_rate_1 = 100'000 * early.rate;
  const TreePacking faster = PackTrees(network, options);
  ASSERT_NO_FATAL_FAILURE(ExpectPacking(network, faster, 64));
  EXPECT_LT(faster.steps, 250'000u);
}

TEST(TreePacking, IsTheSameForTheSameNetwork) {
  Random random(20260414);
  const FlowNetwork network = RandomNetwork(random, 13, 10);
  const TreePacking first = PackTrees(network, {});
  const TreePacking second = PackTrees(network, {});
  ASSERT_EQ(first.trees.size(), second.trees.size());
  for (size_t i = 0; i < first.trees.size(); ++i) {
    EXPECT_EQ(first.trees[i].tree, second.trees[i].tree);
    EXPECT_EQ(first.trees[i].rate, second.trees[i].rate);
  }
}

// How long the busiest limit takes for `slices` slices, in comparison with fractions of slices.
double Loss(const FlowNetwork& network, const TreePacking& packing, uint32_t slices) {
  const std::vector<uint32_t> counts = WholeSlices(network, packing.trees, slices);
  std::vector<double> load(network.limits().size(), 0);
  uint32_t sum = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    sum += counts[i];
    for (const LimitUse& use : UsesOf(network, packing.trees[i].tree)) {
      load[use.limit] += use.times * counts[i];
    }
  }
  EXPECT_EQ(sum, slices);
  double time = 0;
  for (size_t i = 0; i < load.size(); ++i) time = std::max(time, load[i] / network.limits()[i]);
  return time / (slices / packing.rate);
}

TEST(WholeSlices, LoseLittleByRounding) {
  Random random(20260415);
  std::vector<double> losses;
  for (int round = 0; round < 40; ++round) {
    const FlowNetwork network = RandomNetwork(random, 13, 10);
    const TreePacking packing = PackTrees(network, {});
    losses.push_back(Loss(network, packing, 2048));
    EXPECT_LE(losses.back(), 1.05);
    Loss(network, packing, 1);  // the sum is right
  }
  std::sort(losses.begin(), losses.end());
  EXPECT_LE(losses[losses.size() / 2], 1.02);
}

}  // namespace
}  // namespace ecpipe::tree_packing_test
