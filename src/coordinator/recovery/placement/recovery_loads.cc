// SPDX-License-Identifier: Apache-2.0
#include "coordinator/recovery/placement/recovery_loads.h"

#include <algorithm>

namespace ecpipe {

const RecoveryLoads::Node& RecoveryLoads::Of(const std::string& node) const {
  static const Node kIdle;
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? kIdle : found->second;
}

void RecoveryLoads::Begin(const std::vector<NodeLoad>& loads) {
  for (const NodeLoad& load : loads) {
    Node& node = nodes_[load.node];
    ++node.streams;
    if (load.up_bytes > 0) ++node.senders;
    if (load.down_bytes > 0) ++node.receivers;
    node.up += load.up_bytes;
    node.down += load.down_bytes;
    node.carried += load.up_bytes + load.down_bytes;
  }
}

void RecoveryLoads::End(const std::vector<NodeLoad>& loads) {
  for (const NodeLoad& load : loads) {
    Node& node = nodes_[load.node];
    --node.streams;
    if (load.up_bytes > 0) --node.senders;
    if (load.down_bytes > 0) --node.receivers;
    node.up -= load.up_bytes;
    node.down -= load.down_bytes;
  }
}

void RecoveryLoads::Withdraw(const std::vector<NodeLoad>& loads) {
  End(loads);
  for (const NodeLoad& load : loads) nodes_[load.node].carried -= load.up_bytes + load.down_bytes;
}

std::map<std::string, LinkShares> RecoveryLoads::LeftOfLinks(
    std::span<const std::string> nodes) const {
  std::map<std::string, LinkShares> left;
  for (const std::string& name : nodes) {
    const Node& node = Of(name);
    if (node.streams > 0) left[name] = {1.0 / (1 + node.senders), 1.0 / (1 + node.receivers)};
  }
  return left;
}

void RecoveryLoads::Selected(const Placement& placement, int helper_count) {
  ++turn_;
  const auto count = std::min(placement.helpers.size(), static_cast<size_t>(helper_count));
  for (size_t i = 0; i < count; ++i) nodes_[placement.helpers[i]].last_selected = ++selections_;
}

std::vector<NodeLoad> ExpectedLoads(const Placement& placement, const std::string& source,
                                    int needed, uint64_t bytes) {
  std::vector<NodeLoad> loads;
  if (placement.copy) loads.push_back({source, bytes, 0});
  std::vector<std::vector<std::string>> paths = placement.paths;
  if (paths.empty()) {
    // A path of the best of them, as most schemes take.
    const size_t most =
        std::min(placement.helpers.size(), static_cast<size_t>(std::max(0, needed)));
    paths.emplace_back(placement.helpers.begin(),
                       placement.helpers.begin() + static_cast<std::ptrdiff_t>(most));
  }
  for (const std::string& helper : placement.helpers) {
    NodeLoad& load = loads.emplace_back(helper, 0, 0);
    for (const std::vector<std::string>& path : paths) {
      const auto hop = std::find(path.begin(), path.end(), helper);
      if (hop == path.end()) continue;
      load.up_bytes += bytes / paths.size();
      if (hop != path.begin()) load.down_bytes += bytes / paths.size();
    }
  }
  loads.push_back({placement.host, 0, bytes});
  return loads;
}

}  // namespace ecpipe
