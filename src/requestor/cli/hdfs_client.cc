// SPDX-License-Identifier: Apache-2.0
#include "requestor/cli/hdfs_client.h"

#include "base/status.h"
#include "ecpipe/v1/coordinator.grpc.pb.h"
#include "net/tcp_socket.h"
#include "rpc/channel.h"
#include "rpc/convert/node_loss_proto.h"
#include "rpc/rpc_status.h"

namespace ecpipe {
namespace {

class HdfsGrpcClient : public HdfsClient {
 public:
  HdfsGrpcClient(std::string address, Duration timeout, const std::shared_ptr<TlsContext>& tls)
      : address_(std::move(address)),
        timeout_(timeout),
        channel_(MakeChannel(address_, RpcSecurity(tls), Role::kCoordinator)),
        stub_(v1::CoordinatorService::NewStub(channel_)) {}

  absl::StatusOr<std::optional<NodeLoss>> Loss(const std::string& node) override {
    AwaitReconnection(channel_.get());  // recover-node asks again and again
    grpc::ClientContext context;
    SetTimeout(&context, timeout_);
    v1::GetNodeLossRequest request;
    request.set_node_id(node);
    v1::GetNodeLossResponse response;
    ECPIPE_RETURN_IF_ERROR(
        FromGrpc(stub_->GetNodeLoss(&context, request, &response), "coordinator " + address_));
    return NodeLossFromProto(node, response);
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
