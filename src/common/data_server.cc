// SPDX-License-Identifier: Apache-2.0
#include "common/data_server.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

#include "common/status.h"
#include "common/tcp_socket.h"

namespace ecpipe {

void ConnectionSlot::Put(UniqueFd fd) {
  {
    MutexLock lock(&mutex_);
    fd_ = std::move(fd);
  }
  owner_->Signal();
}

UniqueFd ConnectionSlot::Take() {
  MutexLock lock(&mutex_);
  return std::move(fd_);
}

// A connection on its way to an edge.
struct DataServer::Unmatched {
  UniqueFd fd;
  TimePoint deadline;
  std::array<uint8_t, kHelloBytes> bytes{};
  size_t received = 0;
  std::optional<Hello> hello;  // once all of it has come
};

// The server's thread. All of its state is its own.
class DataServer::Loop {
 public:
  explicit Loop(DataServer* server) : server_(*server) {}

  void Run() {
    while (!server_.stopping()) {
      WaitForEvents();
      server_.wakeup_.Drain();
      AcceptAll();
      const TimePoint now = Clock::System().Now();
      for (auto it = unmatched_.begin(); it != unmatched_.end();) {
        it = Advance(*it) && now < it->deadline ? std::next(it) : unmatched_.erase(it);
      }
      refusals_left_ = server_.DropOldRefusals(now);
    }
  }

 private:
  void WaitForEvents() {
    polled_.clear();
    polled_.push_back({server_.wakeup_.fd(), POLLIN, 0});
    // With no descriptors left accept() would fail at once for ever: rest a moment instead.
    polled_.push_back({accept_pause_ ? -1 : server_.listener_.get(), POLLIN, 0});
    for (const Unmatched& connection : unmatched_) {
      // A complete hello waits for its edge; only a hang-up is of interest then.
      const short events = connection.hello ? POLLRDHUP : POLLIN;
      polled_.push_back({connection.fd.get(), events, 0});
    }
    constexpr int kIdleMillis = 1000;
    constexpr int kPauseMillis = 100;
    const bool idle = unmatched_.empty() && !refusals_left_;
    const int timeout = accept_pause_ ? kPauseMillis : idle ? -1 : kIdleMillis;
    accept_pause_ = false;
    ::poll(polled_.data(), polled_.size(), timeout);
  }

  void AcceptAll() {
    while (true) {
      UniqueFd fd(
          ::accept4(server_.listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!fd.valid()) {
        accept_pause_ = errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS;
        return;
      }
      if (unmatched_.size() >= server_.options_.max_unmatched) unmatched_.pop_front();
      Unmatched connection;
      connection.fd = std::move(fd);
      connection.deadline = Clock::System().Now() + server_.options_.handshake_timeout;
      unmatched_.push_back(std::move(connection));
    }
  }

  // Reads on and tries to match. False: the connection is done with, handed over or not.
  bool Advance(Unmatched& connection) {
    if (!connection.hello && !ReadHello(connection)) return false;
    if (!connection.hello) return true;
    if (PeerGone(connection.fd.get())) return false;
    if (server_.HandOver(*connection.hello, connection.fd)) return false;
    const std::optional<std::string> farewell = server_.Farewell(*connection.hello);
    if (!farewell) return true;
    // The socket is new: its buffer has room for all of it.
    ::send(connection.fd.get(), farewell->data(), farewell->size(), MSG_NOSIGNAL);
    return false;
  }

  static bool ReadHello(Unmatched& connection) {
    const size_t rest = kHelloBytes - connection.received;
    const ssize_t got =
        ::recv(connection.fd.get(), connection.bytes.data() + connection.received, rest, 0);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    if (got == 0) return false;
    connection.received += static_cast<size_t>(got);
    if (connection.received < kHelloBytes) return true;
    const absl::StatusOr<Hello> hello = DecodeHello(connection.bytes);
    if (!hello.ok()) return false;
    connection.hello = *hello;
    return true;
  }

  // A receiver sends nothing after its hello, so anything readable is a hang-up or a stranger.
  static bool PeerGone(int fd) {
    uint8_t byte = 0;
    const ssize_t got = ::recv(fd, &byte, 1, MSG_PEEK);
    return got >= 0 || (errno != EAGAIN && errno != EINTR);
  }

  DataServer& server_;
  std::list<Unmatched> unmatched_;  // oldest first
  std::vector<pollfd> polled_;
  bool accept_pause_ = false;
  bool refusals_left_ = false;
};

absl::StatusOr<std::unique_ptr<DataServer>> DataServer::Start(const std::string& address,
                                                              const Options& options) {
  ECPIPE_ASSIGN_OR_RETURN(const HostPort wanted, ParseHostPort(address));
  ECPIPE_ASSIGN_OR_RETURN(UniqueFd listener, Listen(wanted));
  ECPIPE_ASSIGN_OR_RETURN(const HostPort bound, BoundAddress(listener.get()));
  return std::unique_ptr<DataServer>(
      new DataServer(std::move(listener), FormatHostPort(bound), options));
}

DataServer::DataServer(UniqueFd listener, std::string address, const Options& options)
    : options_(options),
      listener_(std::move(listener)),
      address_(std::move(address)),
      thread_([this] { Loop(this).Run(); }) {}

DataServer::~DataServer() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  wakeup_.Signal();
  thread_.join();
}

absl::Status DataServer::Expect(const Hello& hello, std::shared_ptr<ConnectionSlot> slot) {
  {
    MutexLock lock(&mutex_);
    if (!expected_.try_emplace(hello.edge, Expected{hello.token, std::move(slot)}).second) {
      return absl::AlreadyExistsError("the edge is expected already");
    }
    refusals_.remove_if([&](const Refusal& refusal) { return refusal.hello.edge == hello.edge; });
  }
  wakeup_.Signal();  // its receiver may be waiting
  return absl::OkStatus();
}

bool DataServer::Refuse(const Hello& hello, std::string farewell) {
  {
    MutexLock lock(&mutex_);
    if (expected_.erase(hello.edge) == 0) return false;
    if (refusals_.size() >= options_.max_unmatched) refusals_.pop_front();
    const TimePoint deadline = Clock::System().Now() + options_.handshake_timeout;
    refusals_.push_back({hello, std::move(farewell), deadline});
  }
  wakeup_.Signal();  // its receiver may be waiting
  return true;
}

void DataServer::Forget(const EdgeId& edge) {
  MutexLock lock(&mutex_);
  expected_.erase(edge);
}

bool DataServer::HandOver(const Hello& hello, UniqueFd& fd) {
  MutexLock lock(&mutex_);
  const auto found = expected_.find(hello.edge);
  if (found == expected_.end() || !SameToken(found->second.token, hello.token)) return false;
  found->second.slot->Put(std::move(fd));  // still locked: who is not expected has come
  expected_.erase(found);
  return true;
}

std::optional<std::string> DataServer::Farewell(const Hello& hello) {
  MutexLock lock(&mutex_);
  for (const Refusal& refusal : refusals_) {
    if (refusal.hello.edge == hello.edge && SameToken(refusal.hello.token, hello.token)) {
      return refusal.farewell;
    }
  }
  return std::nullopt;
}

bool DataServer::DropOldRefusals(TimePoint now) {
  MutexLock lock(&mutex_);
  while (!refusals_.empty() && refusals_.front().deadline <= now) refusals_.pop_front();
  return !refusals_.empty();
}

bool DataServer::stopping() {
  MutexLock lock(&mutex_);
  return stopping_;
}

}  // namespace ecpipe
