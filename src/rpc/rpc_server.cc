// SPDX-License-Identifier: Apache-2.0
#include "rpc/rpc_server.h"

#include <fcntl.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server_builder.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/thread.h"
#include "base/unique_fd.h"
#include "base/wakeup.h"
#include "net/tcp_socket.h"
#include "rpc/audit_log.h"

namespace ecpipe {

namespace {

// Enough for every helper of a large cluster and its requestors at once; a peer that wants more
// waits for its own calls to end.
constexpr int kMaxCallsOfAConnection = 256;
constexpr int kMaxThreads = 1024;  // each holds a call that runs
static_assert(CallerLimits::Options().max_calls_of_others == kMaxThreads * 3 / 4);
// From the accepting to the first frame of HTTP/2, TLS included.
constexpr int kHandshakeMillis = 5000;
// Peers then connect again, which with TLS those cannot whose certificate has expired meanwhile.
constexpr int kMaxConnectionAgeMillis = 3600 * 1000;
// A peer that calls now and then connects anew, which it does not notice.
constexpr int kMaxIdleMillis = 600 * 1000;

// Threads that wait for the next call. Where more are done with theirs than may wait, they end, and
// the next calls that come together start threads anew.
constexpr int kMaxWaitingThreads = 16;

void SetLimits(grpc::ServerBuilder* builder) {
  builder->SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, kMaxWaitingThreads);
  builder->SetResourceQuota(grpc::ResourceQuota("rpc").SetMaxThreads(kMaxThreads));
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxCallsOfAConnection);
  builder->AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMillis);
  builder->AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS, kMaxConnectionAgeMillis);
  builder->AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kMaxIdleMillis);
}

}  // namespace

// Accepts connections for gRPC, whose own listener lasts as long as its server: a helper that
// drains has to give up its port, and to be asked all the same.
class RpcServer::Acceptor {
 public:
  using Connections = grpc::experimental::ExternalConnectionAcceptor;

  Acceptor(std::vector<UniqueFd> listeners, UniqueFd epoll, std::shared_ptr<Wakeup> wakeup,
           std::unique_ptr<Connections> connections, std::shared_ptr<CallerLimits> limits)
      : listeners_(std::move(listeners)),
        epoll_(std::move(epoll)),
        wakeup_(std::move(wakeup)),
        connections_(std::move(connections)),
        limits_(std::move(limits)),
        thread_([this] { Run(); }) {}
  ~Acceptor() {
    stopping_ = true;
    wakeup_->Signal();
    thread_.join();
  }

 private:
  // Ids of connections are positive.
  static constexpr uint64_t kListener = 0;
  static constexpr uint64_t kWakeup = UINT64_MAX;

