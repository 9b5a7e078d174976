// SPDX-License-Identifier: Apache-2.0
#include "net/host_lookups.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <map>
#include <utility>

#include "base/guarded.h"
#include "base/mutex.h"
#include "base/process/blocked_signals.h"
#include "base/simulator.h"
#include "base/status.h"
#include "base/thread.h"

namespace ecpipe {
namespace {

constexpr char kNobodyKnows[] = "ecpipe.nobody_knows_the_name";

}  // namespace

struct HostLookups::State {
  struct Host {
    std::optional<Addresses> known;
    TimePoint known_at;
    bool under_way = false;                      // queued, or taken by a thread
    bool refreshing = false;                     // taken by a thread as a refresh
    std::vector<std::weak_ptr<Lookup>> waiting;  // their owners may have given up
  };

  State(Resolver the_resolver, const Clock* the_clock)
      : resolver(std::move(the_resolver)), clock(the_clock) {}

  // Takes note of a result, and returns those who wait for it.
  std::vector<std::shared_ptr<Lookup>> Take(const std::string& name,
                                            const absl::StatusOr<Addresses>& result)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    Host& host = hosts[name];
    host.under_way = false;
    if (std::exchange(host.refreshing, false)) --refreshing;
    if (result.ok()) host.known = *result;
    // Also when it failed: whoever knows an old address asks again only in a while.
    host.known_at = clock->Now();
    std::vector<std::shared_ptr<Lookup>> waiting;
    for (const std::weak_ptr<Lookup>& each : host.waiting) {
      std::shared_ptr<Lookup> lookup = each.lock();
      if (lookup == nullptr) continue;
      lookup->result_ = result;
      waiting.push_back(std::move(lookup));
    }
    host.waiting.clear();
    if (!host.known) hosts.erase(name);
    return waiting;
  }
  // The next name that somebody wants to know: first those that somebody waits for.
  std::optional<std::string> NextInQueue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    while (!queue.empty()) {
      std::string name = std::move(queue.front());
      queue.pop_front();
      const auto host = hosts.find(name);
      const bool wanted = host->second.known ||
                          std::any_of(host->second.waiting.begin(), host->second.waiting.end(),
                                      [](const auto& each) { return !each.expired(); });
      if (wanted) return name;
      hosts.erase(host);
    }
    if (refreshes.empty() || refreshing == kMaxRefreshing) return std::nullopt;
    std::string name = std::move(refreshes.front());
    refreshes.pop_front();
    hosts[name].refreshing = true;
    ++refreshing;
    return name;
  }
  // False: it is queued already, or a thread has taken it.
  bool Enqueue(const std::string& name, bool somebody_waits) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const bool under_way = std::exchange(hosts[name].under_way, true);
    if (under_way && (!somebody_waits || std::erase(refreshes, name) == 0)) return false;
    (somebody_waits ? queue : refreshes).push_back(name);
    return true;
  }
  // False: all of them are being looked up.
  bool MakeRoom() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (hosts.size() < kMaxHosts) return true;
    auto oldest = hosts.end();
    for (auto it = hosts.begin(); it != hosts.end(); ++it) {
      const bool older = oldest == hosts.end() || it->second.known_at < oldest->second.known_at;
      if (!it->second.under_way && older) oldest = it;
    }
    if (oldest == hosts.end()) return false;
    hosts.erase(oldest);
    return true;
  }

  const Resolver resolver;
  const Clock* const clock;
  Mutex mutex;
  std::map<std::string, Host> hosts ABSL_GUARDED_BY(mutex);
  // Names that no thread has taken yet.
  std::deque<std::string> queue ABSL_GUARDED_BY(mutex);
  std::deque<std::string> refreshes ABSL_GUARDED_BY(mutex);  // of what is known: nobody waits
  size_t refreshing ABSL_GUARDED_BY(mutex) = 0;              // that threads have taken
  size_t threads ABSL_GUARDED_BY(mutex) = 0;
};

namespace {

struct FreeAddresses {
  void operator()(addrinfo* info) const { ::freeaddrinfo(info); }
};

// The two families take turns, from the one that the system puts first: where one of them leads
// nowhere, that costs one turn.
HostLookups::Addresses TakingTurns(const std::vector<std::pair<int, std::string>>& found) {
  std::deque<std::string> first;
  std::deque<std::string> others;
  for (const auto& [family, numeric] : found) {
    (family == found.front().first ? first : others).push_back(numeric);
  }
  HostLookups::Addresses ordered;
  while (!first.empty() || !others.empty()) {
    for (std::deque<std::string>* const side : {&first, &others}) {
      if (side->empty()) continue;
      ordered.push_back(std::move(side->front()));
      side->pop_front();
    }
  }
  return ordered;
}

absl::StatusOr<HostLookups::Addresses> LookUp(const std::string& host, int flags) {
  constexpr size_t kMostAddresses = 16;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* answer = nullptr;
  const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &answer);
  if (error != 0) return HostLookups::FailureOf(host, error);
  const std::unique_ptr<addrinfo, FreeAddresses> all(answer);
  std::vector<std::pair<int, std::string>> found;
  for (const addrinfo* info = answer; info != nullptr; info = info->ai_next) {
    char numeric[NI_MAXHOST];
    const int named = ::getnameinfo(info->ai_addr, info->ai_addrlen, numeric, sizeof numeric,
                                    nullptr, 0, NI_NUMERICHOST);
    if (named != 0)
      return absl::InternalError(std::string("getnameinfo: ") + ::gai_strerror(named));
    std::pair<int, std::string> address(info->ai_family, numeric);
    const bool seen = std::find(found.begin(), found.end(), address) != found.end();
    if (!seen && found.size() < kMostAddresses) found.push_back(std::move(address));
  }
  if (found.empty()) return absl::UnavailableError("resolve " + host + ": it has no address");
  return TakingTurns(found);
}

}  // namespace

