// SPDX-License-Identifier: Apache-2.0
// CoordinatorService, what it does for recoveries.
#include "base/status.h"
#include "coordinator/edge/coordinator_service.h"
#include "rpc/convert/recovery_proto.h"
#include "rpc/rpc_status.h"

namespace ecpipe {
grpc::Status CoordinatorServiceImpl::BeginRecovery(grpc::ServerContext*,
                                                   const v1::BeginRecoveryRequest* request,
                                                   v1::BeginRecoveryResponse* response) {
  absl::StatusOr<RecoveryRequest> wanted = RecoveryRequestFromProto(request->request());
  if (!wanted.ok()) return ToGrpc(wanted.status());
  if (!wanted->transport) wanted->transport = transports_.chosen;
  if (absl::Status may = CheckTransport(*wanted->transport); !may.ok()) return ToGrpc(may);
  const absl::StatusOr<RecoveryId> id = recoveries_->Begin(*wanted, request->even_if_live());
  if (!id.ok()) return ToGrpc(id.status());
  response->set_recovery_id(*id);
  return grpc::Status::OK;
}

grpc::Status CoordinatorServiceImpl::ChangeRecovery(grpc::ServerContext*,
                                                    const v1::ChangeRecoveryRequest* request,
                                                    v1::ChangeRecoveryResponse*) {
  switch (request->change()) {
    case v1::ChangeRecoveryRequest::CHANGE_PAUSE:
      return ToGrpc(recoveries_->Pause(request->recovery_id()));
    case v1::ChangeRecoveryRequest::CHANGE_RESUME:
      return ToGrpc(recoveries_->Resume(request->recovery_id()));
    case v1::ChangeRecoveryRequest::CHANGE_CANCEL:
      return ToGrpc(recoveries_->Cancel(request->recovery_id()));
    default:
      return ToGrpc(absl::InvalidArgumentError(
          "the request does not say whether to pause, resume or cancel"));
  }
}

grpc::Status CoordinatorServiceImpl::ListRecoveries(grpc::ServerContext*,
                                                    const v1::ListRecoveriesRequest* request,
                                                    v1::ListRecoveriesResponse* response) {
  if (request->recovery_id() == 0) {
    for (const RecoveryView& view : recoveries_->All()) {
      RecoveryToProto(view, response->add_recoveries());
    }
    return grpc::Status::OK;
  }
  const absl::StatusOr<RecoveryView> view = recoveries_->Get(request->recovery_id());
  if (!view.ok()) return ToGrpc(view.status());
  RecoveryToProto(*view, response->add_recoveries());
  return grpc::Status::OK;
}

}  // namespace ecpipe
