// SPDX-License-Identifier: Apache-2.0
// A connection to the endpoint whose every wait has a deadline and ends when it is cancelled.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/unique_fd.h"
#include "shim/failure.h"
#include "shim/settings.h"
#include "shim/tls_session.h"

namespace ecpipe_qfs {

using SteadyClock = std::chrono::steady_clock;

// Used by one thread, which has all signals blocked: OpenSSL writes to the socket by write().
class Connection {
 public:
  // `cancel_fd` becomes readable when waits are to end with CANCELLED, and stays so. It and
  // `settings` outlive the object.
  Connection(const Settings& settings, int cancel_fd)
      : settings_(settings), cancel_fd_(cancel_fd) {}

  // Connects, and makes the connection safe where the settings want it.
  Failure Open(SteadyClock::time_point deadline);
  Failure Write(const uint8_t* bytes, size_t count, SteadyClock::time_point deadline);
  // UNAVAILABLE: the endpoint closed before `count` bytes had come.
  Failure ReadFully(uint8_t* bytes, size_t count, SteadyClock::time_point deadline);

 private:
  // DEADLINE_EXCEEDED, CANCELLED; `fd` may be -1, to wait for these two only.
  Failure Await(int fd, short events, SteadyClock::time_point deadline) const;
  Failure Dial(SteadyClock::time_point deadline);
  Failure Unreachable(int error_number) const;

  const Settings& settings_;
  const int cancel_fd_;
  ecpipe::UniqueFd socket_;
  std::unique_ptr<TlsSession> tls_;
};

}  // namespace ecpipe_qfs
