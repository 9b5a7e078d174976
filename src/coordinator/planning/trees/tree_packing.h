// SPDX-License-Identifier: Apache-2.0
// How fast a block can be rebuilt over given links, and by which trees: docs/design/019-trees.md.
#pragma once

#include <cstdint>
#include <vector>

#include "coordinator/planning/trees/flow_network.h"

namespace ecpipe {

struct PackedTree {
  InTree tree;
  double rate = 0;  // above 0, in the unit of the limits
};

struct TreePacking {
  std::vector<PackedTree> trees;  // the fastest first
  double rate = 0;                // of all trees
  // What the prices say at most. No packing of trees that CheapestTree finds is faster. It is a
  // proof only where the cheapest tree is found for certain, which is a heuristic.
  double bound = 0;
  uint64_t steps = 0;  // elementary ones, about a nanosecond each
};

struct PackingOptions {
  size_t most_trees = 64;
  double gap = 0.01;  // ends when bound / rate - 1 is not above this
  uint64_t most_steps = 1'000'000'000;
  // Ends also when the steps are more than this divided by the rate found: who repairs fast has
  // less time to plan.
  double most_steps_at_rate_1 = 1e300;
};

// Trees that together exceed no limit. Deterministic.
TreePacking PackTrees(const FlowNetwork& network, const PackingOptions& options);

}  // namespace ecpipe
