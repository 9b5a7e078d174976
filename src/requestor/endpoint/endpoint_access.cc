// SPDX-License-Identifier: Apache-2.0
#include "requestor/endpoint/endpoint_access.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/bytes/hex.h"
#include "base/file_io.h"
#include "base/status.h"
#include "net/tcp_socket.h"

namespace ecpipe {
namespace {

constexpr size_t kSecretBytes = 32;
constexpr uint32_t kOwnerMode = 0600;
constexpr size_t kMaxGroups = 1024;  // of a peer; Linux allows 65,536, and nobody has that many
// Of max_connections: what one user may have, and what all may have who are not first.
constexpr double kShareOfAUser = 0.5;
constexpr double kShareOfOthers = 0.75;

size_t ShareOf(size_t max_connections, double share) {
  return std::max<size_t>(1, static_cast<size_t>(static_cast<double>(max_connections) * share));
}

// It may be a mistake, or a directory of users that does not answer yet while the host starts: the
// names cannot tell.
absl::Status Unknown(const std::string& key, const std::string& who) {
  return absl::UnavailableError(key + ": there is no " + who +
                                ", or whoever knows it does not answer yet");
}

absl::StatusOr<std::set<uid_t>> UsersNamed(const std::string& key,
                                           const std::vector<std::string>& names) {
  std::set<uid_t> users;
  for (const std::string& name : names) {
    const passwd* const found = ::getpwnam(name.c_str());  // at the start: nobody else asks
    if (found == nullptr) return Unknown(key, "user " + name);
    users.insert(found->pw_uid);
  }
  return users;
}

absl::StatusOr<std::set<gid_t>> GroupsNamed(const std::string& key,
                                            const std::vector<std::string>& names) {
  std::set<gid_t> groups;
  for (const std::string& name : names) {
    const group* const found = ::getgrnam(name.c_str());
    if (found == nullptr) return Unknown(key, "group " + name);
    groups.insert(found->gr_gid);
  }
  return groups;
}

absl::StatusOr<std::string> WriteSecret(const std::string& path, uint32_t mode) {
  std::array<uint8_t, kSecretBytes> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return ErrnoStatus(errno, "make a secret");
  }
  const std::string secret = HexText(bytes);
  const std::string line = secret + "\n";
  // A new file each time: nobody reads a secret half-way, and a link is replaced, not followed.
  const std::string fresh = path + ".new";
  ::unlink(fresh.c_str());
  const UniqueFd file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kOwnerMode));
  if (!file.valid()) return ErrnoStatus(errno, "write the cookie " + fresh);
  ECPIPE_RETURN_IF_ERROR(
      WriteFully(file.get(), 0, {reinterpret_cast<const uint8_t*>(line.data()), line.size()}));
  if (::fchmod(file.get(), mode) != 0 || ::rename(fresh.c_str(), path.c_str()) != 0) {
    return ErrnoStatus(errno, "write the cookie " + path);
  }
  return secret;
}

}  // namespace

EndpointPeer PeerOf(int fd) {
  EndpointPeer peer;
  sockaddr_storage from{};
  socklen_t from_length = sizeof from;
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&from), &from_length) == 0 &&
      from.ss_family != AF_UNIX) {
    peer.origin = OriginText(from);
    return peer;
  }
  ucred credentials{};
  socklen_t length = sizeof credentials;
  const bool known = ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0 &&
                     credentials.uid != static_cast<uid_t>(-1);
  if (!known) return peer;
  peer.user = credentials.uid;
  std::vector<gid_t> groups(kMaxGroups);
  length = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &length) == 0) {
    groups.resize(length / sizeof(gid_t));
    peer.groups = std::move(groups);
  }
  peer.groups.push_back(credentials.gid);
  return peer;
}

ConfigTroubles EndpointAccess::Check(const Options& options, const EndpointAddress& where) {
  ConfigTroubles troubles;
  const bool users = !options.allow_users.empty();
  if (where.tcp && (users || !options.allow_groups.empty())) {
    troubles.Add(users ? "endpoint.allow_users" : "endpoint.allow_groups",
                 absl::InvalidArgumentError(
                     "allow_users and allow_groups are for Unix sockets: a TCP connection does not "
                     "tell which user calls; use a cookie"));
  }
  if (options.cookie_mode != kOwnerMode && options.cookie_mode != kServiceFileMode) {
    troubles.Add(
        "endpoint.cookie_mode",
        absl::InvalidArgumentError("cookie_mode must be 0600, or 0640 for the file's group"));
  }
  return troubles;
}

