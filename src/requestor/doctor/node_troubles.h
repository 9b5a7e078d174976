// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "requestor/client/coordinator_api.h"

namespace ecpipe {

// Helpers send a heartbeat each second; it takes a while on a busy machine.
inline constexpr double kLateHeartbeatSeconds = 2.5;

// Whether any node belongs to HDFS; a node that does not is then in trouble.
bool HasHdfs(const ClusterStatus& status);

// What is wrong with a node, a sentence each, for operators; empty: nothing. `hdfs`: the
// coordinator knows of an HDFS, so that nodes are expected to be DataNodes. Pure.
std::vector<std::string> TroublesOf(const NodeStatus& node, bool hdfs);

}  // namespace ecpipe
