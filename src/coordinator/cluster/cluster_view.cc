// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cluster/cluster_view.h"

#include <algorithm>

namespace ecpipe {
namespace {

// 0: not known.
double SpeedIn(const std::shared_ptr<const LinkTable>& table, const std::string& from,
               const std::string& to) {
  if (table == nullptr) return 0;
  const auto found = table->find({from, to});
  return found == table->end() ? 0 : found->second;
}

}  // namespace

Links::Links(const ClusterView& view) : view_(view) {
  for (const PlanNode& node : view.nodes) nodes_[node.node] = &node;
}

double Links::Of(const std::string& node, double PlanNode::* speed) const {
  const auto found = nodes_.find(node);
  const bool known = found != nodes_.end() && found->second->*speed > 0;
  return known ? found->second->*speed : view_.default_bytes_per_second;
}

LinkShares Links::SharesOf(const std::string& node) const {
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? LinkShares{} : found->second->shares;
}

double Links::Written(const std::string& from, const std::string& to) const {
  const double nodes = SpeedIn(view_.links, from, to);
  return nodes > 0 ? nodes : SpeedIn(view_.links, RackOf(from), RackOf(to));
}

double Links::Between(const std::string& from, const std::string& to) const {
  const double ends = std::min(Up(from), Down(to));
  const double share = std::min(SharesOf(from).up, SharesOf(to).down);
  if (const double written = Written(from, to); written > 0) return std::min(ends, written * share);
  const double measured = SpeedIn(view_.measured, from, to);
  return measured > 0 ? measured * share : ends;
}

bool Links::Known(const std::string& from, const std::string& to) const {
  return Written(from, to) > 0 || SpeedIn(view_.measured, from, to) > 0;
}

const std::string& Links::RackOf(const std::string& node) const {
  static const std::string unknown;
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? unknown : found->second->rack;
}

double Links::BetweenRacks(const std::string& from, const std::string& to) const {
  return SpeedIn(view_.shared_by_racks, from, to);
}

bool Links::CrossesRacks(const std::string& from, const std::string& to) const {
  const std::string& a = RackOf(from);
  const std::string& b = RackOf(to);
  return !a.empty() && !b.empty() && a != b;
}

}  // namespace ecpipe
