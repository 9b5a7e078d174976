// SPDX-License-Identifier: Apache-2.0
// Nodes and repairs as tables, in the order that an operator asks for. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "model/repair.h"
#include "requestor/cli/table.h"
#include "requestor/client/coordinator_api.h"

namespace ecpipe {

// What the helper of a node sends and receives, in bytes per second.
struct LinkUse {
  double sends = 0;
  double receives = 0;
};
using LinkUses = std::map<std::string, LinkUse>;  // by node; without those that are not known

// From the counters of helpers that have answered twice, `seconds` apart.
LinkUses LinkUsesBetween(const std::vector<NodeStatus>& before,
                         const std::vector<NodeStatus>& after, double seconds);

// "silent" for a live node whose helper does not answer the command or the coordinator.
std::string ShownState(const NodeStatus& node);

// A key is the title of a column. Texts are sorted from a on, numbers from the largest on; what is
// equal is sorted by the id of the node, and of repairs the newest comes first.
struct SortOrder {
  std::string key;
  bool reverse = false;
};

const std::vector<std::string>& NodeSortKeys();
void SortNodes(const SortOrder& order, const LinkUses& uses, std::vector<NodeStatus>* nodes);
// Without uses it shows what helpers have sent and received since they started.
Table NodesTable(const std::vector<NodeStatus>& nodes, const LinkUses& uses);

const std::vector<std::string>& RepairSortKeys();
// Without a key: those that run, then the others, the newest first.
void SortRepairs(const SortOrder& order, int64_t now_unix_ms, std::vector<RepairRecord>* repairs);
Table RepairsTable(const std::vector<RepairRecord>& repairs, int64_t now_unix_ms);

}  // namespace ecpipe
