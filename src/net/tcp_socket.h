// SPDX-License-Identifier: Apache-2.0
// Addresses and sockets, as much of them as a data plane needs.
#pragma once

#include <sys/socket.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace ecpipe {

struct HostPort {
  std::string host;  // a numeric address or a name; without the brackets of an IPv6 literal
  int port = 0;
};

// "host:port" or "[v6]:port". INVALID_ARGUMENT otherwise.
absl::StatusOr<HostPort> ParseHostPort(const std::string& text);
std::string FormatHostPort(const HostPort& address);

// The address of a peer, as text; of IPv6 its /64, since a host has all of one.
std::string OriginText(const sockaddr_storage& peer);

// True for 127.0.0.0/8, ::1 and "localhost": addresses that nobody outside this host can reach.
bool IsLoopback(const std::string& host);

// INVALID_ARGUMENT unless `address` is host:port, and is a loopback address or `allowed` is set. It
// is set if TLS protects the address, or if the operator says that the network is private.
absl::Status CheckListenAddress(const std::string& address, bool allowed);

// True for 0.0.0.0 and ::, which stand for every address of a host.
bool IsWildcard(const std::string& host);

// Starts a non-blocking connect to a numeric address; net/dialler.h connects to names. The result
// may still be connecting: poll it for POLLOUT, then ask ConnectResult. TCP_NODELAY is set.
absl::StatusOr<UniqueFd> StartConnect(const HostPort& address);
// OK, or why the connect failed. Valid once the socket is writable.
absl::Status ConnectResult(int fd, const std::string& address);

// A non-blocking listening socket; port 0 picks a free one. Waits for the name server, if the host
// is a name, as long as HostLookups::kPatience.
absl::StatusOr<UniqueFd> Listen(const HostPort& address);
// The same for each address that the host stands for, all with one port: "localhost" may be ::1 and
// 127.0.0.1. Addresses that this host does not have are left out, unless it has none of them.
absl::StatusOr<std::vector<UniqueFd>> ListenOnAll(const HostPort& address);
// The address that a listening socket is bound to.
absl::StatusOr<HostPort> BoundAddress(int fd);

}  // namespace ecpipe
