// SPDX-License-Identifier: Apache-2.0
// Who is at fault, carried by a status as it travels from the node that saw a failure to the one
// that plans again.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace ecpipe {

// Stands for a node's id: the node that reports the error is at fault itself. The receiver of the
// error knows which node that is.
inline constexpr char kFaultSelf[] = ".";
// Stands for a node's id: the node that saw the failure cannot tell who is at fault.
inline constexpr char kFaultUnknown[] = "?";

// `status` with the node at fault. A status that names one already keeps it, because the first
// fault is from the node that saw the failure.
[[nodiscard]] absl::Status WithFault(absl::Status status, const std::string& node);

// The node at fault, kFaultSelf or kFaultUnknown; empty if the status names none.
std::string FaultOf(const absl::Status& status);

// The same status as its receiver sees it: the sender's "self" is `sender`.
[[nodiscard]] absl::Status FromPeer(const absl::Status& status, const std::string& sender);

}  // namespace ecpipe
