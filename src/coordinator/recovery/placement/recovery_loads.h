// SPDX-License-Identifier: Apache-2.0
// Where a block is to be rebuilt, and what running and earlier repairs put on the nodes. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "coordinator/cluster/cluster_view.h"
#include "model/plan/cost.h"

namespace ecpipe {

struct Placement {
  std::string block_id;
  std::string host;                  // empty: no node can take the block; `impossible` says why
  std::vector<std::string> helpers;  // all that can help, the best first
  std::string impossible;
  bool copy = false;  // the block is there, and is copied to the host; nobody helps
  // Paths of helpers, each for an equal part of the block. Empty: one path, of the best helpers.
  std::vector<std::vector<std::string>> paths = {};
};

// The load that running and earlier repairs put on the nodes.
class RecoveryLoads {
 public:
  void Begin(const std::vector<NodeLoad>& loads);
  void End(const std::vector<NodeLoad>& loads);
  // As if they had never begun.
  void Withdraw(const std::vector<NodeLoad>& loads);
  // A policy has chosen this placement; the loads of its plan follow once there is a plan.
  void Selected(const Placement& placement, int helper_count);

  struct Node {
    uint32_t streams = 0;    // repairs in flight in which it takes part
    uint32_t senders = 0;    // of these, those in which it sends
    uint32_t receivers = 0;  // and those in which it receives
    uint64_t up = 0;         // bytes of plans in flight
    uint64_t down = 0;
    uint64_t carried = 0;  // bytes of all plans so far
    // When it was last selected as a helper: a number that grows with each selection; 0: never.
    uint64_t last_selected = 0;
  };
  // Valid as long as the loads.
  const Node& Of(const std::string& node) const;
  uint32_t Streams(const std::string& node) const { return Of(node).streams; }
  // What the repairs in flight leave of these nodes' links: they are as many as share each of them
  // with one more. Nodes that none of them uses are not named.
  std::map<std::string, LinkShares> LeftOfLinks(std::span<const std::string> nodes) const;
  // The host whose turn comes next, for policies that take them in turn.
  uint64_t turn() const { return turn_; }

 private:
  std::unordered_map<std::string, Node> nodes_;
  uint64_t turn_ = 0;
  uint64_t selections_ = 0;
};

// What a repair is expected to put on the nodes until its plan is known: no later choice is to take
// room that it may need. `source` has the block of a copy. All that can help count as at work, for
// nobody knows yet which of them will.
std::vector<NodeLoad> ExpectedLoads(const Placement& placement, const std::string& source,
                                    int needed, uint64_t bytes);

}  // namespace ecpipe