  void Run() {
    constexpr int kPauseMillis = 100;  // without descriptors accept() fails at once
    constexpr int kLookMillis = 250;   // whether somebody is late
    Watch(EPOLL_CTL_ADD, wakeup_->fd(), EPOLLIN, kWakeup);
    for (const UniqueFd& listener : listeners_) {
      Watch(EPOLL_CTL_ADD, listener.get(), EPOLLIN, kListener);
    }
    while (!stopping_) {
      const bool anybody = limits_->EndLate(Clock::System().Now());
      std::array<epoll_event, 64> events;
      const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(),
                                     paused_   ? kPauseMillis
                                     : anybody ? kLookMillis
                                               : -1);
      for (int i = 0; i < count; ++i) {
        const uint64_t id = events[static_cast<size_t>(i)].data.u64;
        if (id != kListener && id != kWakeup) limits_->Forget(id);
      }
      wakeup_->Drain();
      bool exhausted = false;
      for (const UniqueFd& listener : listeners_) exhausted |= !AcceptSome(listener.get());
      Pause(exhausted);
    }
  }

  // False: there is no memory, or no room among the descriptors that a user may watch.
  bool Watch(int operation, int fd, uint32_t events, uint64_t id) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = id;
    return ::epoll_ctl(epoll_.get(), operation, fd, &event) == 0;
  }

  void Pause(bool pause) {
    if (pause == paused_) return;
    paused_ = pause;
    for (const UniqueFd& listener : listeners_) {
      Watch(EPOLL_CTL_MOD, listener.get(), pause ? 0u : uint32_t{EPOLLIN}, kListener);
    }
  }

  // False: the process has no descriptor left.
  bool AcceptSome(int listener) {
    constexpr int kAcceptsAtOnce = 64;  // those that are late must have their turn as well
    for (int i = 0; i < kAcceptsAtOnce && !stopping_; ++i) {
      sockaddr_storage from{};
      socklen_t length = sizeof from;
      UniqueFd fd(::accept4(listener, reinterpret_cast<sockaddr*>(&from), &length,
                            SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!fd.valid()) {
        return errno != EMFILE && errno != ENFILE && errno != ENOMEM && errno != ENOBUFS;
      }
      UniqueFd watch(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
      if (!watch.valid()) return false;
      const int on = 1;
      ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      const int watched = watch.get();
      const uint64_t id = limits_->Add(std::move(watch), from);
      // Once is enough; gRPC may keep its descriptor, and thereby this registration, for as long
      // as a call runs.
      if (!Watch(EPOLL_CTL_ADD, watched, uint32_t{EPOLLRDHUP} | EPOLLONESHOT, id)) {
        limits_->Forget(id);
        return false;
      }
      Connections::NewConnectionParameters connection;
      connection.listener_fd = listener;
      connection.fd = fd.release();
      connections_->HandleNewConnection(&connection);
    }
    return true;
  }

  const std::vector<UniqueFd> listeners_;
  const UniqueFd epoll_;
  const std::shared_ptr<Wakeup> wakeup_;  // shared with calls, which may outlive this
  const std::unique_ptr<Connections> connections_;
  const std::shared_ptr<CallerLimits> limits_;  // shared with the server's calls
  bool paused_ = false;                         // the thread's
  std::atomic<bool> stopping_{false};
  Thread thread_;
};

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(
    const std::string& address, const RpcSecurity& security,
    const std::vector<grpc::Service*>& services, const CallerLimits::Options& limits) {
  ECPIPE_ASSIGN_OR_RETURN(HostPort host_port, ParseHostPort(address));
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  // Not with SO_REUSEPORT: a second server on the same port must fail, not share it.
  ECPIPE_ASSIGN_OR_RETURN(std::vector<UniqueFd> listeners, ListenOnAll(host_port));
  ECPIPE_ASSIGN_OR_RETURN(const HostPort bound, BoundAddress(listeners[0].get()));
  host_port.port = bound.port;
  auto wakeup = std::make_shared<Wakeup>();
  if (!wakeup->valid()) return ErrnoStatus(errno, "make an eventfd for " + address);
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return ErrnoStatus(errno, "make an epoll set for " + address);
  auto callers = std::make_shared<CallerLimits>(limits);
  callers->set_on_stream([wakeup] { wakeup->Signal(); });
  grpc::ServerBuilder builder;
  using ConnectionType = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  auto connections = builder.experimental().AddExternalConnectionAcceptor(
      ConnectionType::FROM_FD, security.ForServer(callers));
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);  // see channel.cc
  SetLimits(&builder);
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> watches;
  watches.push_back(CallerLimits::Watch(callers));
  if (security.audit() != nullptr) watches.push_back(AuditLog::Watch(security.audit()));
  builder.experimental().SetInterceptorCreators(std::move(watches));
  for (grpc::Service* const service : services) builder.RegisterService(service);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return absl::UnavailableError("cannot serve calls on " + address);
  auto acceptor =
      std::make_unique<Acceptor>(std::move(listeners), std::move(epoll), std::move(wakeup),
                                 std::move(connections), std::move(callers));
  return std::unique_ptr<RpcServer>(
      new RpcServer(std::move(server), std::move(acceptor), FormatHostPort(host_port)));
}

RpcServer::RpcServer(std::unique_ptr<grpc::Server> server, std::unique_ptr<Acceptor> acceptor,
                     std::string address)
    : server_(std::move(server)), acceptor_(std::move(acceptor)), address_(std::move(address)) {}

RpcServer::~RpcServer() {
  StopListening();
  server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(2));
  server_->Wait();
}

void RpcServer::StopListening() { acceptor_.reset(); }

void RpcServer::SetServing(bool serving) {
  if (auto* health = server_->GetHealthCheckService()) health->SetServingStatus(serving);
}

}  // namespace ecpipe
