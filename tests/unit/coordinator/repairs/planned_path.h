// SPDX-License-Identifier: Apache-2.0
// Plans for tests of the tracker: a path over the nodes that are named.
#pragma once

#include <string>
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

}  // namespace ecpipe
