// SPDX-License-Identifier: Apache-2.0
#include "net/endpoint_address.h"

#include <sys/un.h>

#include "base/status.h"

namespace ecpipe {

absl::StatusOr<EndpointAddress> ParseEndpointAddress(const std::string& text) {
  EndpointAddress address;
  const std::string rest = text.substr(text.find(':') + 1);
  if (text.rfind("tcp:", 0) == 0) {
    ECPIPE_ASSIGN_OR_RETURN(address.tcp, ParseHostPort(rest));
    return address;
  }
  address.path = rest;
  const bool good = text.rfind("unix:/", 0) == 0 && rest.find('\0') == std::string::npos &&
                    rest.size() < sizeof(sockaddr_un::sun_path);
  if (good) return address;
  return absl::InvalidArgumentError(
      "'" + text + "' is neither unix:/path with a path of at most 107 bytes nor tcp:host:port");
}

absl::Status CheckEndpointAddress(const std::string& text, bool allowed) {
  ECPIPE_ASSIGN_OR_RETURN(const EndpointAddress address, ParseEndpointAddress(text));
  if (allowed || !address.tcp || IsLoopback(address.tcp->host)) return absl::OkStatus();
  return absl::InvalidArgumentError("endpoint " + text +
                                    " is not a loopback address; set up [tls], or set insecure = "
                                    "true if only trusted hosts can reach it");
}

}  // namespace ecpipe
