// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>
#include <sys/uio.h>

#include <cerrno>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "net/tls/tls.h"

namespace ecpipe {

// Whether the call that has just failed may succeed later: the socket was not ready, or a signal
// came.
inline bool WouldBlock() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

// One end of a stream: a connected, non-blocking TCP socket, with or without TLS. Without TLS each
// call is just the system call of that name. Used by one thread at a time; destroying it closes it.
class StreamSocket {
 public:
  StreamSocket() = default;
  explicit StreamSocket(UniqueFd fd) : fd_(std::move(fd)) {}

  bool valid() const { return fd_.valid(); }
  int fd() const { return fd_.get(); }
  bool has_tls() const { return tls_ != nullptr; }

  // Adds TLS: `tls` must use this socket. Call it before any other call, then call Handshake()
  // until it returns true.
  void UseTls(std::unique_ptr<TlsSession> tls) { tls_ = std::move(tls); }
  // See TlsSession; true at once without TLS.
  absl::StatusOr<bool> Handshake();
  // With TLS, after the handshake: as PeerIdentity::node.
  const std::string& peer_node() const { return tls_->peer_node(); }
  short handshake_events() const { return tls_ == nullptr ? POLLOUT : tls_->wanted_events(); }

  // Returns the number of bytes read, 0 when the peer has ended, or -1 with errno. Fewer bytes than
  // fit mean that no more had come.
  ssize_t Read(const iovec* parts, int count);
  // Returns the number of bytes sent, or -1 with errno. `flags`: MSG_MORE or 0.
  ssize_t Send(const iovec* parts, int count, int flags);
  // The error of the last Read() or Send() as a status, with context.
  absl::Status Error(int errno_value, const std::string& what) const;

  // Whether a Send() that failed still holds bytes: then only the same bytes may be sent next.
  bool mid_send() const { return tls_ != nullptr && tls_->write_pending(); }
  // For a peer that must not send: whether it has ended, or has sent something. Reads nothing.
  bool PeerEndedOrSpoke() const;

  // Tells the peer that this end has received all that it wants. Without TLS closing does that.
  void SendCloseNotify();

 private:
  UniqueFd fd_;
  std::unique_ptr<TlsSession> tls_;  // uses fd_
};

}  // namespace ecpipe
