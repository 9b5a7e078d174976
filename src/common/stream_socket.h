// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>
#include <sys/uio.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/tls.h"
#include "common/unique_fd.h"

namespace ecpipe {

// One end of a stream: a connected, non-blocking TCP socket, with TLS around it or without. Without
// TLS each call is the system call of that name and nothing else. One thread at a time; closing is
// done by destroying it.
class StreamSocket {
 public:
  StreamSocket() = default;
  explicit StreamSocket(UniqueFd fd) : fd_(std::move(fd)) {}

  bool valid() const { return fd_.valid(); }
  int fd() const { return fd_.get(); }
  bool has_tls() const { return tls_ != nullptr; }

  // Before anything else, if at all: `tls` is over this socket. Then Handshake() until it is true.
  void UseTls(std::unique_ptr<TlsSession> tls) { tls_ = std::move(tls); }
  // See TlsSession; true at once without TLS.
  absl::StatusOr<bool> Handshake();
  short handshake_events() const { return tls_ == nullptr ? POLLOUT : tls_->wanted_events(); }

  // The count; 0 when the peer has ended; -1 with errno. Fewer bytes than were asked for: no more
  // had come.
  ssize_t Read(const iovec* parts, int count);
  // The count, or -1 with errno. `flags`: MSG_MORE or 0.
  ssize_t Send(const iovec* parts, int count, int flags);
  // What Read() or Send() has failed with, said in context.
  absl::Status Error(int errno_value, const std::string& what) const;

  // Whether Send() has bytes under way that it has not counted: only they may follow.
  bool mid_send() const { return tls_ != nullptr && tls_->write_pending(); }
  // Whether a peer that is not to send anything has ended, or has sent something. Takes nothing.
  bool PeerEndedOrSpoke() const;

  // Tells the peer that all has been taken that is wanted. Without TLS closing says it.
  void SayGoodbye();

 private:
  UniqueFd fd_;
  std::unique_ptr<TlsSession> tls_;  // uses fd_
};

}  // namespace ecpipe
