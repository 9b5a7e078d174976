// SPDX-License-Identifier: Apache-2.0
#include "requestor/upkeep/config_client.h"

#include "base/status.h"
#include "ecpipe/v1/daemon.grpc.pb.h"
#include "rpc/channel.h"
#include "rpc/rpc_status.h"

namespace ecpipe {

absl::StatusOr<DaemonConfig> FetchConfig(const std::string& address, const std::string& node,
                                         Duration patience,
                                         const std::shared_ptr<TlsContext>& tls) {
  const Role role = node.empty() ? Role::kCoordinator : Role::kHelper;
  const std::string name = (node.empty() ? "coordinator " : node + " at ") + address;
  const auto stub = v1::DaemonService::NewStub(MakeChannel(address, RpcSecurity(tls), role, node));
  grpc::ClientContext context;
  SetTimeout(&context, patience);
  v1::GetConfigResponse response;
  const grpc::Status status = stub->GetConfig(&context, v1::GetConfigRequest(), &response);
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
    return absl::UnimplementedError(
        name + " is of a version that does not tell its configuration; look at its file");
  }
  ECPIPE_RETURN_IF_ERROR(FromGrpc(status, name));
  return DaemonConfig{{response.values().begin(), response.values().end()},
                      {response.reloadable().begin(), response.reloadable().end()}};
}

}  // namespace ecpipe
