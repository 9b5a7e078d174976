// SPDX-License-Identifier: Apache-2.0
// The far end of a stream under test: a socket on loopback that sends what the fuzzer says.
#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <optional>
#include <span>
#include <string>

#include "base/check.h"
#include "unit/net/raw_peer.h"

namespace ecpipe {

// One listener for the whole process, with `Accept` for each input. Every wait is bounded.
class FuzzPeer {
 public:
  static std::string address() {
    static const std::string text = FormatHostPort(BoundAddress(listener()).value());
    return text;
  }

  // Takes the connection that the code under test has begun.
  FuzzPeer() {
    ECPIPE_CHECK(WaitFor(listener(), POLLIN));
    fd_.reset(::accept4(listener(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    ECPIPE_CHECK(fd_.valid());
  }
  // With a reset, so that thousands of inputs a second leave no ports in TIME_WAIT.
  ~FuzzPeer() {
    const linger at_once{1, 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  }
  FuzzPeer(const FuzzPeer&) = delete;
  FuzzPeer& operator=(const FuzzPeer&) = delete;

  // Inputs are far smaller than a socket's buffers, so this does not wait. False: the other end
  // has closed already.
  bool Send(std::span<const uint8_t> bytes) {
    const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0) return false;
    ECPIPE_CHECK(static_cast<size_t>(sent) == bytes.size());
    return true;
  }
  void EndSending() { ::shutdown(fd_.get(), SHUT_WR); }
  int fd() const { return fd_.get(); }

 private:
  static int listener() {
    static const UniqueFd fd = Listen({"127.0.0.1", 0}).value();
    return fd.get();
  }

  UniqueFd fd_;
};

}  // namespace ecpipe
