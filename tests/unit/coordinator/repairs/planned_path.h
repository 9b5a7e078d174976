// SPDX-License-Identifier: Apache-2.0
// Plans for tests of the tracker: a path over the nodes that are named, or several.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "coordinator/repairs/tracker_events.h"

namespace ecpipe {

// Ten slices of 100 bytes.
inline constexpr SliceGrid kPathGrid{0, 1000, 100};

// The nodes send along the path; the requestor, or the hosts of the request, are at its end.
inline PlannedAttempt PlannedPath(RepairId repair_id, const action::Plan& plan,
                                  std::vector<std::string> nodes) {
  PlannedAttempt attempt;
  attempt.planned.bytes = kPathGrid.bytes;
  attempt.planned.plan.scheme = "rp";
  attempt.planned.plan.grid = kPathGrid;
  const std::vector<std::string>& hosts = plan.request.hosts;
  nodes.insert(nodes.end(), hosts.begin(), hosts.end());
  for (size_t i = 0; i < nodes.size(); ++i) {
    HelperGateway::Handout handout{{nodes[i], nodes[i] + ":1"}, {}};
    handout.part.repair_id = repair_id;
    handout.part.attempt = plan.attempt;
    HopSpec& hop = handout.part.hops.emplace_back();
    const std::string next = i + 1 < nodes.size() ? nodes[i + 1] : "r";
    if (i + 1 < nodes.size() || hosts.empty()) hop.outputs.push_back({.node = next});
    attempt.incarnations[nodes[i]] = 1;
    attempt.handouts.push_back(std::move(handout));
  }
  if (hosts.empty()) {
    attempt.requestor_part.repair_id = repair_id;
    attempt.requestor_part.attempt = plan.attempt;
    attempt.requestor_part.grid = kPathGrid;
  }
  return attempt;
}

// Ten slices of a megabyte: so much passes in a second that links tell of their speed.
inline constexpr SliceGrid kLanesGrid{0, 10'000'000, 1'000'000};

// Lanes of so many slices each, which are paths to the requestor `r`.
struct PathLanes {
  std::vector<std::pair<uint32_t, std::vector<std::string>>> lanes;
  double seconds = 0;  // that they are expected to take
};

inline PlannedAttempt PlannedLanes(RepairId repair_id, const action::Plan& plan,
                                   const PathLanes& paths) {
  std::vector<std::string> nodes;
  RepairPlan lanes{.scheme = "rp-flow", .grid = kLanesGrid, .failed = {0}, .lanes = {}};
  uint32_t first = 0;
  for (const auto& [slices, path] : paths.lanes) {
    PlanLane& lane = lanes.lanes.emplace_back();
    lane.slices = LaneSlices::Create({{first, slices, 1}}, kLanesGrid.slice_count()).value();
    first += slices;
    for (size_t i = 0; i <= path.size(); ++i) {
      PlanHop& hop = lane.hops.emplace_back();
      hop.node = i < path.size() ? path[i] : "r";
      if (i > 0) hop.inputs.push_back({.from_hop = static_cast<int>(i) - 1, .rows = {0}});
    }
    nodes.insert(nodes.end(), path.begin(), path.end());
  }
  PlannedAttempt attempt = PlannedPath(repair_id, plan, std::move(nodes));
  attempt.planned.plan = std::move(lanes);
  attempt.planned.cost.seconds = paths.seconds;
  return attempt;
}

}  // namespace ecpipe
