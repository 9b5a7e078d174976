// SPDX-License-Identifier: Apache-2.0
#include "requestor/endpoint/endpoint_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/status.h"
#include "net/endpoint_address.h"

namespace ecpipe {
namespace {

sockaddr_un UnixAddress(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

// Removes the file of a socket on which nobody listens any more.
absl::Status RemoveStale(const std::string& path, const sockaddr_un& address) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0) {
    return errno == ENOENT ? absl::OkStatus() : ErrnoStatus(errno, "stat " + path);
  }
  if (!S_ISSOCK(info.st_mode)) {
    return absl::AlreadyExistsError(
        path + " exists and is not a socket; remove it, or set another [endpoint] address");
  }
  const UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!probe.valid()) return ErrnoStatus(errno, "socket");
  const int dialled =
      ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  if (dialled == 0 || errno != ECONNREFUSED) {
    return absl::AlreadyExistsError("another process listens on " + path);
  }
  return ::unlink(path.c_str()) == 0 ? absl::OkStatus() : ErrnoStatus(errno, "remove " + path);
}

absl::StatusOr<UniqueFd> ListenUnix(const std::string& path, uint32_t mode) {
  const sockaddr_un address = UnixAddress(path);
  ECPIPE_RETURN_IF_ERROR(RemoveStale(path, address));
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return ErrnoStatus(errno, "socket");
  const std::string where = "listen on " + path;
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return ErrnoStatus(errno, where);
  }
  // Before listen(): nobody can connect yet.
  if (::chmod(path.c_str(), static_cast<mode_t>(mode)) != 0) return ErrnoStatus(errno, where);
  if (::listen(fd.get(), SOMAXCONN) != 0) return ErrnoStatus(errno, where);
  return fd;
}

}  // namespace

absl::StatusOr<EndpointSocket> EndpointSocket::Listen(const std::string& address, uint32_t mode) {
  ECPIPE_ASSIGN_OR_RETURN(const EndpointAddress wanted, ParseEndpointAddress(address));
  if (!wanted.tcp) {
    ECPIPE_ASSIGN_OR_RETURN(UniqueFd fd, ListenUnix(wanted.path, mode));
    return EndpointSocket(std::move(fd), address, wanted.path, true);
  }
  ECPIPE_ASSIGN_OR_RETURN(UniqueFd fd, ecpipe::Listen(*wanted.tcp));
  ECPIPE_ASSIGN_OR_RETURN(const HostPort bound, BoundAddress(fd.get()));
  return EndpointSocket(std::move(fd), "tcp:" + FormatHostPort(bound), "", IsLoopback(bound.host));
}

void EndpointSocket::Close() {
  // The file first: while the socket listens, nobody else takes the file for stale.
  if (fd_.valid() && !path_.empty()) ::unlink(path_.c_str());
  fd_.reset();
}

}  // namespace ecpipe
