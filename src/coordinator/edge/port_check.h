// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"

namespace ecpipe {

// A numeric address of the host. May take as long as it likes.
using HostResolver = std::function<absl::StatusOr<std::string>(const std::string& host)>;

// Tries to connect to all these addresses ("host:port") at the same time, says nothing there, and
// closes the connections. Returns one answer for each, in order. DEADLINE_EXCEEDED: the name was
// not resolved within `timeout`, or nobody answered within `timeout` after that. So the call takes
// twice that at most. `resolve` (null: the system) runs in threads that may outlive the call.
std::vector<absl::Status> CheckPorts(const std::vector<std::string>& addresses, Duration timeout,
                                     const HostResolver& resolve = nullptr);

}  // namespace ecpipe
