// SPDX-License-Identifier: Apache-2.0
// The one place that asks for the addresses of a host's name.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/wakeup.h"

namespace ecpipe {

// Looks names of hosts up. A name server that does not answer holds its caller up for half a minute
// and more, and nothing can interrupt that: so threads of its own ask, a few at once. Thread-safe.
// If it is destroyed while a look-up hangs, the thread is left to itself.
class HostLookups {
 private:
  struct State;

 public:
  // Numeric, in the order in which they should be tried. Not empty.
  using Addresses = std::vector<std::string>;
  // Called by the threads; may block. Used until the last look-up has come back.
  using Resolver = std::function<absl::StatusOr<Addresses>(const std::string& host)>;

  // A thread that hangs costs a stack, and keeps one name from being looked up.
  static constexpr size_t kMaxThreads = 16;
  // Of these, what may look up anew what is known already: others wait for the rest.
  static constexpr size_t kMaxRefreshing = kMaxThreads / 2;
  // As many as nodes; beyond it the oldest is forgotten, and more at once are refused.
  static constexpr size_t kMaxHosts = 10'000;
  // What is older is used, too, and looked up anew meanwhile.
  static constexpr Duration kFresh = std::chrono::seconds(30);
  // Of callers that have no deadline of their own.
  static constexpr Duration kPatience = std::chrono::seconds(5);

  // Null: the system's resolver. The clock, which tells how old a result is, outlives all look-ups.
  explicit HostLookups(Resolver resolver = nullptr, const Clock* clock = &Clock::System());
  // For all names that a process uses; never destroyed.
  static HostLookups& OfThisProcess();

  // A look-up that was begun. Thread-safe. Who destroys it waits no longer; nothing is left of it.
  class Lookup {
   public:
    // Readable once the result is there.
    int fd() const { return done_.fd(); }
    // Nothing: not yet. UNAVAILABLE: nobody knows the name, or the name server is out of order.
    // RESOURCE_EXHAUSTED: there are too many names, threads or open files.
    std::optional<absl::StatusOr<Addresses>> Result();
    // Waits for the result. DEADLINE_EXCEEDED: it has not come by then.
    absl::StatusOr<Addresses> Await(TimePoint deadline);

   private:
    friend class HostLookups;
    friend struct HostLookups::State;
    std::string host_;
    std::shared_ptr<State> state_;                     // shared with the threads
    std::optional<absl::StatusOr<Addresses>> result_;  // guarded by the state's mutex
    Wakeup done_;
  };
  // Done at once for a numeric address, and for a name that is known, if it was looked up at most
  // `max_age` ago. Shared with the thread that hands over the result.
  std::shared_ptr<Lookup> Begin(const std::string& host, Duration max_age = Duration::max());
  // One that has no answer by its deadline.
  static absl::Status NoAnswer(const std::string& host);
  // What getaddrinfo's error means: UNAVAILABLE.
  static absl::Status FailureOf(const std::string& host, int error);
  // Whether the failure is that nobody knows the name. Any other may be over at the next try.
  static bool NobodyKnows(const absl::Status& failure);

 private:
  static void Work(const std::shared_ptr<State>& shared);

  const std::shared_ptr<State> state_;  // shared with the threads, which may outlive this
};

}  // namespace ecpipe
