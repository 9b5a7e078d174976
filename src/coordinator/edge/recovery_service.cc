// SPDX-License-Identifier: Apache-2.0
// CoordinatorService, what it does for recoveries.
#include "base/status.h"
#include "coordinator/edge/coordinator_service.h"
#include "rpc/convert/recovery_proto.h"
#include "rpc/rpc_status.h"

namespace ecpipe {

absl::StatusOr<RecoveryRequest> CoordinatorServiceImpl::RecoveryRequestOf(
    const v1::RecoveryRequest& request, RecoveryKind kind) const {
  ECPIPE_ASSIGN_OR_RETURN(RecoveryRequest wanted, RecoveryRequestFromProto(request));
  wanted.kind = kind;
  if (!wanted.transport) wanted.transport = transports_.chosen;
  ECPIPE_RETURN_IF_ERROR(CheckTransport(*wanted.transport));
  return wanted;
}

IfLive CoordinatorServiceImpl::IfLiveOf(const v1::BeginRecoveryRequest& request) {
  return request.even_if_live()   ? IfLive::kRebuildAll
         : request.missing_only() ? IfLive::kRebuildMissing
                                  : IfLive::kRefuse;
}

grpc::Status CoordinatorServiceImpl::BeginRecovery(grpc::ServerContext*,
                                                   const v1::BeginRecoveryRequest* request,
                                                   v1::BeginRecoveryResponse* response) {
  const absl::StatusOr<RecoveryRequest> wanted =
      RecoveryRequestOf(request->request(), RecoveryKind::kRebuild);
  if (!wanted.ok()) return ToGrpc(wanted.status());
  const absl::StatusOr<RecoveryId> id = recoveries_->Begin(*wanted, IfLiveOf(*request));
  if (!id.ok()) return ToGrpc(id.status());
  response->set_recovery_id(*id);
  return grpc::Status::OK;
}

grpc::Status CoordinatorServiceImpl::DrainNode(grpc::ServerContext*,
                                               const v1::DrainNodeRequest* request,
                                               v1::DrainNodeResponse* response) {
  const absl::StatusOr<RecoveryRequest> wanted =
      RecoveryRequestOf(request->request(), RecoveryKind::kMove);
  if (!wanted.ok()) return ToGrpc(wanted.status());
  const absl::StatusOr<RecoveryId> id = recoveries_->Begin(*wanted, IfLive::kRebuildAll);
  if (!id.ok()) return ToGrpc(id.status());
  response->set_recovery_id(*id);
  return grpc::Status::OK;
}

grpc::Status CoordinatorServiceImpl::MaintainNode(grpc::ServerContext*,
                                                  const v1::MaintainNodeRequest* request,
                                                  v1::MaintainNodeResponse* response) {
  const absl::StatusOr<RecoveryId> id =
      recoveries_->Maintain(request->node_id(), request->seconds());
  if (!id.ok()) return ToGrpc(id.status());
  response->set_recovery_id(*id);
  return grpc::Status::OK;
}

grpc::Status CoordinatorServiceImpl::ReadmitNode(grpc::ServerContext*,
                                                 const v1::ReadmitNodeRequest* request,
                                                 v1::ReadmitNodeResponse*) {
  return ToGrpc(recoveries_->Readmit(request->node_id()));
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
