// SPDX-License-Identifier: Apache-2.0
// Chooses the nodes that help to rebuild a block, and the node that stores it. Pure: the same state
// gives the same choice.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "coordinator/cluster/cluster_view.h"
#include "coordinator/recovery/placement/lost_block.h"
#include "coordinator/recovery/placement/recovery_loads.h"
#include "model/recovery.h"

namespace ecpipe {

// The racks of the live nodes whose racks are known, numbered from 0.
struct LiveRacks {
  std::unordered_map<std::string, size_t> of;  // by node
  std::vector<size_t> hosts;                   // by rack: nodes in it that may take blocks
  size_t with_hosts = 0;  // racks; nodes whose racks are not known are one together
  size_t all_hosts = 0;
};

struct PolicyInput {
  std::span<const LostBlock* const> blocks;  // in the queue's order
  const std::set<std::string>& usable;       // nodes whose blocks can be read
  const std::vector<std::string>& hosts;     // nodes that can take blocks
  const std::set<std::string>& suspects;     // hosts that are used only if no other can be
  const LiveRacks& racks;
  uint32_t streams_per_node = 0;  // no node takes part in more repairs at once
  const NodeSpeeds& speeds;       // of nodes that differ from the usual, if known
  // How many blocks are left, with those in flight. 0: each has one path, however few they are.
  uint64_t blocks_left = 0;
};

// Why blocks that could be tried wait, if they do. What it is made with outlives it, and stays as
// it is meanwhile.
class WaitReasons {
 public:
  // `input.blocks` is not looked at; `limit` says whose streams_per_node is.
  WaitReasons(const PolicyInput& input, const RecoveryLoads& loads, std::string limit);
  ~WaitReasons();
  RecoveryWait Of(const LostBlock& block) const;

 private:
  class Hosts;
  const PolicyInput input_;
  const RecoveryLoads& loads_;
  const std::string limit_;
  const std::unique_ptr<const Hosts> hosts_;
};

// The next block to repair, and its nodes; nothing if every block has to wait for busy nodes. A
// block with too few survivors is placed as well: the planner then says what is missing. A host in
// a rack that has its share of the stripe (docs/design/003-recovery.md) is taken only if no other
// rack has one, busy or not.
//   in-order      the first block that can go; helpers as the stripe has them, hosts in turn
//   least-recent  the same with the helpers that were selected longest ago (§3.3)
//   balanced      see docs/design/003-recovery.md
std::optional<Placement> Place(RecoveryPolicy policy, const PolicyInput& input,
                               const RecoveryLoads& loads);

// The next block to copy, and its host: the first that some host with room may take, as Place
// chooses hosts. The source is not looked at.
std::optional<Placement> PlaceCopy(RecoveryPolicy policy, const PolicyInput& input,
                                   const RecoveryLoads& loads);

}  // namespace ecpipe
