// SPDX-License-Identifier: Apache-2.0
// What a planner knows of the nodes and the links between them. A value: planners stay pure.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ecpipe {

// What of a node's links is there for one more repair, beside those in flight: of 1.
struct LinkShares {
  double up = 1;
  double down = 1;
};

// How fast a node's own links are, where 1 is usual.
struct NodeSpeed {
  double up = 1;
  double down = 1;
};
using NodeSpeeds = std::map<std::string, NodeSpeed>;

// What the coordinator knows of a node that may take part.
struct PlanNode {
  std::string node;
  std::string rack;                // empty: unknown; the node then counts as a rack of its own
  double up_bytes_per_second = 0;  // speed of its uplink; 0: unknown, the default is assumed
  double down_bytes_per_second = 0;
  LinkShares shares = {};  // of these, and of the speed of each pair that the node is in
};

// Bytes per second from one node to another. In a table that an operator wrote, both names may be
// racks: the speed is then that from any node of the one rack to any node of the other.
using LinkTable = std::map<std::pair<std::string, std::string>, double>;

// In bytes per second: what a repair that runs has seen of links, where that is less than its plan
// counted on.
struct SeenLinks {
  LinkTable pairs;
  std::map<std::string, double> up;  // of nodes
  std::map<std::string, double> down;

  bool empty() const { return pairs.empty() && up.empty() && down.empty(); }
  // Of two rates of one link, the smaller one.
  void Add(const SeenLinks& other);
};

struct ClusterView {
  std::vector<PlanNode> nodes;                // helpers, and requestors that are known
  std::shared_ptr<const LinkTable> links;     // from the operator's file; null: none
  std::shared_ptr<const LinkTable> measured;  // for pairs that are not in `links`; null: none
  // What all streams from one rack to another share, as measured; null: not known to share
  // anything.
  std::shared_ptr<const LinkTable> shared_by_racks;
  std::shared_ptr<const LinkTable> seen;  // pairs have no more than this; null: no pair is known to
  double default_bytes_per_second = 125e6;
  double rack_bytes_per_second = 0;  // what leaves a rack, and what enters it, at most; 0: no limit
};

// Whether the speed of any pair is known.
inline bool HavePairs(const ClusterView& view) {
  return view.links != nullptr || view.measured != nullptr || view.seen != nullptr;
}

// From now on links have no more than was seen of them.
void Limit(const SeenLinks& seen, ClusterView* view);

// Answers questions about a view, which must outlive it. A node is looked up by its name once, with
// At(); what is asked of many pairs then costs no look-ups of names but those of pairs.
//
// Speeds are what one more repair may count on: those of the view times the shares of nodes.
class Links {
 public:
  // One node as an end of links. Must not outlive the view, nor the name that it was made of.
  class End {
   public:
    double up() const { return up_; }
    double down() const { return down_; }
    // Empty: unknown.
    const std::string& rack() const;

   private:
    friend class Links;
    const std::string* name_ = nullptr;
    const PlanNode* known_ = nullptr;  // null: the view does not have the node
    LinkShares shares_;
    double up_ = 0;
    double down_ = 0;
  };

  explicit Links(const ClusterView& view);

  End At(const std::string& node) const;
  // The speed of the pair, or of its racks, in the operator's file, but at most that of the links
  // of both ends; otherwise the measured speed; otherwise that of the links of both ends. In no
  // case more than a repair has seen.
  double Between(const End& from, const End& to) const;
  // Whether the pair's own speed is known.
  bool Known(const End& from, const End& to) const;
  // Whether a stream between the two nodes leaves its rack. False if a rack is unknown.
  static bool CrossesRacks(const End& from, const End& to);
  // Of all streams from the one rack to the other. 0: no limit is known.
  double BetweenRacks(const std::string& from, const std::string& to) const;

 private:
  double Expected(const End& from, const End& to) const;
  // 0: not known.
  double Written(const End& from, const End& to) const;

  const ClusterView& view_;
  std::vector<const PlanNode*> nodes_;  // by name
};

}  // namespace ecpipe
