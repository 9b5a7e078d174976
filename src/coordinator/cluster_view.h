// SPDX-License-Identifier: Apache-2.0
// What a planner knows of the nodes and the links between them. A value: planners stay pure.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ecpipe {

// What is known of a node that may take part.
struct PlanNode {
  std::string node;
  std::string rack;                // empty: unknown, and then a rack of its own
  double up_bytes_per_second = 0;  // of its link; 0: unknown, taken for the default
  double down_bytes_per_second = 0;
};

// Bytes per second from one node to another. Where an operator has written them down both names may
// be racks: that is then the speed from any node of the one to any node of the other.
using LinkTable = std::map<std::pair<std::string, std::string>, double>;

struct ClusterView {
  std::vector<PlanNode> nodes;                // helpers, and requestors of which something is known
  std::shared_ptr<const LinkTable> links;     // written down; null: nothing
  std::shared_ptr<const LinkTable> measured;  // for pairs that are not; null: nothing
  double default_bytes_per_second = 125e6;
  double rack_bytes_per_second = 0;  // out of a rack, and into it, for all its nodes; 0: no limit
};

// Answers about a view, which must outlive it.
class Links {
 public:
  explicit Links(const ClusterView& view);

  // Whether anything is known of pairs.
  bool HavePairs() const { return view_.links != nullptr || view_.measured != nullptr; }

  double Up(const std::string& node) const { return Of(node, &PlanNode::up_bytes_per_second); }
  double Down(const std::string& node) const { return Of(node, &PlanNode::down_bytes_per_second); }
  // What is written down of the pair, or of its racks, but never more than the ends' links give;
  // otherwise what was measured; otherwise what the ends' links give.
  double Between(const std::string& from, const std::string& to) const;
  // Empty: unknown.
  const std::string& RackOf(const std::string& node) const;
  // Whether a stream leaves its rack. Unknown racks are not counted.
  bool CrossesRacks(const std::string& from, const std::string& to) const;

 private:
  // 0: not known.
  double Written(const std::string& from, const std::string& to) const;
  double Of(const std::string& node, double PlanNode::* speed) const;

  const ClusterView& view_;
  std::map<std::string, const PlanNode*> nodes_;
};

}  // namespace ecpipe
