// SPDX-License-Identifier: Apache-2.0
// Places few lost blocks over several paths each, so that all links end together: where few blocks
// are left, whole paths leave some links with a block more than others
// (docs/design/003-recovery.md). Pure.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "coordinator/cluster/cluster_view.h"

namespace ecpipe {

// Bytes that a node's own links have to carry for repairs in flight, and how fast they are.
struct NodeLinks {
  double up = 0;
  double down = 0;
  NodeSpeed speed;
};

// Nodes are indices into a list of NodeLinks.
struct BlockToPlace {
  double bytes = 0;
  size_t needed = 0;            // at least 1, and at most as many as there are helpers
  std::vector<size_t> helpers;  // nodes with a block of the stripe, all different
  std::vector<size_t> hosts;    // nodes that can take it, none of them a helper; among equals the
                                // first is taken
};

struct SeveralPaths {
  size_t host = 0;
  std::vector<std::vector<size_t>> paths;  // `needed` helpers each, the first hop first
};

// Places all blocks together, and returns the first one's nodes. Each path carries an equal part of
// the block: streams that share a link evenly then end together.
SeveralPaths PlaceFirst(std::span<const BlockToPlace> blocks, std::vector<NodeLinks> nodes,
                        size_t path_count);

}  // namespace ecpipe
