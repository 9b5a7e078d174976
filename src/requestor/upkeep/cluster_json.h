// SPDX-License-Identifier: Apache-2.0
// Nodes and repairs as the command's JSON shows them.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "model/repair.h"
#include "requestor/client/coordinator_api.h"

namespace ecpipe {

// `has_hdfs`: a node that does not belong to it is then in trouble (node_troubles.h).
nlohmann::ordered_json NodeJson(const NodeStatus& node, bool has_hdfs);
nlohmann::ordered_json RepairJson(const RepairRecord& repair);

}  // namespace ecpipe
