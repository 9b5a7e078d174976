// SPDX-License-Identifier: Apache-2.0
// Where a requestor endpoint listens, as configurations say it: "unix:/path" or "tcp:host:port".
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "net/tcp_socket.h"

namespace ecpipe {

struct EndpointAddress {
  std::string path;             // of a Unix socket
  std::optional<HostPort> tcp;  // nothing: a Unix socket
};

// INVALID_ARGUMENT: the text has another form, or its path is too long for a socket.
absl::StatusOr<EndpointAddress> ParseEndpointAddress(const std::string& text);

// Whether an endpoint may listen there. INVALID_ARGUMENT: as above, or other hosts can reach it and
// nothing protects it. `allowed`: TLS does, or the operator has allowed it.
absl::Status CheckEndpointAddress(const std::string& text, bool allowed);

}  // namespace ecpipe
