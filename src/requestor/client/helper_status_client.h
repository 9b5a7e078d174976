// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "requestor/client/coordinator_api.h"
#include "rpc/rpc_security.h"

namespace ecpipe {

// Asks all helpers that are not dead for their counters, at once, and sets `answers` and `counters`
// of their nodes. Stragglers are waited for a second, or longer where all are slow; never more than
// six.
void AskHelpers(const RpcSecurity& security, std::vector<NodeStatus>* nodes);

}  // namespace ecpipe
