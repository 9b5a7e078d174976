// SPDX-License-Identifier: Apache-2.0
// Who is at fault, carried by a status as it travels from the node that saw a failure to the one
// that plans again.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace ecpipe {

// Instead of a node's id: whoever tells of the error is at fault itself. The receiver of an error
// knows whom it has it from.
inline constexpr char kBlameSelf[] = ".";
// Who saw it could not tell.
inline constexpr char kBlameNobody[] = "?";

// `status` with the node at fault. The first blame stays: it is from the one who saw it happen.
[[nodiscard]] absl::Status Blame(absl::Status status, const std::string& node);

// The node at fault, kBlameSelf or kBlameNobody; empty when nobody has looked.
std::string BlamedBy(const absl::Status& status);

// The same status as its receiver sees it: the sender's "self" is `sender`.
[[nodiscard]] absl::Status FromPeer(const absl::Status& status, const std::string& sender);

}  // namespace ecpipe
