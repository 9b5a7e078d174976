// SPDX-License-Identifier: Apache-2.0
#include "rpc/rpc_server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/server_builder.h>

#include <chrono>

#include "common/status.h"
#include "common/tcp_socket.h"

namespace ecpipe {

absl::Status CheckListenAddress(const std::string& address, bool insecure) {
  ECPIPE_ASSIGN_OR_RETURN(const HostPort host_port, ParseHostPort(address));
  if (IsLoopback(host_port.host) || insecure) return absl::OkStatus();
  return absl::InvalidArgumentError(
      address + " is not a loopback address, and nothing protects it; set insecure = true if only "
                "trusted hosts can reach it");
}

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(const std::string& address,
                                                            grpc::Service* service) {
  ECPIPE_ASSIGN_OR_RETURN(HostPort host_port, ParseHostPort(address));
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
  // A second server on the same port must fail, not share it.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);  // see channel.cc
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
