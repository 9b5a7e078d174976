// SPDX-License-Identifier: Apache-2.0
// What the coordinator's GetStatus says, in the requestor's own types.
#pragma once

#include <vector>

#include "ecpipe/v1/coordinator.pb.h"
#include "requestor/client/coordinator_api.h"

namespace ecpipe {

CorruptBlockStatus CorruptStatusOf(const v1::CorruptBlock& proto);
ClusterStatus ClusterStatusOf(const v1::GetStatusResponse& proto);

// Takes over what the coordinator says of the ports of these nodes.
void AddPortChecks(const v1::GetStatusResponse& proto, std::vector<NodeStatus>* nodes);

}  // namespace ecpipe
