// SPDX-License-Identifier: Apache-2.0
#include "coordinator/edge/coordinator_service.h"

#include "base/status.h"
#include "coordinator/planning/scheme.h"
#include "model/block_id.h"
#include "model/plan/features.h"
#include "rpc/access.h"
#include "rpc/convert/facts_proto.h"
#include "rpc/convert/part_proto.h"
#include "rpc/convert/repair_proto.h"
#include "rpc/convert/scheme_proto.h"
#include "rpc/rpc_status.h"

namespace ecpipe {
namespace {

constexpr uint32_t kHeartbeatIntervalMillis = 1000;
constexpr double kFastestLink = 1e12;  // bytes per second: no link is
// Less than a helper waits for the answer to its registration.
constexpr auto kAddressPatience = std::chrono::milliseconds(1500);

Features FeaturesOf(const google::protobuf::RepeatedPtrField<std::string>& names) {
  return FeaturesNamed({names.begin(), names.end()});
}

template <typename Rows>
void RowsToProto(const Rows& rows, google::protobuf::RepeatedField<uint32_t>* proto) {
  for (const Row row : rows) proto->Add(row);
}

void HopToProto(const PlanHop& hop, const PlannedRepair& planned,
                v1::ExplainRepairResponse::PlannedHop* proto) {
  proto->set_node_id(hop.node);
  proto->set_block_index(hop.block_index);
  if (hop.block_index >= 0) {
    proto->set_block_id(planned.stripe.blocks[static_cast<size_t>(hop.block_index)].block_id);
  }
  RowsToProto(hop.rows, proto->mutable_rows());
  RowsToProto(hop.stored_rows, proto->mutable_stored_rows());
  proto->set_coefficients(hop.coefficients.data(), hop.coefficients.size());
  for (const uint32_t sub_block : hop.sub_blocks) proto->add_sub_blocks(sub_block);
  for (const PlanInput& input : hop.inputs) {
    v1::ExplainRepairResponse::Input* added = proto->add_inputs();
    added->set_from_hop(static_cast<uint32_t>(input.from_hop));
    RowsToProto(input.rows, added->mutable_rows());
    added->set_coefficients(input.coefficients.data(), input.coefficients.size());
  }
  if (const auto rack = planned.racks.find(hop.node); rack != planned.racks.end()) {
    proto->set_rack(rack->second);
  }
}

RepairCaller CallerOf(const grpc::ServerContext* context, const RepairRequest& request) {
  RepairCaller caller;
  if (context == nullptr) return caller;
  const auto left = context->deadline() - std::chrono::system_clock::now();
  if (left < std::chrono::hours(1)) {
    caller.answer_by = Clock::System().Now() + std::chrono::duration_cast<Duration>(left);
  }
  // What nodes store is stored whether or not somebody waits for it.
  if (request.hosts.empty()) caller.gone = [context] { return context->IsCancelled(); };
  return caller;
}

// Blocks that nodes store change the catalog.
absl::Status CheckMayStore(const grpc::ServerContext* context, const v1::RepairTarget& target) {
  if (target.hosts().empty()) return absl::OkStatus();
  return CheckHasRole(context, Role::kOperator, "a repair that stores blocks on nodes");
}

RepairCause CauseOf(const RepairRequest& request, const CorruptBlocks& corrupt) {
  if (!request.hosts.empty()) return CauseOfStoring(request.block_ids, corrupt);
  return request.background ? RepairCause::kReconstruction : RepairCause::kDegradedRead;
}

}  // namespace

void CoordinatorServiceImpl::SetAddresses(AddressRule addresses) {
  MutexLock lock(&addresses_mutex_);
  addresses_ = std::move(addresses);
}

AddressRule CoordinatorServiceImpl::Addresses() {
  MutexLock lock(&addresses_mutex_);
  return addresses_;
}

grpc::Status CoordinatorServiceImpl::Register(grpc::ServerContext* context,
                                              const v1::RegisterRequest* request,
                                              v1::RegisterResponse* response) {
  if (absl::Status own = CheckSpeaksFor(context, request->node().node_id()); !own.ok()) {
    return ToGrpc(own);
  }
  const absl::Status storage = CheckSpeaksForStorage(context, request->node().storage_id());
  if (!storage.ok()) return ToGrpc(storage);
  NodeRecord node;
  node.node_id = request->node().node_id();
  node.rack = request->node().rack();
  node.control_address = request->node().control_address();
  node.data_address = request->node().data_address();
  node.redis_address = request->node().redis_address();
  node.incarnation = request->node().incarnation();
  node.storage_id = request->node().storage_id();
  node.block_count = request->inventory().block_count();
  node.block_bytes = request->inventory().block_bytes();
  node.counting = request->inventory().counting();
  node.failed_roots = FailedRootsOf(request->inventory());
  node.free_bytes = FreeBytesOf(request->inventory());
  node.disk_bytes = DiskBytesOf(request->inventory());
  node.features = FeaturesOf(request->node().features());
  if (context != nullptr) {
    const TimePoint deadline = Clock::System().Now() + kAddressPatience;
    const absl::Status fits = Addresses().Check(node, context->peer(), deadline);
    if (!fits.ok()) return ToGrpc(fits);
  }
  response->set_heartbeat_interval_ms(kHeartbeatIntervalMillis);
  *response->mutable_limits() = LimitsFor(node.node_id);
  return ToGrpc(repairs_->Register(node));
}

grpc::Status CoordinatorServiceImpl::ReportPart(grpc::ServerContext* context,
                                                const v1::ReportPartRequest* request,
                                                v1::ReportPartResponse*) {
  if (absl::Status own = CheckSpeaksFor(context, request->node_id()); !own.ok()) {
    return ToGrpc(own);
  }
  repairs_->nodes().Heard(request->node_id());
  const absl::Status status =
      StatusFromWire(request->status_code(), request->status_message(), request->fault_node());
  std::vector<LinkTiming> timings;
  for (const v1::LinkTiming& link : request->links()) {
    timings.push_back({link.to_node(), link.bytes(), link.seconds(), link.network_seconds()});
  }
  if (prober_->Report(request->node_id(), request->repair_id(), status, timings)) {
    return grpc::Status::OK;
  }
  // First: what fails because of it may be planned again at once.
  if (!request->corrupt_block_id().empty()) {
    repairs_->ReportCorrupt(request->node_id(), request->repair_id(), request->corrupt_block_id(),
                            request->status_message());
  }
  repairs_->ReportPart(request->node_id(), request->repair_id(), request->attempt(), status);
  repairs_->ReportLinks(request->node_id(), request->repair_id(), timings);
  return grpc::Status::OK;
}

absl::StatusOr<RepairRequest> CoordinatorServiceImpl::RequestOf(const v1::RepairTarget& target,
                                                                const std::string& requestor) {
  RepairRequest request;
  for (const std::string& id : target.block_ids()) {
    request.block_ids.push_back(sources_.BlockNamed(id));
  }
  request.hosts = {target.hosts().begin(), target.hosts().end()};
  request.offset = target.offset();
  request.bytes = target.bytes();
  request.scheme = target.scheme();
  request.slice_bytes = target.slice_bytes();
  request.requestor = requestor;
  request.background = target.background();
  request.prefer_direct = target.prefer_direct();
  if (target.rack().size() > NodeTable::kMaxNodeIdBytes) {
    return absl::InvalidArgumentError("the requestor's rack name is too long");
  }
  request.requestor_rack = target.rack();
  // A comparison with a NaN is false.
  if (const double speed = target.link_bytes_per_second(); !(speed >= 0 && speed < kFastestLink)) {
    return absl::InvalidArgumentError("the rate of the requestor's link is not a rate of a link");
  }
  request.requestor_bytes_per_second = target.link_bytes_per_second();
  ECPIPE_ASSIGN_OR_RETURN(request.transport,
                          TransportFromProto(target.transport(), transports_.chosen));
  ECPIPE_RETURN_IF_ERROR(CheckTransport(request.transport));
  if (!target.verify().empty()) {
    ECPIPE_ASSIGN_OR_RETURN(request.verify, VerificationNamed(target.verify()));
  }
  for (const std::string& id : request.block_ids) ECPIPE_RETURN_IF_ERROR(ValidateBlockId(id));
  if (target.has_facts()) {
    if (!target.claim().empty()) {
      return absl::InvalidArgumentError("the request describes its stripe twice");
    }
    ECPIPE_ASSIGN_OR_RETURN(request.facts, FactsFromProto(target.facts()));
    ECPIPE_RETURN_IF_ERROR(CheckFacts(*request.facts, &codes_));
  } else {
    ECPIPE_RETURN_IF_ERROR(FindFacts(target.claim(), &request));
  }
  return request;
}

absl::Status CoordinatorServiceImpl::CheckTransport(TransportKind transport) const {
  if (transport != TransportKind::kRedis || transports_.redis_allowed) return absl::OkStatus();
  return absl::PermissionDeniedError(
      "the transport redis is plain text, and this cluster has [tls]; use tcp, or set insecure = "
      "true in the coordinator's configuration if its network is private");
}

grpc::Status CoordinatorServiceImpl::BeginRepair(grpc::ServerContext* context,
                                                 const v1::BeginRepairRequest* request,
                                                 v1::BeginRepairResponse* response) {
  if (absl::Status may = CheckMayStore(context, request->target()); !may.ok()) return ToGrpc(may);
  absl::StatusOr<RepairRequest> wanted = RequestOf(request->target(), request->requestor());
  if (!wanted.ok()) return ToGrpc(wanted.status());
  wanted->features = FeaturesOf(request->features());
  wanted->cause = CauseOf(*wanted, repairs_->corrupt());
  if (!request->resume().corrupt_block_id().empty()) {
    repairs_->ReportCorrupt("", request->resume().repair_id(), request->resume().corrupt_block_id(),
                            request->resume().status_message());
  }
  const RepairCaller caller = CallerOf(context, *wanted);
  absl::StatusOr<RepairGrant> grant =
      request->has_resume()
          ? repairs_->ResumeRepair(*wanted, ResumeFromProto(request->resume()), caller)
          : repairs_->BeginRepair(*wanted, /*recovery_id=*/0, caller);
  if (!grant.ok()) return ToGrpc(grant.status());
  // A requestor that has given up meanwhile does not know the new repair: nobody else would end it.
  const bool unknown = !request->has_resume() && wanted->hosts.empty();
  if (unknown && context != nullptr && context->IsCancelled()) {
    repairs_->FinishRepair(grant->repair_id, {absl::CancelledError("the requestor gave up")});
  }
  grant->corrupt = repairs_->CorruptSources(grant->repair_id);
  GrantToProto(*grant, response);
  return grpc::Status::OK;
}

grpc::Status CoordinatorServiceImpl::CheckProgress(grpc::ServerContext*,
                                                   const v1::CheckProgressRequest* request,
                                                   v1::CheckProgressResponse* response) {
  const absl::StatusOr<ProgressAdvice> advice = repairs_->CheckProgress(
      request->repair_id(), request->attempt(), request->missing_bytes(), request->quiet());
  if (!advice.ok()) return ToGrpc(advice.status());
  response->set_replan(advice->replan);
  response->set_reason(advice->reason);
  return grpc::Status::OK;
}

grpc::Status CoordinatorServiceImpl::FinishRepair(grpc::ServerContext*,
                                                  const v1::FinishRepairRequest* request,
                                                  v1::FinishRepairResponse* response) {
  if (!request->corrupt_block_id().empty()) {
    repairs_->ReportCorrupt("", request->repair_id(), request->corrupt_block_id(),
                            request->status_message());
  }
  SourcesToProto(repairs_->CorruptSources(request->repair_id()), response->mutable_corrupt());
  repairs_->FinishRepair(request->repair_id(), VerdictFromProto(*request));
  return grpc::Status::OK;
}

grpc::Status CoordinatorServiceImpl::GetRepair(grpc::ServerContext*,
                                               const v1::GetRepairRequest* request,
                                               v1::GetRepairResponse* response) {
  const absl::StatusOr<RepairRecord> record = repairs_->Find(request->repair_id());
  if (!record.ok()) return ToGrpc(record.status());
  RepairToProto(*record, response->mutable_repair());
  return grpc::Status::OK;
}

grpc::Status CoordinatorServiceImpl::ExplainRepair(grpc::ServerContext*,
                                                   const v1::ExplainRepairRequest* request,
                                                   v1::ExplainRepairResponse* response) {
  absl::StatusOr<RepairRequest> wanted = RequestOf(request->target(), request->requestor());
  if (!wanted.ok()) return ToGrpc(wanted.status());
  wanted->features = FeaturesOf(request->features());
  const absl::StatusOr<PlannedRepair> planned = repairs_->Explain(*wanted);
  if (!planned.ok()) return ToGrpc(planned.status());
  response->set_scheme(planned->plan.scheme);
  response->set_stripe_id(planned->stripe.stripe_id);
  response->set_code(planned->stripe.code);
  response->mutable_grid()->set_offset(planned->plan.grid.offset);
  response->mutable_grid()->set_bytes(planned->plan.grid.bytes);
  response->mutable_grid()->set_slice_bytes(planned->plan.grid.slice_bytes);
  response->mutable_layout()->set_sub_blocks(planned->plan.layout.sub_blocks);
  response->mutable_layout()->set_unit_bytes(planned->plan.layout.unit_bytes);
  response->set_check_rows(planned->plan.check.rows);
  for (const int failed : planned->plan.failed) response->add_failed(failed);
  for (const PlanLane& lane : planned->plan.lanes) {
    v1::ExplainRepairResponse::Lane* added = response->add_lanes();
    RunsToProto(lane.slices, added->mutable_slices());
    for (const PlanHop& hop : lane.hops) HopToProto(hop, *planned, added->add_hops());
  }
  CostToProto(planned->cost, response->mutable_cost());
  for (const SchemePrediction& prediction : planned->predictions) {
    PredictionToProto(prediction, response->add_predictions());
  }
  return grpc::Status::OK;
}

grpc::Status CoordinatorServiceImpl::ListSchemes(grpc::ServerContext*,
                                                 const v1::ListSchemesRequest*,
                                                 v1::ListSchemesResponse* response) {
  SchemesToProto(DescribeSchemes(), response);
  return grpc::Status::OK;
}

grpc::Status CoordinatorServiceImpl::ProbeLinks(grpc::ServerContext*,
                                                const v1::ProbeLinksRequest* request,
                                                v1::ProbeLinksResponse* response) {
  std::vector<std::pair<std::string, std::string>> links;
  for (const v1::NodePair& pair : request->links()) links.emplace_back(pair.from(), pair.to());
  const absl::StatusOr<ProbeRound> round = prober_->Probe(
      links, request->bytes(),
      request->together() ? LinkProber::Kind::kWhatIsShared : LinkProber::Kind::kEachLink);
  if (!round.ok()) return ToGrpc(round.status());
  for (const ProbedLink& link : round->links) {
    v1::ProbeLinksResponse::Outcome* outcome = response->add_outcomes();
    outcome->set_bytes_per_second(link.bytes_per_second);
    outcome->set_error(link.status.ok() ? "" : StatusText(link.status));
  }
  response->set_rest_seconds(round->rest_seconds);
  return grpc::Status::OK;
}

grpc::Status CoordinatorServiceImpl::ListLinks(grpc::ServerContext*, const v1::ListLinksRequest*,
                                               v1::ListLinksResponse* response) {
  KnownLinks& speeds = repairs_->links();
  const TimePoint now = Clock::System().Now();
  const std::shared_ptr<const LinkTable> configured = speeds.configured();
  for (const LinkEstimate& estimate : speeds.Measured()) {
    if (!estimate.shared && configured != nullptr &&
        configured->contains({estimate.from, estimate.to})) {
      continue;
    }
    v1::ListLinksResponse::Link* link = response->add_links();
    link->mutable_pair()->set_from(estimate.from);
    link->mutable_pair()->set_to(estimate.to);
    link->set_bytes_per_second(estimate.bytes_per_second);
    link->set_samples(estimate.samples);
    link->set_age_seconds(Seconds(now - estimate.last));
    link->set_shared(estimate.shared);
  }
  if (configured == nullptr) return grpc::Status::OK;
  for (const auto& [pair, speed] : *configured) {
    v1::ListLinksResponse::Link* link = response->add_links();
    link->mutable_pair()->set_from(pair.first);
    link->mutable_pair()->set_to(pair.second);
    link->set_bytes_per_second(speed);
  }
  return grpc::Status::OK;
}

}  // namespace ecpipe
