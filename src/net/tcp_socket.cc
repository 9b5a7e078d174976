// SPDX-License-Identifier: Apache-2.0
#include "net/tcp_socket.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <iterator>
#include <memory>

#include "base/clock.h"
#include "base/status.h"
#include "net/host_lookups.h"

namespace ecpipe {
namespace {

struct FreeAddrinfo {
  void operator()(addrinfo* info) const { ::freeaddrinfo(info); }
};
using AddrinfoPtr = std::unique_ptr<addrinfo, FreeAddrinfo>;

// Of a numeric address: asks nobody.
absl::StatusOr<AddrinfoPtr> SocketAddress(const HostPort& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error =
      ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (error != 0) {
    return absl::UnavailableError(address.host +
                                  " is no numeric address: " + ::gai_strerror(error));
  }
  return AddrinfoPtr(found);
}

absl::StatusOr<HostLookups::Addresses> OwnAddresses(const std::string& host) {
  return HostLookups::OfThisProcess().Begin(host)->Await(Clock::System().Now() +
                                                         HostLookups::kPatience);
}

// No brackets, blanks or control characters: at a NUL the resolver would see the end of the name.
bool IsHostText(const std::string& host) {
  return std::all_of(host.begin(), host.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte > ' ' && byte != 0x7f && c != '[' && c != ']';
  });
}

void SetNoDelay(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// `address` is numeric. `error`: of the system, if it fails.
absl::StatusOr<UniqueFd> ListenOn(const HostPort& address, int* error) {
  const auto failed = [error](const std::string& what) {
    *error = errno;
    return ErrnoStatus(*error, what);
  };
  ECPIPE_ASSIGN_OR_RETURN(const AddrinfoPtr info, SocketAddress(address));
  UniqueFd fd(::socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return failed("socket");
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const std::string where = "listen on " + FormatHostPort(address);
  if (::bind(fd.get(), info->ai_addr, info->ai_addrlen) != 0) return failed(where);
  constexpr int kBacklog = 512;  // a full-node recovery opens hundreds of streams at once
  if (::listen(fd.get(), kBacklog) != 0) return failed(where);
  return fd;
}

absl::StatusOr<std::vector<UniqueFd>> TryListenOnAll(const HostPort& address) {
  ECPIPE_ASSIGN_OR_RETURN(const HostLookups::Addresses all, OwnAddresses(address.host));
  std::vector<UniqueFd> listeners;
  absl::Status left_out;
  int port = address.port;
  for (const std::string& numeric : all) {
    int error = 0;
    absl::StatusOr<UniqueFd> listener = ListenOn({numeric, port}, &error);
    // The host has no such address, or does not speak that protocol.
    if (error == EADDRNOTAVAIL || error == EAFNOSUPPORT) {
      left_out = listener.status();
      continue;
    }
    if (!listener.ok()) return listener.status();
    if (port == 0) {
      ECPIPE_ASSIGN_OR_RETURN(const HostPort bound, BoundAddress(listener->get()));
      port = bound.port;
    }
    listeners.push_back(*std::move(listener));
  }
  if (listeners.empty()) return left_out;
  return listeners;
}

}  // namespace

absl::StatusOr<HostPort> ParseHostPort(const std::string& text) {
  const auto bad = [&] {
    return absl::InvalidArgumentError("'" + text + "' is not an address of the form host:port");
  };
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return bad();
  HostPort address;
  address.host = text.substr(0, colon);
  const bool bracketed =
      address.host.size() > 2 && address.host.front() == '[' && address.host.back() == ']';
  if (bracketed) address.host = address.host.substr(1, address.host.size() - 2);
  const bool has_colon = address.host.find(':') != std::string::npos;
  if (has_colon != bracketed || !IsHostText(address.host)) return bad();
  // Not a signed number: "-0" is none of a port.
  uint16_t port = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + colon + 1, end, port);
  if (error != std::errc() || rest != end) return bad();
  address.port = port;
  return address;
}

std::string FormatHostPort(const HostPort& address) {
  const bool v6 = address.host.find(':') != std::string::npos;
  return (v6 ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

std::string OriginText(const sockaddr_storage& peer) {
  char text[INET6_ADDRSTRLEN] = "";
  if (peer.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(peer);
    ::inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
    return text;
  }
  if (peer.ss_family != AF_INET6) return "";
  in6_addr address = reinterpret_cast<const sockaddr_in6&>(peer).sin6_addr;
  if (IN6_IS_ADDR_V4MAPPED(&address)) {
    ::inet_ntop(AF_INET, &address.s6_addr[12], text, sizeof text);
    return text;
  }
  std::fill(std::begin(address.s6_addr) + 8, std::end(address.s6_addr), uint8_t{0});
  ::inet_ntop(AF_INET6, &address, text, sizeof text);
  return std::string(text) + "/64";
}

bool IsLoopback(const std::string& host) {
  if (host == "localhost") return true;
  in_addr v4{};
  if (::inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6{};
  return ::inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

absl::Status CheckListenAddress(const std::string& address, bool allowed) {
  ECPIPE_ASSIGN_OR_RETURN(const HostPort host_port, ParseHostPort(address));
  if (IsLoopback(host_port.host) || allowed) return absl::OkStatus();
  return absl::InvalidArgumentError(
      address +
      " is not a loopback address, and TLS does not protect it; set up [tls], "
      "or set insecure = true if only trusted hosts can reach the address");
}

bool IsWildcard(const std::string& host) {
  in_addr v4{};
  if (::inet_pton(AF_INET, host.c_str(), &v4) == 1) return v4.s_addr == 0;
  in6_addr v6{};
  return ::inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_UNSPECIFIED(&v6);
}

absl::StatusOr<UniqueFd> StartConnect(const HostPort& address) {
  ECPIPE_ASSIGN_OR_RETURN(const AddrinfoPtr info, SocketAddress(address));
  UniqueFd fd(::socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return ErrnoStatus(errno, "socket");
  SetNoDelay(fd.get());
  if (::connect(fd.get(), info->ai_addr, info->ai_addrlen) != 0 && errno != EINPROGRESS) {
    return ErrnoStatus(errno, "connect to " + FormatHostPort(address));
  }
  return fd;
}

absl::Status ConnectResult(int fd, const std::string& address) {
  int error = 0;
  socklen_t length = sizeof error;
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0) error = errno;
  return error == 0 ? absl::OkStatus() : ErrnoStatus(error, "connect to " + address);
}

absl::StatusOr<UniqueFd> Listen(const HostPort& address) {
  ECPIPE_ASSIGN_OR_RETURN(const HostLookups::Addresses all, OwnAddresses(address.host));
  int error = 0;
  return ListenOn({all.front(), address.port}, &error);
}

absl::StatusOr<std::vector<UniqueFd>> ListenOnAll(const HostPort& address) {
  // Another process may have the port that the system chose for the first at one of the others.
  constexpr int kAttempts = 10;
  absl::StatusOr<std::vector<UniqueFd>> listeners = TryListenOnAll(address);
  for (int i = 1; i < kAttempts && address.port == 0 && absl::IsUnavailable(listeners.status());
       ++i) {
    listeners = TryListenOnAll(address);
  }
  return listeners;
}

absl::StatusOr<HostPort> BoundAddress(int fd) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  auto* address = reinterpret_cast<sockaddr*>(&storage);
  if (::getsockname(fd, address, &length) != 0) return ErrnoStatus(errno, "getsockname");
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  const int error = ::getnameinfo(address, length, host, sizeof host, port, sizeof port,
                                  NI_NUMERICHOST | NI_NUMERICSERV);
  if (error != 0) return absl::InternalError(std::string("getnameinfo: ") + ::gai_strerror(error));
  return HostPort{host, std::stoi(port)};
}

}  // namespace ecpipe
