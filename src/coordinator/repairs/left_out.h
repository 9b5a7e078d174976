// SPDX-License-Identifier: Apache-2.0
// The nodes that a repair leaves out of its next attempt, learnt from earlier attempts. Pure.
// docs/design/008-attempts.md has the reasoning.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "coordinator/repairs/diagnosis.h"

namespace ecpipe {

// What the coordinator knows of a node that has registered, with it or with the one before.
struct NodeLife {
  bool registered_here = false;
  bool dead = false;
  uint64_t incarnation = 0;  // of its helper: another one after each start
  bool silent = false;       // its helper answers no calls
};
using NodeLives = std::map<std::string, NodeLife>;

class LeftOut {
 public:
  using Reasons = std::map<std::string, std::string>;

  // Leaves a node out for good. Returns whether that is news: it was not left out so before.
  bool Refuse(const std::string& node, const std::string& reason);
  // The same of a node that has no room for one more repair now.
  bool RefuseAtLimit(const std::string& node, const std::string& reason);
  // The same of a node whose helper cannot be reached, or has lost its part with its process.
  struct Away {
    uint64_t incarnation = 0;
    bool may_answer = false;  // it was only late, and may be back without a new start

    friend bool operator==(const Away&, const Away&) = default;
  };
  bool RefuseWhileAway(const std::string& node, const std::string& reason, const Away& away);
  // Takes the suspects of a failed attempt. A failed link has two ends: of an uncertain suspect and
  // the node at the other end, the one is left out that was at more failed links so far. Nodes in
  // `needed` are never left out. `incarnations` has those of the attempt's helpers.
  void Suspect(const Suspects& suspects, const std::set<std::string>& needed = {},
               const std::map<std::string, uint64_t>& incarnations = {});
  // Takes all nodes back whose helpers were away and have come back. Returns whether there are any.
  bool ReadmitReturned(const NodeLives& now);
  // Takes one node back that may not be at fault, because a repair with it is better than none: the
  // node that was at the fewest failed links, and among equals the one that was left out first. A
  // slow link does not count as failed. Returns false if there is no such node.
  bool ReadmitOne();
  // The same among nodes that were left out only because their links were slow.
  bool ReadmitSlow();

  bool Has(const std::string& node) const { return reasons_.contains(node); }
  // What is left of the reasons when each node at its limit has room again.
  Reasons WithRoomAgain() const;
  // The reason for each node that is left out.
  const Reasons& reasons() const { return reasons_; }

 private:
  bool Readmit(bool only_slow);

  Reasons reasons_;
  std::set<std::string> at_limit_;
  std::map<std::string, Away> away_;     // nodes that are left out for nothing else
  std::vector<std::string> uncertain_;   // nodes that may not be at fault; the latest at the end
  std::set<std::string> slow_;           // nodes that were last left out only for slow links
  std::map<std::string, int> troubles_;  // for each node: the number of failed links it was at
};

}  // namespace ecpipe
