// SPDX-License-Identifier: Apache-2.0
#include "rpc/rpc_server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server_builder.h>

#include <chrono>

#include "common/status.h"
#include "common/tcp_socket.h"

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
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(address, security.ForServer(), &port);
  // A second server on the same port must fail, not share it.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);  // see channel.cc
  SetLimits(&builder);
  builder.RegisterService(service);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || port == 0) return absl::UnavailableError("cannot listen on " + address);
  host_port.port = port;
  return std::unique_ptr<RpcServer>(new RpcServer(std::move(server), FormatHostPort(host_port)));
}

RpcServer::~RpcServer() {
  server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(2));
  server_->Wait();
}

void RpcServer::SetServing(bool serving) {
  if (auto* health = server_->GetHealthCheckService()) health->SetServingStatus(serving);
}

}  // namespace ecpipe
