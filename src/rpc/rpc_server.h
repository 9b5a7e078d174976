// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/impl/service_type.h>
#include <grpcpp/server.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rpc/caller_limits.h"
#include "rpc/rpc_security.h"

namespace ecpipe {

// A gRPC server with some services, health checking and reflection. With TLS each call is checked
// against the table of access.h. Connections, calls, streams, message sizes, and the time until a
// new connection makes its first call are bounded, so a peer can make the server hold only so much
// (caller_limits.h).
class RpcServer {
 public:
  // Listens on `address`, on all that its name stands for (port 0 picks a free one). The
  // services outlive the server. UNAVAILABLE when the address cannot be bound: another process has
  // it. RESOURCE_EXHAUSTED: the process has no descriptor left.
  static absl::StatusOr<std::unique_ptr<RpcServer>> Start(
      const std::string& address, const RpcSecurity& security,
      const std::vector<grpc::Service*>& services, const CallerLimits::Options& limits = {});
  // Lets running calls finish for a moment, then ends them.
  ~RpcServer();

  // "host:port" with the port that it listens on.
  const std::string& address() const { return address_; }
  // What health checks answer from now on.
  void SetServing(bool serving);
  // Gives up the port, so that another process may listen on it. Connections that are there go on.
  void StopListening();

 private:
  class Acceptor;

  RpcServer(std::unique_ptr<grpc::Server> server, std::unique_ptr<Acceptor> acceptor,
            std::string address);

  const std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Acceptor> acceptor_;  // null: it listens no more
  const std::string address_;
};

}  // namespace ecpipe
