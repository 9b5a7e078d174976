// SPDX-License-Identifier: Apache-2.0
#include "web/http_server.h"

#include <fcntl.h>
#include <httplib.h>
#include <sys/socket.h>

#include <cerrno>
#include <deque>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/thread.h"
#include "base/unique_fd.h"
#include "net/tcp_socket.h"

namespace ecpipe {
namespace {

constexpr size_t kThreads = 4;
constexpr size_t kMaxWaiting = 16;  // connections that were taken and that no thread serves yet
constexpr int kPatienceSeconds = 2;
// Without descriptors or memory accept() fails at once, for as long as that lasts.
constexpr Duration kAcceptPause = std::chrono::milliseconds(100);

// Nothing in Debian 12's version of the library; in newer ones whether the task was taken.
using Enqueued = decltype(std::declval<httplib::TaskQueue&>().enqueue(std::function<void()>()));

// The library's own pool would queue connections, and so descriptors, without a limit.
class BoundedPool : public httplib::TaskQueue {
 public:
  BoundedPool() {
    for (size_t i = 0; i < kThreads; ++i) threads_.emplace_back([this] { Work(); });
  }

  // Waits for room: further connections wait in the listening socket.
  Enqueued enqueue(std::function<void()> task) override {
    MutexLock lock(&mutex_);
    while (tasks_.size() >= kMaxWaiting) changed_.Wait(lock);
    tasks_.push_back(std::move(task));
    changed_.NotifyAll();
    return Enqueued(true);
  }

  void shutdown() override {
    {
      MutexLock lock(&mutex_);
      stopping_ = true;
    }
    changed_.NotifyAll();
    for (Thread& thread : threads_) thread.join();
  }

 private:
  void Work() {
    while (true) {
      std::function<void()> task;
      {
        MutexLock lock(&mutex_);
        while (tasks_.empty() && !stopping_) changed_.Wait(lock);
        if (tasks_.empty()) return;
        task = std::move(tasks_.front());
        tasks_.pop_front();
      }
      changed_.NotifyAll();
      task();
    }
  }

  Mutex mutex_;
  CondVar changed_;
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Thread> threads_;
};

void Answer(const HttpServer::Pages& pages, const httplib::Request& request,
            httplib::Response* response) {
  HttpReply reply{404, HttpReply().type, "There is no such page here.\n"};
  if (request.method != "GET" && request.method != "HEAD") {
    reply = {405, reply.type, "Pages can only be read.\n"};
  } else if (const auto page = pages.find(request.path); page != pages.end()) {
    reply = page->second();
  }
  response->status = reply.status;
  response->set_header("Cache-Control", "no-store");
  response->set_header("X-Content-Type-Options", "nosniff");
  response->set_header("Referrer-Policy", "no-referrer");
  response->set_header("Content-Security-Policy", reply.content_policy);
  response->set_content(std::move(reply.body), reply.type);
}

// A server that listens on a socket of ours. The library's loop ends, and closes its socket, at the
// first error of accept() other than EMFILE; it can go on with the next copy.
class AcceptLoop {
 public:
  virtual ~AcceptLoop() = default;
  virtual httplib::Server& server() = 0;
  // Serves who connects, until accept() fails. Closes `listener`.
  virtual void Serve(UniqueFd listener) = 0;
};

template <typename Server>
class LibraryLoop final : public AcceptLoop, private Server {
 public:
  using Server::Server;
  httplib::Server& server() override { return *this; }
  void Serve(UniqueFd listener) override {
    this->svr_sock_ = listener.release();
    this->listen_after_bind();
  }
};

std::unique_ptr<AcceptLoop> MakeLoop(TlsContext* tls) {
  if (tls == nullptr) return std::make_unique<LibraryLoop<httplib::Server>>();
  return std::make_unique<LibraryLoop<httplib::SSLServer>>([tls](SSL_CTX& context) {
    tls->Configure(&context);
    return true;
  });
}

// The library waits in accept().
absl::StatusOr<UniqueFd> ListenBlocking(const HostPort& address) {
  ECPIPE_ASSIGN_OR_RETURN(UniqueFd listener, Listen(address));
  const int flags = ::fcntl(listener.get(), F_GETFL);
  if (flags < 0 || ::fcntl(listener.get(), F_SETFL, flags & ~O_NONBLOCK) != 0) {
    return ErrnoStatus(errno, "listen on " + FormatHostPort(address));
  }
  return listener;
}

}  // namespace

struct HttpServer::State {
  std::shared_ptr<TlsContext> tls;  // outlives the loop
  std::unique_ptr<AcceptLoop> loop;
  UniqueFd listener;
  std::string address;
  Mutex mutex;
  CondVar changed;
  bool stopping ABSL_GUARDED_BY(mutex) = false;
  Thread thread;

  void Run() {
    while (!StopsWithin(Duration(0))) {
      // The port stays ours while no loop runs: who connects meanwhile waits in its queue.
      UniqueFd copy(::fcntl(listener.get(), F_DUPFD_CLOEXEC, 0));
      if (copy.valid()) loop->Serve(std::move(copy));
      if (StopsWithin(kAcceptPause)) return;
    }
  }

  bool StopsWithin(Duration time) {
    const TimePoint until = Clock::System().Now() + time;
    MutexLock lock(&mutex);
    while (!stopping && Clock::System().Now() < until) changed.WaitUntil(lock, until);
    return stopping;
  }

  // Ends accept() for good.
  void Stop() {
    {
      MutexLock lock(&mutex);
      stopping = true;
    }
    changed.NotifyAll();
    ::shutdown(listener.get(), SHUT_RDWR);
  }
};

HttpServer::HttpServer(std::unique_ptr<State> state) : state_(std::move(state)) {}

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const std::string& address,
                                                              std::shared_ptr<TlsContext> tls,
                                                              Pages pages) {
  ECPIPE_ASSIGN_OR_RETURN(const HostPort where, ParseHostPort(address));
  auto state = std::make_unique<State>();
  state->tls = std::move(tls);
  state->loop = MakeLoop(state->tls.get());
  httplib::Server& server = state->loop->server();
  server.new_task_queue = [] { return new BoundedPool; };
  server.set_keep_alive_max_count(1);
  server.set_keep_alive_timeout(kPatienceSeconds);
  server.set_read_timeout(kPatienceSeconds);
  server.set_write_timeout(kPatienceSeconds);
  server.set_pre_routing_handler(
      [pages = std::move(pages)](const httplib::Request& request, httplib::Response& response) {
        Answer(pages, request, &response);
        return httplib::Server::HandlerResponse::Handled;
      });
  absl::StatusOr<UniqueFd> listener = ListenBlocking(where);
  if (!listener.ok()) return absl::UnavailableError(std::string(listener.status().message()));
  state->listener = *std::move(listener);
  ECPIPE_ASSIGN_OR_RETURN(const HostPort bound, BoundAddress(state->listener.get()));
  state->address = FormatHostPort({where.host, bound.port});
  state->thread = Thread([state = state.get()] { state->Run(); });
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(state)));
}

HttpServer::~HttpServer() {
  state_->Stop();
  state_->thread.join();
}

const std::string& HttpServer::address() const { return state_->address; }

}  // namespace ecpipe
