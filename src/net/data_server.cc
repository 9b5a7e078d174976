// SPDX-License-Identifier: Apache-2.0
#include "net/data_server.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/process/log.h"
#include "base/status.h"
#include "net/tcp_socket.h"
#include "net/unmatched_connections.h"

namespace ecpipe {

void ConnectionSlot::Put(StreamSocket socket) {
  {
    MutexLock lock(&mutex_);
    socket_ = std::move(socket);
  }
  owner_->Signal();
}

StreamSocket ConnectionSlot::Take() {
  MutexLock lock(&mutex_);
  return std::move(socket_);
}

// The server's thread. All of its state is its own.
class DataServer::Loop {
 public:
  explicit Loop(DataServer* server) : server_(*server), unmatched_(server->options_.max_unmatched) {
    Control(EPOLL_CTL_ADD, server_.wakeup_.fd(), EPOLLIN, &server_.wakeup_);
    Control(EPOLL_CTL_ADD, server_.listener_.get(), EPOLLIN, &accept_pause_);
  }

  void Run() {
    while (!server_.stopping()) {
      std::array<epoll_event, 64> events;
      const int count =
          ::epoll_wait(server_.epoll_.get(), events.data(), events.size(), TimeoutMillis());
      if (accept_pause_) PauseAccepting(false);
      // Each of these connections closes at its own event only; the others that are closed are
      // closed after all events.
      for (int i = 0; i < count; ++i) {
        void* const what = events[static_cast<size_t>(i)].data.ptr;
        if (what != &server_.wakeup_ && what != &accept_pause_) {
          Advance(static_cast<Unmatched*>(what));
        }
      }
      server_.wakeup_.Drain();
      MatchWaiting();
      AcceptSome();
      CloseListener(Clock::System().Now());
      DropLate(Clock::System().Now());
    }
  }

 private:
  void Control(int operation, int fd, uint32_t events, void* what) {
    epoll_event event{};
    event.events = events;
    event.data.ptr = what;
    // It fails only without memory; then the connection ends at its deadline.
    ::epoll_ctl(server_.epoll_.get(), operation, fd, &event);
  }

  // When the port is to be given up and everybody has come. What is in the queue has been accepted.
  void CloseListener(TimePoint now) {
    const std::optional<TimePoint> last = server_.LastAccept();
    if (!server_.listener_.valid() || !last || now < *last) return;
    Control(EPOLL_CTL_DEL, server_.listener_.get(), 0, nullptr);
    server_.listener_.reset();
    accept_pause_ = false;
  }

  // With no descriptors left accept() would fail at once for ever: rest a moment instead.
  void PauseAccepting(bool pause) {
    accept_pause_ = pause;
    Control(EPOLL_CTL_MOD, server_.listener_.get(), pause ? 0u : uint32_t{EPOLLIN}, &accept_pause_);
  }

  int TimeoutMillis() {
    constexpr Duration kPause = std::chrono::milliseconds(100);
    constexpr Duration kRefusalsInterval = std::chrono::seconds(1);
    const bool closing = server_.listener_.valid() && server_.LastAccept().has_value();
    if (unmatched_.empty() && !refusals_left_ && !accept_pause_ && !closing) return -1;
    Duration rest = accept_pause_ || closing ? kPause : kRefusalsInterval;
    if (!unmatched_.empty()) {
      rest = std::min(rest, unmatched_.Oldest()->deadline - Clock::System().Now());
    }
    const auto millis = std::chrono::ceil<std::chrono::milliseconds>(std::max(rest, Duration(0)));
    return static_cast<int>(millis.count());
  }

