// SPDX-License-Identifier: Apache-2.0
#include "web/http_server.h"

#include <httplib.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <deque>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "base/thread.h"
#include "net/tcp_socket.h"

namespace ecpipe {
namespace {

constexpr size_t kThreads = 4;
constexpr size_t kMaxWaiting = 16;  // connections that were taken and that no thread serves yet
constexpr int kPatienceSeconds = 2;

// The library's own pool would queue connections, and so descriptors, without a limit.
class BoundedPool : public httplib::TaskQueue {
 public:
  BoundedPool() {
    for (size_t i = 0; i < kThreads; ++i) threads_.emplace_back([this] { Work(); });
  }

  // Waits for room: further connections wait in the listening socket.
  void enqueue(std::function<void()> task) override {
    MutexLock lock(&mutex_);
    while (tasks_.size() >= kMaxWaiting) changed_.Wait(lock);
    tasks_.push_back(std::move(task));
    changed_.NotifyAll();
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

std::unique_ptr<httplib::Server> MakeServer(TlsContext* tls) {
  if (tls == nullptr) return std::make_unique<httplib::Server>();
  return std::make_unique<httplib::SSLServer>([tls](SSL_CTX& context) {
    tls->Configure(&context);
    return true;
  });
}

}  // namespace

struct HttpServer::State {
  std::shared_ptr<TlsContext> tls;  // outlives the server
  std::unique_ptr<httplib::Server> server;
  std::string address;
  std::atomic<bool> ended{false};  // the library's loop
  Thread thread;
};

HttpServer::HttpServer(std::unique_ptr<State> state) : state_(std::move(state)) {}

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const std::string& address,
                                                              std::shared_ptr<TlsContext> tls,
                                                              Pages pages) {
  ECPIPE_ASSIGN_OR_RETURN(const HostPort where, ParseHostPort(address));
  auto state = std::make_unique<State>();
  state->tls = std::move(tls);
  state->server = MakeServer(state->tls.get());
  httplib::Server& server = *state->server;
  server.new_task_queue = [] { return new BoundedPool; };
  // Not SO_REUSEPORT, the library's default: a second server on the port must fail, not share it.
  server.set_socket_options([](int fd) {
    const int on = 1;
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  });
  server.set_keep_alive_max_count(1);
  server.set_keep_alive_timeout(kPatienceSeconds);
  server.set_read_timeout(kPatienceSeconds);
  server.set_write_timeout(kPatienceSeconds);
  server.set_pre_routing_handler(
      [pages = std::move(pages)](const httplib::Request& request, httplib::Response& response) {
        Answer(pages, request, &response);
        return httplib::Server::HandlerResponse::Handled;
      });
  errno = 0;
  int port = where.port;
  if (port == 0) {
    port = server.bind_to_any_port(where.host);
  } else if (!server.bind_to_port(where.host, port)) {
    port = -1;
  }
  if (port < 0) {
    return absl::UnavailableError(
        "listen on " + address + ": " +
        (errno != 0 ? std::strerror(errno) : "the address cannot be used"));
  }
  state->address = FormatHostPort({where.host, port});
  state->thread = Thread([state = state.get()] {
    state->server->listen_after_bind();
    state->ended = true;
  });
  // stop() would do nothing for a server that does not run yet.
  while (!server.is_running() && !state->ended) std::this_thread::yield();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(state)));
}

HttpServer::~HttpServer() {
  state_->server->stop();
  state_->thread.join();
}

const std::string& HttpServer::address() const { return state_->address; }

}  // namespace ecpipe
