// SPDX-License-Identifier: Apache-2.0
// Connects to host:port without blocking: the name is looked up on another thread, and of several
// addresses each has its turn.
#pragma once

#include <poll.h>

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/unique_fd.h"
#include "net/host_lookups.h"
#include "net/tcp_socket.h"

namespace ecpipe {

// One connection that is being made. Used by one thread at a time.
class Dialler {
 public:
  // An address that has not answered by then has company from the next one.
  static constexpr Duration kTurn = std::chrono::milliseconds(250);
  // For the look-up. Connections are given up by whoever waits for them.
  static constexpr Duration kLookupPatience = HostLookups::kPatience;

  // Never blocks. An error is that of Step().
  static absl::StatusOr<Dialler> Begin(const HostPort& address,
                                       HostLookups* lookups = &HostLookups::OfThisProcess());

  // Begins, and waits for the connected socket. DEADLINE_EXCEEDED: there is none by then; the text
  // says what was waited for. Other errors as of Step().
  static absl::StatusOr<UniqueFd> Connect(const HostPort& address, TimePoint deadline,
                                          HostLookups* lookups = &HostLookups::OfThisProcess());

  // The connected socket, with TCP_NODELAY; not valid: not yet. UNAVAILABLE, DEADLINE_EXCEEDED: the
  // name has no address, or none of them takes the connection; the error is that of the last one.
  absl::StatusOr<UniqueFd> Step();
  // When it is ready, Step() has something to do.
  pollfd poll_fd() const;
  // For who waits no longer: what has not come.
  absl::Status NoAnswer() const;

 private:
  explicit Dialler(const HostPort& address) : address_(address) {}
  absl::Status TakeLookup();
  // Begins with the next address that takes a connection.
  absl::Status StartNext();
  absl::Status SetTimer(Duration from_now);

  HostPort address_;
  std::shared_ptr<HostLookups::Lookup> lookup_;  // shared with its thread; null: it has ended
  TimePoint lookup_until_;
  std::deque<std::string> left_;  // addresses that have not had their turn
  std::vector<UniqueFd> connecting_;
  absl::Status failure_;
  // What all of it can be waited for with, where that is more than one socket.
  UniqueFd epoll_;
  UniqueFd timer_;
};

}  // namespace ecpipe