HostLookups::HostLookups(Resolver resolver, const Clock* clock)
    : state_(std::make_shared<State>(
          resolver ? std::move(resolver) : [](const std::string& host) { return LookUp(host, 0); },
          clock)) {}

HostLookups& HostLookups::OfThisProcess() {
  static auto* const lookups = new HostLookups;
  return *lookups;
}

std::optional<absl::StatusOr<HostLookups::Addresses>> HostLookups::Lookup::Result() {
  MutexLock lock(&state_->mutex);
  return result_;
}

absl::StatusOr<HostLookups::Addresses> HostLookups::Lookup::Await(TimePoint deadline) {
  while (true) {
    if (auto result = Result()) return *std::move(result);
    const Duration left = deadline - Clock::System().Now();
    if (left <= Duration(0)) return NoAnswer(host_);
    pollfd polled{fd(), POLLIN, 0};
    Poll({&polled, 1}, std::min<Duration>(left, std::chrono::seconds(10)));
  }
}

absl::Status HostLookups::NoAnswer(const std::string& host) {
  // Like EAI_AGAIN below: it may be this name alone.
  return absl::DeadlineExceededError("resolve " + host + ": the name server does not answer");
}

absl::Status HostLookups::FailureOf(const std::string& host, int error) {
  absl::Status failure = absl::UnavailableError("resolve " + host + ": " + ::gai_strerror(error));
  if (error == EAI_NONAME || error == EAI_NODATA || error == EAI_ADDRFAMILY) {
    failure.SetPayload(kNobodyKnows, {});
    return failure;
  }
  // A server that cannot say now (EAI_AGAIN) may know other names: one that serves containers says
  // so of those that have gone. These would have failed for any name.
  const bool own = error == EAI_MEMORY || error == EAI_SYSTEM;
  return own ? OwnShortage(std::move(failure)) : failure;
}

bool HostLookups::NobodyKnows(const absl::Status& failure) {
  return failure.GetPayload(kNobodyKnows).has_value();
}

std::shared_ptr<HostLookups::Lookup> HostLookups::Begin(const std::string& host, Duration max_age) {
  auto lookup = std::make_shared<Lookup>();
  lookup->host_ = host;
  lookup->state_ = state_;
  const absl::StatusOr<Addresses> numeric = LookUp(host, AI_NUMERICHOST);
  State& state = *state_;
  MutexLock lock(&state.mutex);
  if (numeric.ok()) {
    lookup->result_ = numeric;
    return lookup;
  }
  if (!lookup->done_.valid()) {
    lookup->result_ = ErrnoStatus(EMFILE, "resolve " + host);
    return lookup;
  }
  if (!state.hosts.contains(host) && !state.MakeRoom()) {
    lookup->result_ = OwnShortage(
        absl::ResourceExhaustedError("resolve " + host + ": too many names are being looked up"));
    return lookup;
  }
  State::Host& known = state.hosts[host];
  const Duration age = state.clock->Now() - known.known_at;
  const bool waits = !known.known || age > max_age;
  if (!waits) {
    lookup->result_ = *known.known;
    if (age < kFresh) return lookup;
  } else {
    std::erase_if(known.waiting, [](const auto& each) { return each.expired(); });
    known.waiting.push_back(lookup);
  }
  if (!state.Enqueue(host, waits) || state.threads == kMaxThreads) return lookup;
  if (!waits && state.refreshing == kMaxRefreshing) return lookup;  // one of these goes on with it
  // In a process that uses the library, its own threads take the signals.
  const BlockedSignals for_the_thread;
  absl::StatusOr<Thread> thread = Thread::Start([shared = state_] { Work(shared); });
  if (thread.ok()) {
    ++state.threads;
    thread->detach();
  } else if (state.threads == 0) {
    (waits ? state.queue : state.refreshes).pop_back();
    (void)state.Take(host, thread.status());
  }
  return lookup;
}

void HostLookups::Work(const std::shared_ptr<State>& shared) {
  State& state = *shared;
  while (true) {
    std::optional<std::string> host;
    {
      MutexLock lock(&state.mutex);
      host = state.NextInQueue();
      if (!host) {
        --state.threads;
        return;
      }
    }
    const absl::StatusOr<Addresses> result = Guarded([&] { return state.resolver(*host); });
    std::vector<std::shared_ptr<Lookup>> waiting;
    {
      MutexLock lock(&state.mutex);
      waiting = state.Take(*host, result);
    }
    for (const auto& lookup : waiting) lookup->done_.Signal();
  }
}

}  // namespace ecpipe
