// SPDX-License-Identifier: Apache-2.0
// Connects to host:port without blocking: the name is looked up on another thread, and of several
// addresses each has its turn.
#pragma once

#include <poll.h>

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/unique_fd.h"
#include "base/wakeup.h"
#include "net/tcp_socket.h"

namespace ecpipe {

// Looks names of hosts up. A name server that does not answer holds its caller up for half a minute
// and more, and nothing can interrupt that: so threads of its own ask, a few at once. Thread-safe.
// If it is destroyed while a look-up hangs, the thread is left to itself.
class HostLookups {
 private:
  struct State;

 public:
  // Numeric, in the order in which they should be tried.
  using Addresses = std::vector<std::string>;
  // Called by the threads; may block. Used until the last look-up has come back.
  using Resolver = std::function<absl::StatusOr<Addresses>(const std::string& host)>;

  static constexpr size_t kMaxThreads = 4;
  static constexpr size_t kMaxHosts =
      10'000;  // as many as nodes; beyond it the oldest is forgotten
  // What is older is used, too, and looked up anew meanwhile.
  static constexpr Duration kFresh = std::chrono::seconds(30);

  // Null: the system's resolver.
  explicit HostLookups(Resolver resolver = nullptr);
  // For all that a process dials; never destroyed.
  static HostLookups& OfThisProcess();

  // A look-up that was begun. Thread-safe.
  class Lookup {
   public:
    // Readable once the result is there.
    int fd() const { return done_.fd(); }
    // Nothing: not yet.
    std::optional<absl::StatusOr<Addresses>> Result();

   private:
    friend class HostLookups;
    friend struct HostLookups::State;
    std::shared_ptr<State> state_;                     // shared with the threads
    std::optional<absl::StatusOr<Addresses>> result_;  // guarded by the state's mutex
    Wakeup done_;
  };
  // Done at once for a numeric address, and for a name that is known.
  std::shared_ptr<Lookup> Begin(const std::string& host);

 private:
  static void Work(const std::shared_ptr<State>& shared);

  const std::shared_ptr<State> state_;  // shared with the threads, which may outlive this
};

// One connection that is being made. Used by one thread at a time.
class Dialler {
 public:
  // An address that has not answered by then has company from the next one.
  static constexpr Duration kTurn = std::chrono::milliseconds(250);
  // For the look-up. Connections are given up by whoever waits for them.
  static constexpr Duration kLookupPatience = std::chrono::seconds(5);

  // Never blocks. An error is that of Step().
  static absl::StatusOr<Dialler> Begin(const HostPort& address,
                                       HostLookups* lookups = &HostLookups::OfThisProcess());

  // The connected socket, with TCP_NODELAY; not valid: not yet. UNAVAILABLE, DEADLINE_EXCEEDED: the
  // name has no address, or none of them takes the connection; the error is that of the last one.
  absl::StatusOr<UniqueFd> Step();
  // When it is ready, Step() has something to do.
  pollfd poll_fd() const;

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
