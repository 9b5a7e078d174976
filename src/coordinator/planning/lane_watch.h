// SPDX-License-Identifier: Apache-2.0
// Whether the lanes of a plan that runs get on as planned, and which links turn out slower. For
// plans that give lanes shares by the speeds of links (Scheme::weighs_lanes). Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/cluster/cluster_view.h"
#include "model/plan/repair_plan.h"

namespace ecpipe {

// What the plan has its lanes do.
struct WatchedLanes {
  struct Stream {
    std::string from;
    std::string to;
    uint64_t bytes = 0;  // that it is to carry
  };
  struct Lane {
    uint32_t slices = 0;
    std::vector<Stream> streams;
  };
  std::vector<Lane> lanes;  // empty: the plan's lanes are not watched
  double seconds = 0;       // that the plan is expected to take
};

// Streams within a node are left out. No lanes: the scheme does not weigh them, or there is one.
WatchedLanes LanesToWatch(const RepairPlan& plan, double seconds);

// What passed on a stream: by the lane's number in the plan, and the nodes.
struct StreamPassed {
  uint32_t lane = 0;
  std::string from;
  std::string to;
  uint64_t bytes = 0;       // so far
  uint64_t since_look = 0;  // of these, since the look before
  // Of the time since then, how long nothing but the network was in its way.
  double held_seconds = 0;
};

struct LaneLook {
  // Until the last lane has ended, at the pace since the look before. A lane none of whose streams
  // is there has ended.
  double seconds_left = 0;
  // Links that held lanes up, and passed less than the plan counted on by a third or more. Where
  // all that leaves a node is so, and goes to several others, it is the node's uplink; the same for
  // what enters it. Otherwise it is the pair.
  SeenLinks slower;
};

// `seconds` since the look before, or since the attempt began.
LaneLook LookAtLanes(const WatchedLanes& plan, const std::vector<StreamPassed>& streams,
                     double seconds);

}  // namespace ecpipe
