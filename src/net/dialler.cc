// SPDX-License-Identifier: Apache-2.0
#include "net/dialler.h"

#include <netdb.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <utility>

#include "base/mutex.h"
#include "base/process/blocked_signals.h"
#include "base/status.h"
#include "base/thread.h"

namespace ecpipe {

// ---- Names --------------------------------------------------------------------------------------

struct HostLookups::State {
  struct Host {
    std::optional<Addresses> known;
    TimePoint known_at;
    bool under_way = false;
    std::vector<std::shared_ptr<Lookup>> waiting;
  };

  explicit State(Resolver the_resolver) : resolver(std::move(the_resolver)) {}

  // Takes note of a result, and returns those who wait for it.
  std::vector<std::shared_ptr<Lookup>> Take(const std::string& name,
                                            const absl::StatusOr<Addresses>& result)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    Host& host = hosts[name];
    host.under_way = false;
    if (result.ok()) host.known = *result;
    // Also when it failed: whoever knows an old address asks again only in a while.
    host.known_at = Clock::System().Now();
    std::vector<std::shared_ptr<Lookup>> waiting = std::exchange(host.waiting, {});
    for (const auto& lookup : waiting) lookup->result_ = result;
    if (!host.known) hosts.erase(name);
    return waiting;
  }
  void MakeRoom() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (hosts.size() < kMaxHosts) return;
    auto oldest = hosts.end();
    for (auto it = hosts.begin(); it != hosts.end(); ++it) {
      const bool older = oldest == hosts.end() || it->second.known_at < oldest->second.known_at;
      if (!it->second.under_way && older) oldest = it;
    }
    if (oldest != hosts.end()) hosts.erase(oldest);
  }

  const Resolver resolver;
  Mutex mutex;
  std::map<std::string, Host> hosts ABSL_GUARDED_BY(mutex);
  std::deque<std::string> queue ABSL_GUARDED_BY(mutex);  // names that no thread has taken yet
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
  if (error != 0) {
    return absl::UnavailableError("resolve " + host + ": " + ::gai_strerror(error));
  }
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
  return TakingTurns(found);
}

}  // namespace

HostLookups::HostLookups(Resolver resolver)
    : state_(std::make_shared<State>(resolver ? std::move(resolver) : [](const std::string& host) {
        return LookUp(host, AI_ADDRCONFIG);
      })) {}

HostLookups& HostLookups::OfThisProcess() {
  static auto* const lookups = new HostLookups;
  return *lookups;
}

std::optional<absl::StatusOr<HostLookups::Addresses>> HostLookups::Lookup::Result() {
  MutexLock lock(&state_->mutex);
  return result_;
}

std::shared_ptr<HostLookups::Lookup> HostLookups::Begin(const std::string& host) {
  auto lookup = std::make_shared<Lookup>();
  lookup->state_ = state_;
  const absl::StatusOr<Addresses> numeric = LookUp(host, AI_NUMERICHOST);
  State& state = *state_;
  MutexLock lock(&state.mutex);
  if (numeric.ok()) {
    lookup->result_ = numeric;
    return lookup;
  }
  if (!state.hosts.contains(host)) state.MakeRoom();
  State::Host& known = state.hosts[host];
  if (known.known) {
    lookup->result_ = *known.known;
    if (Clock::System().Now() - known.known_at < kFresh) return lookup;
  } else {
    known.waiting.push_back(lookup);
  }
  if (std::exchange(known.under_way, true)) return lookup;
  state.queue.push_back(host);
  if (state.threads == kMaxThreads) return lookup;
  // In a process that uses the library, its own threads take the signals.
  const BlockedSignals for_the_thread;
  absl::StatusOr<Thread> thread = Thread::Start([shared = state_] { Work(shared); });
  if (thread.ok()) {
    ++state.threads;
    thread->detach();
  } else if (state.threads == 0) {
    state.queue.pop_back();
    (void)state.Take(host, thread.status());
  }
  return lookup;
}

void HostLookups::Work(const std::shared_ptr<State>& shared) {
  State& state = *shared;
  while (true) {
    std::string host;
    {
      MutexLock lock(&state.mutex);
      if (state.queue.empty()) {
        --state.threads;
        return;
      }
      host = std::move(state.queue.front());
      state.queue.pop_front();
    }
    const absl::StatusOr<Addresses> result = state.resolver(host);
    std::vector<std::shared_ptr<Lookup>> waiting;
    {
      MutexLock lock(&state.mutex);
      waiting = state.Take(host, result);
    }
    for (const auto& lookup : waiting) lookup->done_.Signal();
  }
}

