// SPDX-License-Identifier: Apache-2.0
// Who may use a requestor endpoint, and how much of it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/process/config_troubles.h"
#include "net/endpoint_address.h"

namespace ecpipe {

// Who is at the other end of a connection, as the kernel says.
struct EndpointPeer {
  std::optional<uid_t> user;  // nothing: TCP, where the kernel does not say
  std::vector<gid_t> groups;
  std::string origin = {};  // the address, where other hosts may call

  std::string text() const {
    if (user) return std::to_string(*user);
    return origin.empty() ? "unknown" : origin;
  }
};
EndpointPeer PeerOf(int fd);

class EndpointAccess {
 public:
  struct Options {
    // Of a Unix socket: only these may ask, beside the mode of its file. Both empty: everybody.
    std::vector<std::string> allow_users;
    std::vector<std::string> allow_groups;
    // The users for whom there is always room; empty: the one that this process runs as.
    std::vector<std::string> first_users;
    // The file with the secret that clients on TCP show; empty: none. Written at the start, with a
    // new secret.
    std::string cookie;
    uint32_t cookie_mode = 0600;
  };

  // Finds that users are named and the endpoint is on TCP, or that others could read the cookie.
  static ConfigTroubles Check(const Options& options, const EndpointAddress& where);
  // The same, or a user or group does not exist on this host. Writes the cookie, if it is on TCP.
  static absl::StatusOr<EndpointAccess> Create(const Options& options, const std::string& address);

  // PERMISSION_DENIED: the user may not ask.
  absl::Status CheckPeer(const EndpointPeer& peer) const;
  // UNAUTHENTICATED: it is not the secret that is wanted. Takes the same time whatever it is.
  absl::Status CheckCookie(const std::string& shown) const;
  // RESOURCE_EXHAUSTED: with these connections open, of which each says its user or address,
  // another one of the peer would take the room of others. An address has the share of a user.
  absl::Status CheckRoom(const EndpointPeer& peer, std::span<const EndpointPeer> open,
                         size_t max_connections) const;
  // Whether the peer's address has its share of the connections already.
  static bool HasItsShare(const EndpointPeer& peer, std::span<const EndpointPeer> open,
                          size_t max_connections);

 private:
  bool IsFirst(const EndpointPeer& peer) const;

  std::set<uid_t> users_;
  std::set<gid_t> groups_;
  std::set<uid_t> first_;
  std::string secret_;
};

}  // namespace ecpipe
