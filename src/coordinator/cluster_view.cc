// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cluster_view.h"

#include <algorithm>

namespace ecpipe {

Links::Links(const ClusterView& view) : view_(view) {
  for (const PlanNode& node : view.nodes) nodes_[node.node] = &node;
}

double Links::Of(const std::string& node, double PlanNode::* speed) const {
  const auto found = nodes_.find(node);
  const bool known = found != nodes_.end() && found->second->*speed > 0;
  return known ? found->second->*speed : view_.default_bytes_per_second;
}

double Links::OfPair(const std::string& from, const std::string& to) const {
  if (view_.links == nullptr) return 0;
  const auto nodes = view_.links->find({from, to});
  if (nodes != view_.links->end()) return nodes->second;
  const auto racks = view_.links->find({RackOf(from), RackOf(to)});
  return racks == view_.links->end() ? 0 : racks->second;
}

double Links::Between(const std::string& from, const std::string& to) const {
  const double ends = std::min(Up(from), Down(to));
  const double pair = OfPair(from, to);
  return pair > 0 ? std::min(ends, pair) : ends;
}

const std::string& Links::RackOf(const std::string& node) const {
  static const std::string unknown;
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? unknown : found->second->rack;
}

bool Links::CrossesRacks(const std::string& from, const std::string& to) const {
  const std::string& a = RackOf(from);
  const std::string& b = RackOf(to);
  return !a.empty() && !b.empty() && a != b;
}

}  // namespace ecpipe
