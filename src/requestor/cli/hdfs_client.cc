// SPDX-License-Identifier: Apache-2.0
#include "requestor/cli/hdfs_client.h"

#include <algorithm>

#include "base/status.h"
#include "ecpipe/v1/coordinator.grpc.pb.h"
#include "net/tcp_socket.h"
#include "rpc/channel.h"
#include "rpc/rpc_status.h"

namespace ecpipe {
namespace {

LostCount LostCountOf(const v1::GetNodeLossResponse::Count& proto) {
  return {proto.blocks(), proto.bytes()};
}

class HdfsGrpcClient : public HdfsClient {
 public:
  HdfsGrpcClient(std::string address, Duration timeout, const std::shared_ptr<TlsContext>& tls)
      : address_(std::move(address)),
        timeout_(timeout),
        channel_(MakeChannel(address_, RpcSecurity(tls), Role::kCoordinator)),
        stub_(v1::CoordinatorService::NewStub(channel_)) {}

  absl::StatusOr<std::optional<NodeLossView>> Loss(const std::string& node) override {
    AwaitReconnection(channel_.get());  // recover-node asks again and again
    grpc::ClientContext context;
    SetTimeout(&context, timeout_);
    v1::GetNodeLossRequest request;
    request.set_node_id(node);
    v1::GetNodeLossResponse response;
    ECPIPE_RETURN_IF_ERROR(
        FromGrpc(stub_->GetNodeLoss(&context, request, &response), "coordinator " + address_));
    if (!response.hdfs()) return std::nullopt;
    NodeLossView view;
    view.node = node;
    view.state = response.state();
    view.seconds_since_heartbeat = response.seconds_since_heartbeat();
    view.lost = LostCountOf(response.lost());
    view.rebuilt = LostCountOf(response.rebuilt());
    view.gone = LostCountOf(response.gone());
    view.outstanding = LostCountOf(response.outstanding());
    const int classes = std::min<int>(response.by_missing_size(), view.by_missing.size());
    for (int i = 0; i < classes; ++i) {
      view.by_missing[static_cast<size_t>(i)] = response.by_missing(i);
    }
    view.of_unknown_groups = response.of_unknown_groups();
    view.beyond_repair = response.beyond_repair();
    view.repairs_running = response.repairs_running();
    view.report_age_seconds = response.report_age_seconds();
    view.unreported_nodes = response.unreported_nodes();
    view.facts.configured = response.facts().configured();
    if (response.facts().has_age_seconds()) {
      view.facts.age_seconds = response.facts().age_seconds();
    }
    view.facts.groups = response.facts().groups();
    view.facts.last_error = response.facts().last_error();
    view.facts.safe_mode = response.facts().safe_mode();
    view.state_in_hdfs = response.state_in_hdfs();
    view.helper_state = response.helper_state();
    view.helper_silent_seconds = response.helper_silent_seconds();
    return view;
  }

 private:
  const std::string address_;
  const Duration timeout_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::CoordinatorService::Stub> stub_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<HdfsClient>> MakeHdfsClient(const std::string& address,
                                                           Duration timeout,
                                                           const std::shared_ptr<TlsContext>& tls) {
  ECPIPE_RETURN_IF_ERROR(ParseHostPort(address).status());
  return std::make_unique<HdfsGrpcClient>(address, timeout, tls);
}

}  // namespace ecpipe
