// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "net/host_lookups.h"

namespace ecpipe {

// Tries to connect to all these addresses ("host:port") at the same time, says nothing there, and
// closes the connections. Returns one answer for each, in order. DEADLINE_EXCEEDED: within
// `timeout` the name server did not answer, or none of the host's addresses. Takes no longer.
std::vector<absl::Status> CheckPorts(const std::vector<std::string>& addresses, Duration timeout,
                                     HostLookups* lookups = &HostLookups::OfThisProcess());

}  // namespace ecpipe
