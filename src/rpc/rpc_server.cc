// SPDX-License-Identifier: Apache-2.0
#include "rpc/rpc_server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server_builder.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/thread.h"
#include "base/unique_fd.h"
#include "base/wakeup.h"
#include "net/tcp_socket.h"

namespace ecpipe {

namespace {

// Enough for every helper of a large cluster and its requestors at once; a peer that wants more
// waits for its own calls to end.
constexpr int kMaxCallsOfAConnection = 256;
constexpr int kMaxThreads = 1024;  // each holds a call that runs
// From the accepting to the first frame of HTTP/2, TLS included.
constexpr int kHandshakeMillis = 5000;
// Peers then connect again, which with TLS those cannot whose certificate has expired meanwhile.
constexpr int kMaxConnectionAgeMillis = 3600 * 1000;

// Threads that wait for the next call. Where more are done with theirs than may wait, they end, and
// the next calls that come together start threads anew.
constexpr int kMaxWaitingThreads = 16;

void SetLimits(grpc::ServerBuilder* builder) {
  builder->SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, kMaxWaitingThreads);
  builder->SetResourceQuota(grpc::ResourceQuota("rpc").SetMaxThreads(kMaxThreads));
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxCallsOfAConnection);
  builder->AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMillis);
  builder->AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS, kMaxConnectionAgeMillis);
}

}  // namespace

// Accepts connections for gRPC, whose own listener lasts as long as its server: a helper that
// drains has to give up its port, and to be asked all the same.
class RpcServer::Acceptor {
 public:
  using Connections = grpc::experimental::ExternalConnectionAcceptor;

  Acceptor(std::vector<UniqueFd> listeners, Wakeup wakeup, std::unique_ptr<Connections> connections)
      : listeners_(std::move(listeners)),
        wakeup_(std::move(wakeup)),
        connections_(std::move(connections)),
        thread_([this] { Run(); }) {}
  ~Acceptor() {
    stopping_ = true;
    wakeup_.Signal();
    thread_.join();
  }

 private:
  void Run() {
    constexpr int kPauseMillis = 100;  // without descriptors accept() fails at once
    bool pause = false;
    while (!stopping_) {
      std::vector<pollfd> polled = {{wakeup_.fd(), POLLIN, 0}};
      for (const UniqueFd& listener : listeners_) {
        polled.push_back({pause ? -1 : listener.get(), POLLIN, 0});
      }
      ::poll(polled.data(), polled.size(), pause ? kPauseMillis : -1);
      wakeup_.Drain();
      pause = false;
      for (const UniqueFd& listener : listeners_) pause |= !AcceptSome(listener.get());
    }
  }

  // False: the process has no descriptor left.
  bool AcceptSome(int listener) {
    while (!stopping_) {
      UniqueFd fd(::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!fd.valid()) {
        return errno != EMFILE && errno != ENFILE && errno != ENOMEM && errno != ENOBUFS;
      }
      const int on = 1;
      ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      Connections::NewConnectionParameters connection;
      connection.listener_fd = listener;
      connection.fd = fd.release();
      connections_->HandleNewConnection(&connection);
    }
    return true;
  }

  const std::vector<UniqueFd> listeners_;
  Wakeup wakeup_;
  const std::unique_ptr<Connections> connections_;
  std::atomic<bool> stopping_{false};
  Thread thread_;
};

absl::Status CheckListenAddress(const std::string& address, bool allowed) {
  ECPIPE_ASSIGN_OR_RETURN(const HostPort host_port, ParseHostPort(address));
  if (IsLoopback(host_port.host) || allowed) return absl::OkStatus();
  return absl::InvalidArgumentError(
      address +
      " is not a loopback address, and TLS does not protect it; set up [tls], "
      "or set insecure = true if only trusted hosts can reach the address");
}

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(const std::string& address,
                                                            const RpcSecurity& security,
                                                            grpc::Service* service) {
  ECPIPE_ASSIGN_OR_RETURN(HostPort host_port, ParseHostPort(address));
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  // Not with SO_REUSEPORT: a second server on the same port must fail, not share it.
  ECPIPE_ASSIGN_OR_RETURN(std::vector<UniqueFd> listeners, ListenOnAll(host_port));
  ECPIPE_ASSIGN_OR_RETURN(const HostPort bound, BoundAddress(listeners[0].get()));
  host_port.port = bound.port;
  Wakeup wakeup;
  if (!wakeup.valid()) return ErrnoStatus(errno, "make an eventfd for " + address);
  grpc::ServerBuilder builder;
  using ConnectionType = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  auto connections = builder.experimental().AddExternalConnectionAcceptor(ConnectionType::FROM_FD,
                                                                          security.ForServer());
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);  // see channel.cc
  SetLimits(&builder);
  builder.RegisterService(service);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return absl::UnavailableError("cannot serve calls on " + address);
  auto acceptor =
      std::make_unique<Acceptor>(std::move(listeners), std::move(wakeup), std::move(connections));
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
