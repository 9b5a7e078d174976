// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cluster/cluster_view.h"

#include <algorithm>
#include <iterator>

namespace ecpipe {
namespace {

// 0: not known.
double SpeedIn(const std::shared_ptr<const LinkTable>& table, const std::string& from,
               const std::string& to) {
  if (table == nullptr) return 0;
  const auto found = table->find({from, to});
  return found == table->end() ? 0 : found->second;
}

template <typename Key>
void AddSmaller(const std::map<Key, double>& rates, std::map<Key, double>* all) {
  for (const auto& [key, rate] : rates) {
    const auto [known, added] = all->try_emplace(key, rate);
    if (!added) known->second = std::min(known->second, rate);
  }
}

}  // namespace

void SeenLinks::Add(const SeenLinks& other) {
  AddSmaller(other.pairs, &pairs);
  AddSmaller(other.up, &up);
  AddSmaller(other.down, &down);
}

void Limit(const SeenLinks& seen, ClusterView* view) {
  const auto limit = [&](const std::map<std::string, double>& rates, PlanNode* node,
                         double PlanNode::* of_link) {
    const auto found = rates.find(node->node);
    if (found == rates.end()) return;
    double& speed = node->*of_link;
    speed = std::min(speed > 0 ? speed : view->default_bytes_per_second, found->second);
  };
  for (PlanNode& node : view->nodes) {
    limit(seen.up, &node, &PlanNode::up_bytes_per_second);
    limit(seen.down, &node, &PlanNode::down_bytes_per_second);
  }
  if (!seen.pairs.empty()) view->seen = std::make_shared<const LinkTable>(seen.pairs);
}

Links::Links(const ClusterView& view) : view_(view) {
  nodes_.reserve(view.nodes.size());
  for (const PlanNode& node : view.nodes) nodes_.push_back(&node);
  // Of several with one name the last one counts.
  std::stable_sort(nodes_.begin(), nodes_.end(),
                   [](const PlanNode* a, const PlanNode* b) { return a->node < b->node; });
}

const std::string& Links::End::rack() const {
  static const std::string unknown;
  return known_ == nullptr ? unknown : known_->rack;
}

Links::End Links::At(const std::string& node) const {
  End end;
  end.name_ = &node;
  const auto after =
      std::upper_bound(nodes_.begin(), nodes_.end(), node,
                       [](const std::string& name, const PlanNode* of) { return name < of->node; });
  if (after != nodes_.begin() && (*std::prev(after))->node == node) end.known_ = *std::prev(after);
  const auto speed = [&](double PlanNode::* of_link) {
    const bool known = end.known_ != nullptr && end.known_->*of_link > 0;
    return known ? end.known_->*of_link : view_.default_bytes_per_second;
  };
  if (end.known_ != nullptr) end.shares_ = end.known_->shares;
  end.up_ = speed(&PlanNode::up_bytes_per_second) * end.shares_.up;
  end.down_ = speed(&PlanNode::down_bytes_per_second) * end.shares_.down;
  return end;
}

double Links::Written(const End& from, const End& to) const {
  const double nodes = SpeedIn(view_.links, *from.name_, *to.name_);
  return nodes > 0 ? nodes : SpeedIn(view_.links, from.rack(), to.rack());
}

double Links::Between(const End& from, const End& to) const {
  const double seen = SpeedIn(view_.seen, *from.name_, *to.name_);
  const double expected = Expected(from, to);
  return seen > 0 ? std::min(seen, expected) : expected;
}

double Links::Expected(const End& from, const End& to) const {
  const double ends = std::min(from.up_, to.down_);
  const double share = std::min(from.shares_.up, to.shares_.down);
  if (const double written = Written(from, to); written > 0) return std::min(ends, written * share);
  const double measured = SpeedIn(view_.measured, *from.name_, *to.name_);
  return measured > 0 ? measured * share : ends;
}

bool Links::Known(const End& from, const End& to) const {
  return Written(from, to) > 0 || SpeedIn(view_.measured, *from.name_, *to.name_) > 0;
}

double Links::BetweenRacks(const std::string& from, const std::string& to) const {
  return SpeedIn(view_.shared_by_racks, from, to);
}

bool Links::CrossesRacks(const End& from, const End& to) {
  return !from.rack().empty() && !to.rack().empty() && from.rack() != to.rack();
}

}  // namespace ecpipe
