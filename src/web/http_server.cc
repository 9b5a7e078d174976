// SPDX-License-Identifier: Apache-2.0
#include "web/http_server.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <list>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/guarded.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/thread.h"
#include "base/unique_fd.h"
#include "base/wakeup.h"
#include "net/origin_shares.h"
#include "net/stream_socket.h"
#include "net/tcp_socket.h"

namespace ecpipe {
namespace {

// Each has a thread, which nearly always waits for its client.
constexpr size_t kMaxConnections = 32;
// Pages that are made at once.
constexpr size_t kMaxMaking = 4;
// From the accepting to the end of the request, TLS included: a browser needs milliseconds.
constexpr Duration kRequestTime = std::chrono::seconds(2);
// For all of an answer: as long as Prometheus waits.
constexpr Duration kAnswerTime = std::chrono::seconds(10);
constexpr size_t kMaxRequestBytes = 16 << 10;  // browsers add cookies of others on the host
constexpr char kEmptyLine[] = "\r\n\r\n";
// Without descriptors or memory accept() fails at once, for as long as that lasts.
constexpr int kAcceptPauseMillis = 100;

// Whether one of the events came in time.
bool Await(int fd, short events, TimePoint deadline) {
  pollfd polled{fd, events, 0};
  while (true) {
    const Duration left = deadline - Clock::System().Now();
    if (left <= Duration(0)) return false;
    const auto millis = std::chrono::ceil<std::chrono::milliseconds>(left);
    const int ready = ::poll(&polled, 1, static_cast<int>(millis.count()));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

bool Secure(StreamSocket& socket, TimePoint deadline) {
  while (true) {
    const absl::StatusOr<bool> secured = socket.Handshake();
    if (!secured.ok() || *secured) return secured.ok();
    if (!Await(socket.fd(), socket.handshake_events(), deadline)) return false;
  }
}

// All that comes before a body, which no request needs; nullopt: it did not come in time. Cut off
// where it is too long.
std::optional<std::string> ReadHead(StreamSocket& socket, TimePoint deadline) {
  std::string head;
  std::array<char, 4096> bytes;
  size_t searched = 0;
  while (head.size() < kMaxRequestBytes && head.find(kEmptyLine, searched) == std::string::npos) {
    searched = std::max<size_t>(head.size(), 3) - 3;
    const iovec part{bytes.data(), bytes.size()};
    const ssize_t got = socket.Read(&part, 1);
    if (got > 0) {
      head.append(bytes.data(), static_cast<size_t>(got));
    } else if (got == 0 || !WouldBlock() || !Await(socket.fd(), POLLIN, deadline)) {
      return std::nullopt;
    }
  }
  return head;
}

void SendAll(StreamSocket& socket, const std::string& text, TimePoint deadline) {
  size_t sent = 0;
  while (sent < text.size()) {
    const iovec rest{const_cast<char*>(text.data()) + sent, text.size() - sent};
    const ssize_t count = socket.Send(&rest, 1, 0);
    if (count > 0) {
      sent += static_cast<size_t>(count);
    } else if (!WouldBlock() || !Await(socket.fd(), POLLOUT, deadline)) {
      return;
    }
  }
  socket.SendCloseNotify();
}

struct Request {
  std::string method;
  std::string path;  // without the query
};

// Nullopt: this is none.
std::optional<Request> ParseHead(const std::string& head) {
  const std::string line = head.substr(0, head.find("\r\n"));
  const size_t method = line.find(' ');
  const size_t target = line.rfind(' ');
  if (method == std::string::npos || method == target) return std::nullopt;
  if (!line.substr(target + 1).starts_with("HTTP/1.")) return std::nullopt;
  Request request{line.substr(0, method), line.substr(method + 1, target - method - 1)};
  request.path.resize(std::min(request.path.size(), request.path.find('?')));
  return request;
}

std::string AnswerText(const HttpReply& reply, bool with_body) {
  constexpr std::pair<int, const char*> kReasons[] = {{200, "OK"},
                                                      {400, "Bad Request"},
                                                      {404, "Not Found"},
                                                      {405, "Method Not Allowed"},
                                                      {431, "Request Header Fields Too Large"},
                                                      {500, "Internal Server Error"},
                                                      {503, "Service Unavailable"}};
  std::string text = "HTTP/1.1 " + std::to_string(reply.status) + " ";
  for (const auto& [status, reason] : kReasons) text += status == reply.status ? reason : "";
  text += "\r\nContent-Type: " + reply.type +
          "\r\nContent-Length: " + std::to_string(reply.body.size()) +
          "\r\nContent-Security-Policy: " + reply.content_policy +
          "\r\nConnection: close"
          "\r\nCache-Control: no-store"
          "\r\nX-Content-Type-Options: nosniff"
          "\r\nReferrer-Policy: no-referrer\r\n\r\n";
  return with_body ? text + reply.body : text;
}

}  // namespace

struct HttpServer::State {
  struct Connection {
    uint64_t id;
    StreamSocket socket;  // its thread's, but for shutting it down
    Thread thread = {};
    bool gone = false;  // it has given way to others, or the server ends
    bool done = false;
  };

  std::shared_ptr<TlsContext> tls;
  Pages pages;
  UniqueFd listener;
  Wakeup wakeup;
  std::string address;
  Mutex mutex;
  CondVar changed;
  bool stopping ABSL_GUARDED_BY(mutex) = false;
  size_t making ABSL_GUARDED_BY(mutex) = 0;
  std::list<Connection> connections ABSL_GUARDED_BY(mutex);  // a list keeps their addresses
  OriginShares shares ABSL_GUARDED_BY(mutex);                // of those that are not gone
  uint64_t next_id = 1;                                      // the accepting thread's
  Thread thread;

  void Run() {
    bool paused = false;
    while (!Stopping()) {
      pollfd polled[] = {{paused ? -1 : listener.get(), POLLIN, 0}, {wakeup.fd(), POLLIN, 0}};
      ::poll(polled, 2, paused ? kAcceptPauseMillis : -1);
      wakeup.Drain();
      JoinDone();
      paused = !AcceptSome();
    }
    std::list<Connection> left;
    {
      MutexLock lock(&mutex);
      for (Connection& connection : connections) End(&connection);
      left.splice(left.end(), connections);
    }
    changed.NotifyAll();
    for (Connection& connection : left) connection.thread.join();
  }

  bool Stopping() {
    MutexLock lock(&mutex);
    return stopping;
  }

  void Stop() {
    {
      MutexLock lock(&mutex);
      stopping = true;
    }
    wakeup.Signal();
    thread.join();
  }

  // False: the process has no descriptor left.
  bool AcceptSome() {
    constexpr int kAcceptsAtOnce = 64;  // those that are done must be joined as well
    for (int i = 0; i < kAcceptsAtOnce && !Stopping(); ++i) {
      sockaddr_storage from{};
      socklen_t length = sizeof from;
      UniqueFd fd(::accept4(listener.get(), reinterpret_cast<sockaddr*>(&from), &length,
                            SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!fd.valid()) {
        return errno != EMFILE && errno != ENFILE && errno != ENOMEM && errno != ENOBUFS;
      }
      // Without memory for it, it is closed.
      (void)Guarded([&] {
        Open(StreamSocket(std::move(fd)), OriginText(from));
        return absl::OkStatus();
      });
      JoinDone();
    }
    return true;
  }

  void Open(StreamSocket socket, const std::string& origin) {
    MutexLock lock(&mutex);
    if (shares.size() >= kMaxConnections) {
      const uint64_t surplus = *shares.Surplus();
      for (Connection& other : connections) {
        if (other.id == surplus) End(&other);
      }
      changed.NotifyAll();
    }
    Connection& added = connections.emplace_back(next_id++, std::move(socket));
    absl::StatusOr<Thread> started = Thread::Start([this, at = &added] { Serve(at); });
    if (!started.ok()) return connections.pop_back();
    added.thread = *std::move(started);
    shares.Add(added.id, origin);
  }

  // Its thread soon notices.
  void End(Connection* connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    connection->gone = true;
    shares.Remove(connection->id);
    ::shutdown(connection->socket.fd(), SHUT_RDWR);
  }

  void JoinDone() {
    std::list<Connection> done;
    {
      MutexLock lock(&mutex);
      for (auto at = connections.begin(); at != connections.end();) {
        const auto next = std::next(at);
        if (at->done) {
          shares.Remove(at->id);
          done.splice(done.end(), connections, at);
        }
        at = next;
      }
    }
    for (Connection& connection : done) connection.thread.join();
  }

  // A connection's thread.
  void Serve(Connection* connection) {
    (void)Guarded([&] {
      Converse(connection);
      return absl::OkStatus();
    });
    {
      MutexLock lock(&mutex);
      connection->done = true;
    }
    wakeup.Signal();
  }

  void Converse(Connection* connection) {
    StreamSocket& socket = connection->socket;
    const TimePoint deadline = Clock::System().Now() + kRequestTime;
    if (tls != nullptr) socket.UseTls(tls->Accept(socket.fd(), {}));
    if (!Secure(socket, deadline)) return;
    const std::optional<std::string> head = ReadHead(socket, deadline);
    if (!head || !BeginMaking(connection)) return;
    const absl::StatusOr<std::string> text = Guarded([&] { return MakeAnswer(*head); });
    EndMaking();
    const HttpReply none{500, HttpReply().type, "This page cannot be made now.\n"};
    SendAll(socket, text.ok() ? *text : AnswerText(none, true),
            Clock::System().Now() + kAnswerTime);
  }

  // Waits for its turn; false: the connection is gone.
  bool BeginMaking(const Connection* connection) {
    MutexLock lock(&mutex);
    while (making >= kMaxMaking && !connection->gone) changed.Wait(lock);
    if (connection->gone) return false;
    ++making;
    return true;
  }

  void EndMaking() {
    {
      MutexLock lock(&mutex);
      --making;
    }
    changed.NotifyAll();
  }

  absl::StatusOr<std::string> MakeAnswer(const std::string& head) const {
    HttpReply reply{404, HttpReply().type, "There is no such page here.\n"};
    const std::optional<Request> request = ParseHead(head);
    if (head.find(kEmptyLine) == std::string::npos) {
      reply = {431, reply.type, "The request is too long.\n"};
    } else if (!request) {
      reply = {400, reply.type, "This is no request of HTTP/1.\n"};
    } else if (request->method != "GET" && request->method != "HEAD") {
      reply = {405, reply.type, "Pages can only be read.\n"};
    } else if (const auto page = pages.find(request->path); page != pages.end()) {
      reply = page->second();
    }
    return AnswerText(reply, !request || request->method != "HEAD");
  }
};

HttpServer::HttpServer(std::unique_ptr<State> state) : state_(std::move(state)) {}

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const std::string& address,
                                                              std::shared_ptr<TlsContext> tls,
                                                              Pages pages) {
  ECPIPE_ASSIGN_OR_RETURN(const HostPort where, ParseHostPort(address));
  auto state = std::make_unique<State>();
  state->tls = std::move(tls);
  state->pages = std::move(pages);
  absl::StatusOr<UniqueFd> listener = Listen(where);
  if (!listener.ok()) return absl::UnavailableError(std::string(listener.status().message()));
  state->listener = *std::move(listener);
  ECPIPE_ASSIGN_OR_RETURN(const HostPort bound, BoundAddress(state->listener.get()));
  state->address = FormatHostPort({where.host, bound.port});
  if (!state->wakeup.valid()) return ErrnoStatus(errno, "make an eventfd for " + address);
  ECPIPE_ASSIGN_OR_RETURN(state->thread, Thread::Start([state = state.get()] { state->Run(); }));
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(state)));
}

HttpServer::~HttpServer() { state_->Stop(); }

const std::string& HttpServer::address() const { return state_->address; }

}  // namespace ecpipe
