// SPDX-License-Identifier: Apache-2.0
#include "coordinator/planning/trees/flow_network.h"

#include <algorithm>

namespace ecpipe {

std::vector<LimitUse> UsesOf(const FlowNetwork& network, const InTree& tree) {
  std::vector<uint32_t> used;
  for (int helper = 0; helper < network.helpers(); ++helper) {
    const int parent = tree.parent[static_cast<size_t>(helper)];
    if (parent == InTree::kOutside) continue;
    const std::span<const uint32_t> limits = network.LimitsOf(helper, parent);
    used.insert(used.end(), limits.begin(), limits.end());
  }
  std::sort(used.begin(), used.end());
  std::vector<LimitUse> uses;
  for (const uint32_t limit : used) {
    if (uses.empty() || uses.back().limit != limit) uses.push_back({limit, 0});
    ++uses.back().times;
  }
  return uses;
}

}  // namespace ecpipe
