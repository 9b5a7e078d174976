// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/status.h>

#include <string>

#include "absl/status/status.h"

namespace ecpipe {

// Converts a status to gRPC's type; the codes are the same numbers. CANCELLED becomes ABORTED,
// because gRPC itself answers CANCELLED for a server that is shutting down. The message is cut to
// what fits an HTTP/2 trailer.
grpc::Status ToGrpc(const absl::Status& status);

// The status of a failed call. The message names the peer, which gRPC's own does not always do.
// CANCELLED becomes UNAVAILABLE: a caller that cancels its own call knows that it did.
absl::Status FromGrpc(const grpc::Status& status, const std::string& peer);

// From a code and message that travelled in a proto; 0 is OK, an unknown code becomes UNKNOWN. The
// node at fault (model/fault.h) travels beside them where it is known.
absl::Status StatusFromWire(int code, const std::string& message,
                            const std::string& fault_node = "");

}  // namespace ecpipe
