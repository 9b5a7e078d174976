// SPDX-License-Identifier: Apache-2.0
#include "coordinator/edge/port_check.h"

#include <arpa/inet.h>
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "base/mutex.h"
#include "base/status.h"
#include "base/thread.h"
#include "net/tcp_socket.h"

namespace ecpipe {
namespace {

// Names that one check looks up at the same time. In a cluster with a dead name server each look-up
// takes the resolver's own timeouts, some ten seconds.
constexpr size_t kLookups = 8;
// Of all checks: look-ups that hang must not pile up.
constexpr int kMostLookups = 64;
std::atomic<int> lookups_under_way{0};

bool IsNumeric(const std::string& host) {
  in6_addr parsed{};
  return ::inet_pton(AF_INET, host.c_str(), &parsed) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), &parsed) == 1;
}

// The look-ups of one check. Its threads share it with the caller, which does not wait for them.
class Lookups {
 public:
  Lookups(const std::set<std::string>& hosts, HostResolver resolve)
      : resolve_(std::move(resolve)), waiting_(hosts.begin(), hosts.end()), left_(hosts.size()) {}

  static std::map<std::string, absl::StatusOr<std::string>> Run(const std::set<std::string>& hosts,
                                                                const HostResolver& resolve,
                                                                TimePoint end) {
    const auto lookups = std::make_shared<Lookups>(hosts, resolve);
    for (size_t i = 0; i < std::min(kLookups, hosts.size()); ++i) {
      if (++lookups_under_way <= kMostLookups) {
        Thread([lookups] {
          lookups->Work();
          --lookups_under_way;
        }).detach();
      } else {
        --lookups_under_way;
      }
    }
    return lookups->Await(end);
  }

 private:
  void Work() {
    while (true) {
      std::string host;
      {
        MutexLock lock(&mutex_);
        if (waiting_.empty()) return;
        host = std::move(waiting_.back());
        waiting_.pop_back();
      }
      absl::StatusOr<std::string> numeric = resolve_(host);
      MutexLock lock(&mutex_);
      found_.emplace(host, std::move(numeric));
      if (--left_ == 0) all_.NotifyAll();
    }
  }

  std::map<std::string, absl::StatusOr<std::string>> Await(TimePoint end) {
    MutexLock lock(&mutex_);
    while (left_ > 0 && all_.WaitUntil(lock, end)) {
    }
    waiting_.clear();
    return found_;
  }

  const HostResolver resolve_;
  Mutex mutex_;
  CondVar all_;
  std::vector<std::string> waiting_ ABSL_GUARDED_BY(mutex_);
  size_t left_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, absl::StatusOr<std::string>> found_ ABSL_GUARDED_BY(mutex_);
};

// The same addresses with numeric hosts.
std::vector<absl::StatusOr<HostPort>> Resolved(const std::vector<std::string>& addresses,
                                               Duration timeout, const HostResolver& resolve) {
  std::vector<absl::StatusOr<HostPort>> resolved;
  std::set<std::string> names;
  for (const std::string& address : addresses) {
    resolved.push_back(ParseHostPort(address));
    if (resolved.back().ok() && !IsNumeric(resolved.back()->host)) {
      names.insert(resolved.back()->host);
    }
  }
  const auto found = Lookups::Run(names, resolve, Clock::System().Now() + timeout);
  for (absl::StatusOr<HostPort>& address : resolved) {
    if (!address.ok() || !names.contains(address->host)) continue;
    const auto numeric = found.find(address->host);
    if (numeric == found.end()) {
      address = absl::DeadlineExceededError("resolve " + address->host +
                                            ": the name server does not answer");
    } else if (!numeric->second.ok()) {
      address = numeric->second.status();
    } else {
      address->host = *numeric->second;
    }
  }
  return resolved;
}

}  // namespace

std::vector<absl::Status> CheckPorts(const std::vector<std::string>& addresses, Duration timeout,
                                     const HostResolver& resolve) {
  std::vector<absl::Status> answers;
  std::vector<UniqueFd> dialled;
  std::vector<pollfd> polled;
  const HostResolver with = resolve == nullptr ? NumericHost : resolve;
  for (const absl::StatusOr<HostPort>& address : Resolved(addresses, timeout, with)) {
    absl::StatusOr<UniqueFd> fd = address.ok() ? StartConnect(*address) : address.status();
    answers.push_back(
        fd.ok() ? absl::DeadlineExceededError("no answer from " + FormatHostPort(*address))
                : fd.status());
    dialled.push_back(fd.ok() ? *std::move(fd) : UniqueFd());
    polled.push_back({dialled.back().get(), POLLOUT, 0});
  }
  const TimePoint end = Clock::System().Now() + timeout;
  while (std::any_of(polled.begin(), polled.end(), [](const pollfd& p) { return p.fd >= 0; })) {
    const auto rest = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::System().Now());
    if (rest.count() <= 0) break;
    ::poll(polled.data(), polled.size(), static_cast<int>(rest.count()));
    for (size_t i = 0; i < polled.size(); ++i) {
      if (polled[i].fd < 0 || polled[i].revents == 0) continue;
      answers[i] = ConnectResult(polled[i].fd, addresses[i]);
      polled[i].fd = -1;
    }
  }
  return answers;
}

}  // namespace ecpipe
