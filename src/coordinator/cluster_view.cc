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
  const auto look = [](const std::shared_ptr<const LinkTable>& table, const std::string& a,
                       const std::string& b) {
    if (table == nullptr) return 0.0;
    const auto found = table->find({a, b});
    return found == table->end() ? 0.0 : found->second;
  };
  if (const double speed = look(view_.links, from, to); speed > 0) return speed;
  if (const double speed = look(view_.links, RackOf(from), RackOf(to)); speed > 0) return speed;
  return look(view_.measured, from, to);
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
