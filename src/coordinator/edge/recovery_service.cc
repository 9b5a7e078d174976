// SPDX-License-Identifier: Apache-2.0
// CoordinatorService, what it does for recoveries.
#include "base/status.h"
#include "coordinator/edge/coordinator_service.h"
#include "rpc/part_proto.h"
#include "rpc/rpc_status.h"

namespace ecpipe {
namespace {

void RecoveryToProto(const RecoveryView& view, v1::ListRecoveriesResponse::Recovery* proto) {
  const RecoveryRecord& record = view.record;
  proto->set_recovery_id(record.recovery_id);
  v1::RecoverySpec* spec = proto->mutable_spec();
  spec->set_node_id(record.request.node);
  for (const std::string& node : record.request.to) spec->add_to(node);
  spec->set_scheme(record.request.scheme);
  spec->set_policy(RecoveryPolicyName(record.request.policy));
  spec->set_slice_bytes(record.request.slice_bytes);
  spec->set_transport(TransportToProto(record.request.transport));
  spec->set_streams_per_node(record.request.streams_per_node);
  proto->set_state(RecoveryStateName(record.state));
  proto->set_listing(view.listing);
  proto->set_blocks(record.blocks);
  proto->set_bytes(record.bytes);
  proto->set_done_blocks(record.done_blocks);
  proto->set_done_bytes(record.done_bytes);
  proto->set_running_blocks(view.running_blocks);
  proto->set_waiting_blocks(view.waiting_blocks);
  proto->set_failed_blocks(record.failed_blocks);
  proto->set_bytes_per_second(view.bytes_per_second);
  proto->set_eta_seconds(view.eta_seconds);
  proto->set_begins_in_seconds(view.begins_in_seconds);
  for (const BlockedBlock& blocked : view.blocked) {
    v1::ListRecoveriesResponse::Blocked* added = proto->add_blocked();
    added->set_block_id(blocked.block_id);
    added->set_reason(blocked.reason);
    added->set_attempts(static_cast<uint32_t>(blocked.attempts));
    added->set_given_up(blocked.given_up);
  }
  proto->set_started_unix_ms(record.started_unix_ms);
  proto->set_ended_unix_ms(record.ended_unix_ms);
}

}  // namespace

absl::StatusOr<RecoveryRequest> CoordinatorServiceImpl::RecoveryOf(
    const v1::RecoverySpec& spec) const {
  RecoveryRequest request;
  request.node = spec.node_id();
  request.to = {spec.to().begin(), spec.to().end()};
  request.scheme = spec.scheme();
  request.slice_bytes = spec.slice_bytes();
  request.streams_per_node = spec.streams_per_node();
  constexpr double kLongestDelay = 7 * 86400;
  if (spec.has_delay_seconds()) {
    request.delay_seconds = spec.delay_seconds();
    if (!(request.delay_seconds >= 0 && request.delay_seconds <= kLongestDelay)) {
      return absl::InvalidArgumentError("the delay must be from 0 to 604800 seconds (7 days)");
    }
  }
  ECPIPE_ASSIGN_OR_RETURN(request.transport,
                          TransportFromProto(spec.transport(), default_transport_));
  if (request.slice_bytes > kMaxSliceBytes) {
    return absl::InvalidArgumentError("a slice may have at most " + std::to_string(kMaxSliceBytes) +
                                      " bytes");
  }
  if (spec.policy().empty()) return request;
  for (const RecoveryPolicy policy :
       {RecoveryPolicy::kInOrder, RecoveryPolicy::kLeastRecent, RecoveryPolicy::kBalanced}) {
    request.policy = policy;
    if (spec.policy() == RecoveryPolicyName(policy)) return request;
  }
  return absl::InvalidArgumentError("unknown policy '" + spec.policy() +
                                    "'; known are in-order, least-recent, balanced");
}

grpc::Status CoordinatorServiceImpl::BeginRecovery(grpc::ServerContext*,
                                                   const v1::BeginRecoveryRequest* request,
                                                   v1::BeginRecoveryResponse* response) {
  const absl::StatusOr<RecoveryRequest> wanted = RecoveryOf(request->spec());
  if (!wanted.ok()) return ToGrpc(wanted.status());
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
