// SPDX-License-Identifier: Apache-2.0
#include "requestor/cli/limits_client.h"

#include "base/status.h"
#include "ecpipe/v1/coordinator.grpc.pb.h"
#include "net/tcp_socket.h"
#include "rpc/channel.h"
#include "rpc/rpc_status.h"

namespace ecpipe {
namespace {

ClusterLimitsView::Node NodeOf(const v1::GetLimitsResponse::Node& proto) {
  ClusterLimitsView::Node node;
  node.node = proto.node_id();
  node.state = proto.state();
  node.repair_bytes_per_second = proto.repair_bytes_per_second();
  node.max_sessions = proto.max_sessions();
  if (proto.has_set_repair_bytes_per_second()) {
    node.set_repair_bytes_per_second = proto.set_repair_bytes_per_second();
  }
  if (proto.has_set_max_sessions()) node.set_max_sessions = proto.set_max_sessions();
  return node;
}

class LimitsGrpcClient : public LimitsClient {
 public:
  LimitsGrpcClient(std::string address, Duration timeout, const std::shared_ptr<TlsContext>& tls)
      : address_(std::move(address)),
        timeout_(timeout),
        stub_(v1::CoordinatorService::NewStub(
            MakeChannel(address_, RpcSecurity(tls), Role::kCoordinator))) {}

  absl::StatusOr<ClusterLimitsView> Get() override {
    grpc::ClientContext context;
    SetTimeout(&context, timeout_);
    v1::GetLimitsResponse response;
    ECPIPE_RETURN_IF_ERROR(
        Checked(stub_->GetLimits(&context, v1::GetLimitsRequest(), &response)));
    ClusterLimitsView view;
    view.repair_bytes_per_second = response.cluster().repair_bytes_per_second();
    view.rate_is_set = response.cluster().rate_is_set();
    view.max_running = response.cluster().max_running();
    view.max_running_is_set = response.cluster().max_running_is_set();
    for (const auto& node : response.nodes()) view.nodes.push_back(NodeOf(node));
    return view;
  }

  absl::Status Set(const LimitsChange& change) override {
    grpc::ClientContext context;
    SetTimeout(&context, timeout_);
    v1::SetLimitsRequest request;
    request.set_node_id(change.node);
    request.set_reset(change.reset);
    if (change.repair_bytes_per_second) {
      request.set_repair_bytes_per_second(*change.repair_bytes_per_second);
    }
    if (change.max_running) request.set_max_running(*change.max_running);
    if (change.max_sessions) request.set_max_sessions(*change.max_sessions);
    v1::SetLimitsResponse response;
    return Checked(stub_->SetLimits(&context, request, &response));
  }

 private:
  absl::Status Checked(const grpc::Status& status) const {
    return FromGrpc(status, "coordinator " + address_);
  }

  const std::string address_;
  const Duration timeout_;
  const std::unique_ptr<v1::CoordinatorService::Stub> stub_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<LimitsClient>> MakeLimitsClient(
    const std::string& address, Duration timeout, const std::shared_ptr<TlsContext>& tls) {
  ECPIPE_RETURN_IF_ERROR(ParseHostPort(address).status());
  return std::make_unique<LimitsGrpcClient>(address, timeout, tls);
}

}  // namespace ecpipe