  // Those that have been accepted must have their turn as well.
  void AcceptSome() {
    constexpr int kAcceptsAtOnce = 64;
    for (int i = 0; i < kAcceptsAtOnce && server_.listener_.valid(); ++i) {
      sockaddr_storage from{};
      socklen_t length = sizeof from;
      UniqueFd fd(::accept4(server_.listener_.get(), reinterpret_cast<sockaddr*>(&from), &length,
                            SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!fd.valid()) {
        const bool exhausted =
            errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS;
        if (exhausted) PauseAccepting(true);
        return;
      }
      if (Unmatched* surplus = unmatched_.Surplus(); surplus != nullptr) Close(surplus);
      Take(StreamSocket(std::move(fd)), OriginText(from));
    }
  }

  void Take(StreamSocket socket, const std::string& origin) {
    if (server_.options_.tls != nullptr) {
      // Those who receive blocks.
      socket.UseTls(server_.options_.tls->Accept(
          socket.fd(), {Role::kHelper, Role::kRequestor, Role::kOperator}));
    }
    const TimePoint deadline = Clock::System().Now() + server_.options_.handshake_timeout;
    Unmatched* const added = unmatched_.Add(std::move(socket), origin, deadline);
    Control(EPOLL_CTL_ADD, added->socket.fd(), EPOLLIN, added);
    Advance(added);
  }

  // Something has come, or the peer has gone.
  void Advance(Unmatched* connection) {
    // A complete hello waits for its edge: only a stranger says more, or a receiver that leaves.
    if (connection->hello) return Close(connection);
    if (!connection->secured && !Secure(connection)) return;
    if (!ReadHello(connection)) return Close(connection);
    if (!connection->hello) return;
    Control(EPOLL_CTL_MOD, connection->socket.fd(), EPOLLIN | EPOLLRDHUP, connection);
    waiting_.emplace(connection->hello->edge, connection);
    Match(connection);
  }

  // Goes on with the handshake. False: it takes longer, or the connection has been closed.
  bool Secure(Unmatched* connection) {
    const absl::StatusOr<bool> secured = connection->socket.Handshake();
    if (!secured.ok()) {
      NoteRefused(*connection, secured.status());
      Close(connection);
      return false;
    }
    connection->secured = *secured;
    const bool writes = !*secured && connection->socket.handshake_events() == POLLOUT;
    Control(EPOLL_CTL_MOD, connection->socket.fd(), writes ? EPOLLOUT : EPOLLIN, connection);
    return *secured;
  }

  // False: it is none, or the peer has gone.
  static bool ReadHello(Unmatched* connection) {
    const iovec rest{connection->bytes.data() + connection->received,
                     kHelloBytes - connection->received};
    const ssize_t got = connection->socket.Read(&rest, 1);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    if (got == 0) return false;
    connection->received += static_cast<size_t>(got);
    if (connection->received < kHelloBytes) return true;
    const absl::StatusOr<Hello> hello = DecodeHello(connection->bytes);
    if (!hello.ok()) return false;
    connection->hello = *hello;
    return true;
  }

  // Those of the edges that are expected, or refused, by now.
  void MatchWaiting() {
    for (const EdgeId& edge : server_.TakeChanged()) {
      std::vector<Unmatched*> candidates;
      const auto [begin, end] = waiting_.equal_range(edge);
      for (auto it = begin; it != end; ++it) candidates.push_back(it->second);
      for (Unmatched* connection : candidates) Match(connection);
    }
  }

  // Hands the connection over, or tells its peer why nobody will come; else it goes on waiting.
  void Match(Unmatched* connection) {
    if (connection->socket.PeerEndedOrSpoke()) return Close(connection);
    // The new owner's thread polls it from then on.
    const int fd = connection->socket.fd();
    Control(EPOLL_CTL_DEL, fd, 0, nullptr);
    if (server_.HandOver(*connection->hello, connection->socket)) return Close(connection);
    Control(EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLRDHUP, connection);
    const std::optional<std::string> farewell = server_.Farewell(*connection->hello);
    if (!farewell) return;
    // The socket is new: its buffer has room for all of it.
    const iovec whole{const_cast<char*>(farewell->data()), farewell->size()};
    connection->socket.Send(&whole, 1, 0);
    Close(connection);
  }

  void DropLate(TimePoint now) {
    for (Unmatched* oldest = unmatched_.Oldest(); oldest != nullptr && oldest->deadline <= now;
         oldest = unmatched_.Oldest()) {
      Close(oldest);
    }
    refusals_left_ = server_.DropOldRefusals(now);
  }

  // Also when its socket has been handed over.
  void Close(Unmatched* connection) {
    if (connection->hello) {
      const auto [begin, end] = waiting_.equal_range(connection->hello->edge);
      const auto found =
          std::find_if(begin, end, [&](const auto& entry) { return entry.second == connection; });
      if (found != end) waiting_.erase(found);
    }
    unmatched_.Remove(connection);
  }

  // A line a second at most: a flood must not fill the log.
  void NoteRefused(const Unmatched& connection, const absl::Status& reason) {
    constexpr auto kInterval = std::chrono::seconds(1);
    ++refused_;
    const TimePoint now = Clock::System().Now();
    if (now < next_note_) return;
    next_note_ = now + kInterval;
    Log(LogLevel::kWarning, "data.refused",
        {{"from", connection.origin},
         {"status", StatusText(reason)},
         {"count", std::to_string(std::exchange(refused_, 0))}});
  }

  DataServer& server_;
  UnmatchedConnections unmatched_;
  std::multimap<EdgeId, Unmatched*> waiting_;  // those with a whole hello
  bool accept_pause_ = false;
  bool refusals_left_ = false;
  uint64_t refused_ = 0;  // since the last note
  TimePoint next_note_{};
};

absl::StatusOr<std::unique_ptr<DataServer>> DataServer::Start(const std::string& address,
                                                              const Options& options) {
  ECPIPE_ASSIGN_OR_RETURN(const HostPort wanted, ParseHostPort(address));
  ECPIPE_ASSIGN_OR_RETURN(UniqueFd listener, Listen(wanted));
  ECPIPE_ASSIGN_OR_RETURN(const HostPort bound, BoundAddress(listener.get()));
  Wakeup wakeup;
  if (!wakeup.valid()) return ErrnoStatus(errno, "make an eventfd for data port " + address);
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return ErrnoStatus(errno, "make an epoll set for data port " + address);
  return std::unique_ptr<DataServer>(new DataServer(
      std::move(listener), std::move(epoll), std::move(wakeup), FormatHostPort(bound), options));
}

DataServer::DataServer(UniqueFd listener, UniqueFd epoll, Wakeup wakeup, std::string address,
                       const Options& options)
    : options_(options),
      listener_(std::move(listener)),
      epoll_(std::move(epoll)),
      address_(std::move(address)),
      wakeup_(std::move(wakeup)),
      thread_([this] { Loop(this).Run(); }) {}

DataServer::~DataServer() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  wakeup_.Signal();
  thread_.join();
}

absl::Status DataServer::Expect(const Hello& hello, std::shared_ptr<ConnectionSlot> slot,
                                const std::string& certificate) {
  {
    MutexLock lock(&mutex_);
    const Expected expected{hello.token, certificate, std::move(slot)};
    if (!expected_.try_emplace(hello.edge, expected).second) {
      return absl::AlreadyExistsError("the data port already expects a connection for this stream");
    }
    refusals_.remove_if([&](const Refusal& refusal) { return refusal.hello.edge == hello.edge; });
    changed_.push_back(hello.edge);
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
    changed_.push_back(hello.edge);
  }
  wakeup_.Signal();  // its receiver may be waiting
  return true;
}

void DataServer::Forget(const EdgeId& edge) {
  MutexLock lock(&mutex_);
  expected_.erase(edge);
}

bool DataServer::HandOver(const Hello& hello, StreamSocket& socket) {
  MutexLock lock(&mutex_);
  const auto found = expected_.find(hello.edge);
  if (found == expected_.end() || !SameToken(found->second.token, hello.token)) return false;
  const std::string& certificate = found->second.certificate;
  // A token that another node has got hold of. Who closes it is the deadline, as for a wrong token.
  if (socket.has_tls() && !certificate.empty() && socket.peer_node() != certificate) return false;
  found->second.slot->Put(std::move(socket));  // still locked: who is not expected has come
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

std::vector<EdgeId> DataServer::TakeChanged() {
  MutexLock lock(&mutex_);
  return std::exchange(changed_, {});
}

void DataServer::StopListening() {
  {
    MutexLock lock(&mutex_);
    last_accept_ = Clock::System().Now() + kLastConnections;
  }
  wakeup_.Signal();
}

std::optional<TimePoint> DataServer::LastAccept() {
  MutexLock lock(&mutex_);
  return last_accept_ && expected_.empty() ? TimePoint() : last_accept_;
}

bool DataServer::stopping() {
  MutexLock lock(&mutex_);
  return stopping_;
}

}  // namespace ecpipe
