// SPDX-License-Identifier: Apache-2.0
#include "rpc/convert/recovery_proto.h"

#include "base/status.h"
#include "rpc/convert/part_proto.h"

namespace ecpipe {

v1::RecoveryRequest RecoveryRequestToProto(const RecoveryRequest& request) {
  v1::RecoveryRequest proto;
  proto.set_node_id(request.node);
  for (const std::string& node : request.hosts) proto.add_hosts(node);
  proto.set_scheme(request.scheme);
  proto.set_policy(RecoveryPolicyName(request.policy));
  proto.set_slice_bytes(request.slice_bytes);
  if (request.transport) proto.set_transport(TransportToProto(*request.transport));
  proto.set_streams_per_node(request.streams_per_node);
  if (request.delay_seconds >= 0) proto.set_delay_seconds(request.delay_seconds);
  return proto;
}

absl::StatusOr<RecoveryRequest> RecoveryRequestFromProto(const v1::RecoveryRequest& proto) {
  RecoveryRequest request;
  request.node = proto.node_id();
  request.hosts = {proto.hosts().begin(), proto.hosts().end()};
  request.scheme = proto.scheme();
  request.slice_bytes = proto.slice_bytes();
  request.streams_per_node = proto.streams_per_node();
  constexpr double kLongestDelay = 7 * 86400;
  if (proto.has_delay_seconds()) {
    request.delay_seconds = proto.delay_seconds();
    if (!(request.delay_seconds >= 0 && request.delay_seconds <= kLongestDelay)) {
      return absl::InvalidArgumentError("the delay must be from 0 to 604800 seconds (7 days)");
    }
  }
  if (proto.transport() != v1::TRANSPORT_UNSPECIFIED) {
    ECPIPE_ASSIGN_OR_RETURN(request.transport,
                            TransportFromProto(proto.transport(), TransportKind::kTcp));
  }
  if (request.slice_bytes > kMaxSliceBytes) {
    return absl::InvalidArgumentError("a slice may have at most " + std::to_string(kMaxSliceBytes) +
                                      " bytes");
  }
  if (proto.policy().empty()) return request;
  const std::optional<RecoveryPolicy> policy = RecoveryPolicyNamed(proto.policy());
  if (!policy) {
    return absl::InvalidArgumentError("unknown policy '" + proto.policy() +
                                      "'; known are in-order, least-recent, balanced");
  }
  request.policy = *policy;
  return request;
}

void RecoveryToProto(const RecoveryView& view, v1::ListRecoveriesResponse::Recovery* proto) {
  const RecoveryRecord& record = view.record;
  proto->set_recovery_id(record.recovery_id);
  *proto->mutable_request() = RecoveryRequestToProto(record.request);
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
    added->set_kind(WaitKindName(blocked.kind));
    added->set_next_try_in_seconds(blocked.next_try_in_seconds);
  }
  for (const RecoveryWait& wait : view.waits) {
    v1::ListRecoveriesResponse::Wait* added = proto->add_waits();
    added->set_kind(WaitKindName(wait.kind));
    added->set_blocks(wait.blocks);
    added->set_reason(wait.reason);
  }
  proto->set_there_blocks(view.there_blocks);
  proto->set_kind(RecoveryKindName(record.request.kind));
  proto->set_keeps_out(record.keeps_out);
  proto->set_streams_per_node(view.streams_per_node);
  proto->set_started_unix_ms(record.started_unix_ms);
  proto->set_ended_unix_ms(record.ended_unix_ms);
}

absl::StatusOr<RecoveryView> RecoveryFromProto(const v1::ListRecoveriesResponse::Recovery& proto) {
  RecoveryView view;
  RecoveryRecord& record = view.record;
  record.recovery_id = proto.recovery_id();
  ECPIPE_ASSIGN_OR_RETURN(record.request, RecoveryRequestFromProto(proto.request()));
  record.state = RecoveryStateNamed(proto.state());
  view.listing = proto.listing();
  record.blocks = proto.blocks();
  record.bytes = proto.bytes();
  record.done_blocks = proto.done_blocks();
  record.done_bytes = proto.done_bytes();
  view.running_blocks = proto.running_blocks();
  view.waiting_blocks = proto.waiting_blocks();
  record.failed_blocks = proto.failed_blocks();
  view.bytes_per_second = proto.bytes_per_second();
  view.eta_seconds = proto.eta_seconds();
  view.begins_in_seconds = proto.begins_in_seconds();
  for (const auto& blocked : proto.blocked()) {
    view.blocked.push_back({blocked.block_id(), blocked.reason(),
                            static_cast<int>(blocked.attempts()), blocked.given_up(),
                            WaitKindNamed(blocked.kind()), blocked.next_try_in_seconds()});
  }
  for (const auto& wait : proto.waits()) {
    view.waits.push_back({WaitKindNamed(wait.kind()), wait.blocks(), wait.reason()});
  }
  view.there_blocks = proto.there_blocks();
  record.request.kind = RecoveryKindNamed(proto.kind());
  record.keeps_out = proto.keeps_out();
  view.streams_per_node = proto.streams_per_node();
  record.started_unix_ms = proto.started_unix_ms();
  record.ended_unix_ms = proto.ended_unix_ms();
  return view;
}

}  // namespace ecpipe
