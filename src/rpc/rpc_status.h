// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/status.h>

#include <string>

#include "absl/status/status.h"

namespace ecpipe {

// The codes of absl and gRPC are the same numbers; only the types differ. But no service of ours
// answers CANCELLED, it says ABORTED instead: gRPC itself answers that for a server that is
// shutting down. The message is cut to what fits an HTTP/2 trailer.
grpc::Status ToGrpc(const absl::Status& status);

// A failed call: the message says which peer it was, since gRPC's own does not always. UNAVAILABLE
// for CANCELLED: whoever cancels a call of his own knows it.
absl::Status FromGrpc(const grpc::Status& status, const std::string& peer);

// From a code and message that travelled in a proto; 0 is OK, an unknown code becomes UNKNOWN. The
// blame (common/blame.h) travels beside them where it is known.
absl::Status StatusFromWire(int code, const std::string& message, const std::string& blamed = "");

}  // namespace ecpipe