absl::StatusOr<EndpointAccess> EndpointAccess::Create(const Options& options,
                                                      const std::string& address) {
  ECPIPE_ASSIGN_OR_RETURN(const EndpointAddress where, ParseEndpointAddress(address));
  ECPIPE_RETURN_IF_ERROR(Check(options, where).First());
  EndpointAccess access;
  ECPIPE_ASSIGN_OR_RETURN(access.users_, UsersNamed("allow_users", options.allow_users));
  ECPIPE_ASSIGN_OR_RETURN(access.groups_, GroupsNamed("allow_groups", options.allow_groups));
  ECPIPE_ASSIGN_OR_RETURN(access.first_, UsersNamed("first_users", options.first_users));
  if (access.first_.empty()) access.first_.insert(::geteuid());
  if (where.tcp && !options.cookie.empty()) {
    ECPIPE_ASSIGN_OR_RETURN(access.secret_, WriteSecret(options.cookie, options.cookie_mode));
  }
  return access;
}

absl::Status EndpointAccess::CheckPeer(const EndpointPeer& peer) const {
  if (users_.empty() && groups_.empty()) return absl::OkStatus();
  const bool in_group = std::any_of(peer.groups.begin(), peer.groups.end(),
                                    [this](gid_t group) { return groups_.contains(group); });
  if (in_group || (peer.user && users_.contains(*peer.user))) return absl::OkStatus();
  return absl::PermissionDeniedError("user " + peer.text() +
                                     " is neither among [endpoint] allow_users nor in one of its "
                                     "allow_groups");
}

absl::Status EndpointAccess::CheckCookie(const std::string& shown) const {
  if (secret_.empty()) return absl::OkStatus();
  unsigned differs = shown.size() == secret_.size() ? 0 : 1;
  for (size_t i = 0; i < secret_.size(); ++i) {
    const char at = i < shown.size() ? shown[i] : '\0';
    differs |= static_cast<unsigned char>(at ^ secret_[i]);
  }
  if (differs == 0) return absl::OkStatus();
  return absl::UnauthenticatedError(shown.empty()
                                        ? "the endpoint wants the secret of its cookie file"
                                        : "the cookie is not the endpoint's: it is a new one "
                                          "each time that the endpoint starts");
}

bool EndpointAccess::IsFirst(const EndpointPeer& peer) const {
  return !peer.user || first_.contains(*peer.user);
}

bool EndpointAccess::HasItsShare(const EndpointPeer& peer, std::span<const EndpointPeer> open,
                                 size_t max_connections) {
  if (peer.origin.empty()) return false;
  const auto of_address = std::count_if(open.begin(), open.end(), [&](const EndpointPeer& other) {
    return other.origin == peer.origin;
  });
  return static_cast<size_t>(of_address) >= ShareOf(max_connections, kShareOfAUser);
}

absl::Status EndpointAccess::CheckRoom(const EndpointPeer& peer, std::span<const EndpointPeer> open,
                                       size_t max_connections) const {
  const auto refuse = [](const std::string& why) {
    return absl::ResourceExhaustedError("the endpoint is at its limit of connections (" + why +
                                        " of [endpoint] max_connections)");
  };
  if (open.size() >= max_connections) return refuse("all");
  if (HasItsShare(peer, open, max_connections)) return refuse("the address's half");
  if (!peer.origin.empty()) return absl::OkStatus();
  if (IsFirst(peer)) return absl::OkStatus();
  size_t of_user = 0;
  size_t of_others = 0;
  for (const EndpointPeer& other : open) {
    if (IsFirst(other)) continue;
    ++of_others;
    if (other.user == peer.user) ++of_user;
  }
  if (of_user >= ShareOf(max_connections, kShareOfAUser)) return refuse("the user's half");
  if (of_others >= ShareOf(max_connections, kShareOfOthers)) {
    return refuse("the three quarters of users who are not first");
  }
  return absl::OkStatus();
}

}  // namespace ecpipe
