// SPDX-License-Identifier: Apache-2.0
#include "rpc/convert/repair_proto.h"

#include <algorithm>

#include "base/bytes/utf8_text.h"
#include "base/status.h"
#include "model/corrupt_block.h"
#include "model/fault.h"
#include "rpc/convert/facts_proto.h"
#include "rpc/convert/part_proto.h"
#include "rpc/rpc_status.h"

namespace ecpipe {
namespace {

absl::StatusOr<std::vector<uint64_t>> LengthsOf(const v1::RepairTarget& target,
                                                const v1::BeginRepairResponse& response) {
  const auto& lengths = response.block_lengths();
  const int blocks = target.block_ids_size();
  if (lengths.size() == blocks) return std::vector<uint64_t>(lengths.begin(), lengths.end());
  // An older coordinator tells the length of the shortest alone. Who brings the facts of the stripe
  // knows the others.
  if (!lengths.empty() || (blocks > 1 && !target.has_facts())) {
    return absl::FailedPreconditionError(
        "the coordinator does not tell the length of each block: update it, or repair the blocks "
        "one at a time");
  }
  return std::vector<uint64_t>(static_cast<size_t>(blocks), response.block_bytes());
}

}  // namespace

void RepairToProto(const RepairRecord& record, v1::Repair* proto) {
  proto->set_repair_id(record.repair_id);
  proto->set_attempt(record.attempt);
  for (const std::string& block_id : record.block_ids) proto->add_block_ids(block_id);
  proto->set_scheme(record.scheme);
  proto->set_transport(record.transport);
  proto->set_state(RepairStateName(record.state));
  proto->set_requestor(record.requestor);
  proto->set_started_unix_ms(record.started_unix_ms);
  proto->set_ended_unix_ms(record.ended_unix_ms);
  proto->set_detail(record.detail);
  for (const std::string& host : record.hosts) proto->add_hosts(host);
  proto->set_recovery_id(record.recovery_id);
}

RepairRecord RepairFromProto(const v1::Repair& proto) {
  RepairRecord record;
  record.repair_id = proto.repair_id();
  record.attempt = proto.attempt();
  record.block_ids.assign(proto.block_ids().begin(), proto.block_ids().end());
  record.scheme = proto.scheme();
  record.transport = proto.transport();
  record.state = RepairStateNamed(proto.state());
  record.requestor = proto.requestor();
  record.started_unix_ms = proto.started_unix_ms();
  record.ended_unix_ms = proto.ended_unix_ms();
  record.detail = proto.detail();
  record.hosts = {proto.hosts().begin(), proto.hosts().end()};
  record.recovery_id = proto.recovery_id();
  return record;
}

void GrantToProto(const RepairGrant& grant, v1::BeginRepairResponse* proto) {
  proto->set_repair_id(grant.repair_id);
  if (!grant.part.hops.empty()) *proto->mutable_part() = PartToProto(grant.part);
  proto->set_scheme(grant.scheme);
  proto->set_stripe_id(grant.stripe_id);
  proto->set_stripe_digest(grant.stripe_digest);
  const std::vector<uint64_t>& lengths = grant.block_lengths;
  if (!lengths.empty()) {
    proto->set_block_bytes(*std::min_element(lengths.begin(), lengths.end()));
  }
  proto->mutable_block_lengths()->Add(lengths.begin(), lengths.end());
  if (grant.checksum) *proto->mutable_checksum() = ChecksumToProto(*grant.checksum);
  SourcesToProto(grant.corrupt, proto->mutable_corrupt());
  CostToProto(grant.cost, proto->mutable_cost());
}

absl::StatusOr<RepairGrant> GrantFromProto(const v1::BeginRepairResponse& proto,
                                           const v1::RepairTarget& target) {
  RepairGrant grant;
  grant.repair_id = proto.repair_id();
  if (target.hosts().empty()) {
    ECPIPE_ASSIGN_OR_RETURN(grant.part, PartFromProto(proto.part()));
  }
  grant.scheme = proto.scheme();
  grant.stripe_id = proto.stripe_id();
  grant.stripe_digest = proto.stripe_digest();
  ECPIPE_ASSIGN_OR_RETURN(grant.block_lengths, LengthsOf(target, proto));
  grant.checksum = ChecksumFromProto(proto.checksum());
  grant.corrupt = SourcesFromProto(proto.corrupt());
  grant.cost = CostFromProto(proto.cost());
  return grant;
}

void ResumeToProto(const ResumePoint& point, v1::BeginRepairRequest::Resume* proto) {
  proto->set_repair_id(point.repair_id);
  proto->set_attempt(point.attempt);
  proto->mutable_grid()->set_offset(point.left.grid.offset);
  proto->mutable_grid()->set_bytes(point.left.grid.bytes);
  proto->mutable_grid()->set_slice_bytes(point.left.grid.slice_bytes);
  for (const SliceRun& run : point.left.missing) {
    v1::SliceRun* added = proto->add_missing();
    added->set_first(run.first);
    added->set_count(run.count);
    added->set_stride(run.stride);
  }
  proto->set_scheme(point.scheme);
  proto->set_stripe_digest(point.stripe_digest);
  proto->set_status_code(static_cast<int>(point.failure.code()));
  proto->set_status_message(std::string(point.failure.message()));
  proto->set_fault_node(FaultOf(point.failure));
  proto->set_corrupt_block_id(CorruptBlockOf(point.failure));
}

ResumePoint ResumeFromProto(const v1::BeginRepairRequest::Resume& proto) {
  ResumePoint point;
  point.repair_id = proto.repair_id();
  point.attempt = proto.attempt();
  point.left.grid = {proto.grid().offset(), proto.grid().bytes(), proto.grid().slice_bytes()};
  for (const v1::SliceRun& run : proto.missing()) {
    point.left.missing.push_back({run.first(), run.count(), run.stride()});
  }
  point.scheme = proto.scheme();
  point.stripe_digest = proto.stripe_digest();
  point.failure = StatusFromWire(proto.status_code(), proto.status_message(), proto.fault_node());
  return point;
}

void VerdictToProto(const RepairVerdict& verdict, v1::FinishRepairRequest* proto) {
  proto->set_status_code(static_cast<int>(verdict.status.code()));
  proto->set_status_message(CleanText(std::string(verdict.status.message())));
  proto->set_verified_bytes(verdict.verified_bytes);
  proto->set_corrupt_block_id(CorruptBlockOf(verdict.status));
  if (verdict.first_byte_seconds) proto->set_first_byte_seconds(*verdict.first_byte_seconds);
}

RepairVerdict VerdictFromProto(const v1::FinishRepairRequest& proto) {
  constexpr double kLongest = 86400;  // one absurd number would spoil the sum of all
  RepairVerdict verdict{StatusFromWire(proto.status_code(), proto.status_message()),
                        proto.verified_bytes()};
  const double seconds = proto.first_byte_seconds();
  const bool possible = seconds >= 0 && seconds <= kLongest;  // a NaN is not
  if (proto.has_first_byte_seconds() && possible) verdict.first_byte_seconds = seconds;
  return verdict;
}

void CostToProto(const PlanCost& cost, v1::PlanCost* proto) {
  for (const NodeLoad& load : cost.loads) {
    v1::PlanCost::Node* node = proto->add_nodes();
    node->set_node_id(load.node);
    node->set_up_bytes(load.up_bytes);
    node->set_down_bytes(load.down_bytes);
  }
  proto->set_busiest_link_bytes(cost.busiest_link_bytes);
  proto->set_total_bytes(cost.total_bytes);
  proto->set_depth(static_cast<uint32_t>(cost.depth));
  proto->set_expected_seconds(cost.seconds);
  proto->set_timeslots(cost.timeslots);
}

PlanCost CostFromProto(const v1::PlanCost& proto) {
  PlanCost cost;
  for (const auto& node : proto.nodes()) {
    cost.loads.push_back({node.node_id(), node.up_bytes(), node.down_bytes()});
  }
  cost.busiest_link_bytes = proto.busiest_link_bytes();
  cost.total_bytes = proto.total_bytes();
  cost.depth = static_cast<int>(proto.depth());
  cost.seconds = proto.expected_seconds();
  cost.timeslots = proto.timeslots();
  return cost;
}

void PredictionToProto(const SchemePrediction& prediction,
                       v1::ExplainRepairResponse::Prediction* proto) {
  proto->set_scheme(prediction.scheme);
  proto->set_expected_seconds(prediction.cost.seconds);
  proto->set_timeslots(prediction.cost.timeslots);
  proto->set_cross_rack_bytes(prediction.cost.cross_rack_bytes);
}

SchemePrediction PredictionFromProto(const v1::ExplainRepairResponse::Prediction& proto) {
  SchemePrediction prediction{proto.scheme(), {}};
  prediction.cost.seconds = proto.expected_seconds();
  prediction.cost.timeslots = proto.timeslots();
  prediction.cost.cross_rack_bytes = proto.cross_rack_bytes();
  return prediction;
}

}  // namespace ecpipe
