// SPDX-License-Identifier: Apache-2.0
// Nodes, repairs and frames of `ecpipe watch` as the command's JSON shows them.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "model/repair.h"
#include "requestor/client/coordinator_api.h"
#include "requestor/upkeep/cluster_tables.h"
#include "requestor/upkeep/watch_screen.h"

namespace ecpipe {

// `has_hdfs`: a node that does not belong to it is then in trouble (node_troubles.h).
nlohmann::ordered_json NodeJson(const NodeStatus& node, bool has_hdfs);
// All of them, with what their links carry now; null where that is not known.
nlohmann::ordered_json NodesJson(const ClusterStatus& status, const LinkUses& uses);
nlohmann::ordered_json RepairJson(const RepairRecord& repair);
// What `ecpipe watch` knows at one time, nodes in this order.
nlohmann::ordered_json WatchJson(WatchFrame frame, const SortOrder& order);

}  // namespace ecpipe