// ---- Connections --------------------------------------------------------------------------------

absl::StatusOr<Dialler> Dialler::Begin(const HostPort& address, HostLookups* lookups) {
  Dialler dialler(address);
  dialler.lookup_ = lookups->Begin(address.host);
  dialler.lookup_until_ = Clock::System().Now() + kLookupPatience;
  const auto known = dialler.lookup_->Result();
  const bool one = known && known->ok() && (*known)->size() == 1;
  if (!one) {
    dialler.epoll_ = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
    dialler.timer_ = UniqueFd(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
    epoll_event on_timer{.events = EPOLLIN, .data = {}};
    epoll_event on_lookup{.events = EPOLLIN, .data = {}};
    const int epoll = dialler.epoll_.get();
    if (::epoll_ctl(epoll, EPOLL_CTL_ADD, dialler.timer_.get(), &on_timer) != 0 ||
        ::epoll_ctl(epoll, EPOLL_CTL_ADD, dialler.lookup_->fd(), &on_lookup) != 0) {
      return ErrnoStatus(errno, "connect to " + FormatHostPort(address));
    }
    if (!known) ECPIPE_RETURN_IF_ERROR(dialler.SetTimer(kLookupPatience));
  }
  if (known) ECPIPE_RETURN_IF_ERROR(dialler.TakeLookup());
  return dialler;
}

absl::Status Dialler::TakeLookup() {
  auto result = lookup_->Result();
  if (!result) {
    if (Clock::System().Now() < lookup_until_) return absl::OkStatus();
    return absl::DeadlineExceededError("resolve " + address_.host +
                                       ": the name server does not answer");
  }
  if (epoll_.valid()) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, lookup_->fd(), nullptr);
  lookup_ = nullptr;
  ECPIPE_RETURN_IF_ERROR(result->status());
  left_.assign((*result)->begin(), (*result)->end());
  failure_ = absl::UnavailableError("resolve " + address_.host + ": it has no address");
  return StartNext();
}

absl::Status Dialler::StartNext() {
  while (!left_.empty()) {
    const HostPort next{std::move(left_.front()), address_.port};
    left_.pop_front();
    absl::StatusOr<UniqueFd> fd = StartConnect(next);
    if (!fd.ok()) {
      failure_ = fd.status();
      continue;
    }
    if (epoll_.valid()) {
      epoll_event on_socket{.events = EPOLLOUT, .data = {}};
      if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd->get(), &on_socket) != 0) {
        return ErrnoStatus(errno, "connect to " + FormatHostPort(next));
      }
    }
    connecting_.push_back(*std::move(fd));
    failure_ = absl::OkStatus();
    return epoll_.valid() ? SetTimer(left_.empty() ? Duration(0) : kTurn) : absl::OkStatus();
  }
  return connecting_.empty() ? failure_ : absl::OkStatus();
}

absl::Status Dialler::SetTimer(Duration from_now) {
  const auto nanos = std::chrono::duration_cast<std::chrono::nanoseconds>(from_now).count();
  constexpr int64_t kSecond = 1'000'000'000;
  const itimerspec at{.it_interval = {}, .it_value = {nanos / kSecond, nanos % kSecond}};
  if (::timerfd_settime(timer_.get(), 0, &at, nullptr) == 0) return absl::OkStatus();
  return ErrnoStatus(errno, "set a timer");
}

absl::StatusOr<UniqueFd> Dialler::Step() {
  if (lookup_ != nullptr) ECPIPE_RETURN_IF_ERROR(TakeLookup());
  if (lookup_ != nullptr) return UniqueFd();
  bool next = false;
  for (auto fd = connecting_.begin(); fd != connecting_.end();) {
    pollfd polled{fd->get(), POLLOUT, 0};
    if (::poll(&polled, 1, 0) == 0) {
      ++fd;
      continue;
    }
    absl::Status connected = ConnectResult(fd->get(), FormatHostPort(address_));
    if (connected.ok()) {
      UniqueFd chosen = std::move(*fd);
      connecting_.clear();
      return chosen;
    }
    failure_ = std::move(connected);
    fd = connecting_.erase(fd);
    next = true;
  }
  uint64_t expired = 0;
  if (timer_.valid() && ::read(timer_.get(), &expired, sizeof expired) > 0) next = true;
  if (next) ECPIPE_RETURN_IF_ERROR(StartNext());
  return UniqueFd();
}

pollfd Dialler::poll_fd() const {
  if (epoll_.valid()) return {epoll_.get(), POLLIN, 0};
  return {connecting_.empty() ? -1 : connecting_.front().get(), POLLOUT, 0};
}

}  // namespace ecpipe
