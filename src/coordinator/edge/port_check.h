// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"

namespace ecpipe {

// Tries to connect to all these addresses ("host:port") at the same time, says nothing there, and
// closes the connections. Returns one answer for each, in order. DEADLINE_EXCEEDED: no answer
// within `timeout`. Names are resolved one after another, by the system and with its own timeouts.
std::vector<absl::Status> CheckPorts(const std::vector<std::string>& addresses, Duration timeout);

}  // namespace ecpipe
