// SPDX-License-Identifier: Apache-2.0
#include "requestor/coordinator_client.h"

#include <algorithm>

#include "common/blame.h"
#include "common/corrupt_block.h"
#include "common/status.h"
#include "common/tcp_socket.h"
#include "common/utf8_text.h"
#include "ecpipe/v1/coordinator.grpc.pb.h"
#include "requestor/cluster_status_client.h"
#include "requestor/helper_status_client.h"
#include "rpc/channel.h"
#include "rpc/facts_proto.h"
#include "rpc/part_proto.h"
#include "rpc/plan_proto.h"
#include "rpc/rpc_status.h"

namespace ecpipe {
namespace {

// Of a message, well below the 4 MiB that the coordinator takes; and of its transaction.
constexpr size_t kPutBytes = 2 << 20;
constexpr int kStripesInPut = 1000;
// A round of probes ends by itself before.
constexpr auto kProbeTimeout = std::chrono::seconds(120);
// The coordinator tries ports of nodes for two seconds at most.
constexpr auto kCheckTimeout = std::chrono::seconds(5);
// The coordinator asks helpers, and waits half a second for them.
constexpr auto kInspectTimeout = std::chrono::milliseconds(1500);
// Nobody who cancels waits for long for a coordinator that does not answer: ecpipe.h promises four
// seconds, and there may be two farewells (of a repair, and of the search for its corrupt block)
// after a call of kInspectTimeout.
constexpr Duration kFarewellTimeout = std::chrono::seconds(1);

absl::StatusOr<v1::Transport> TransportNamed(const std::string& name) {
  if (name.empty()) return v1::TRANSPORT_UNSPECIFIED;
  if (name == "tcp") return v1::TRANSPORT_TCP;
  if (name == "redis") return v1::TRANSPORT_REDIS;
  return absl::InvalidArgumentError("unknown transport '" + name + "'; known are tcp, redis");
}

absl::StatusOr<v1::RepairTarget> ToProto(const RepairTarget& target,
                                         const std::vector<std::string>& to) {
  v1::RepairTarget proto;
  for (const std::string& block_id : target.block_ids) proto.add_block_ids(block_id);
  for (const std::string& node : to) proto.add_to(node);
  proto.set_offset(target.offset);
  proto.set_bytes(target.bytes);
  proto.set_scheme(target.scheme);
  proto.set_slice_bytes(target.slice_bytes);
  proto.set_rack(target.rack);
  proto.set_verify(target.verify);
  proto.set_background(target.background);
  if (target.facts) *proto.mutable_facts() = FactsToProto(*target.facts);
  ECPIPE_ASSIGN_OR_RETURN(const v1::Transport transport, TransportNamed(target.transport));
  proto.set_transport(transport);
  return proto;
}

absl::StatusOr<v1::RecoverySpec> ToProto(const RecoverySpec& spec) {
  v1::RecoverySpec proto;
  proto.set_node_id(spec.node);
  for (const std::string& node : spec.to) proto.add_to(node);
  proto.set_scheme(spec.scheme);
  proto.set_policy(spec.policy);
  proto.set_slice_bytes(spec.slice_bytes);
  proto.set_streams_per_node(spec.streams_per_node);
  if (spec.delay_seconds >= 0) proto.set_delay_seconds(spec.delay_seconds);
  ECPIPE_ASSIGN_OR_RETURN(const v1::Transport transport, TransportNamed(spec.transport));
  proto.set_transport(transport);
  return proto;
}

RecoveryStatus RecoveryOf(const v1::ListRecoveriesResponse::Recovery& proto) {
  RecoveryStatus status;
  status.recovery_id = proto.recovery_id();
  status.spec.node = proto.spec().node_id();
  status.spec.to = {proto.spec().to().begin(), proto.spec().to().end()};
  status.spec.scheme = proto.spec().scheme();
  status.spec.policy = proto.spec().policy();
  status.spec.slice_bytes = proto.spec().slice_bytes();
  status.spec.transport = proto.spec().transport() == v1::TRANSPORT_REDIS ? "redis" : "tcp";
  status.spec.streams_per_node = proto.spec().streams_per_node();
  status.state = proto.state();
  status.listing = proto.listing();
  status.blocks = proto.blocks();
  status.bytes = proto.bytes();
  status.done_blocks = proto.done_blocks();
  status.done_bytes = proto.done_bytes();
  status.running_blocks = proto.running_blocks();
  status.waiting_blocks = proto.waiting_blocks();
  status.failed_blocks = proto.failed_blocks();
  status.bytes_per_second = proto.bytes_per_second();
  status.eta_seconds = proto.eta_seconds();
  status.begins_in_seconds = proto.begins_in_seconds();
  for (const auto& blocked : proto.blocked()) {
    status.blocked.push_back(
        {blocked.block_id(), blocked.reason(), blocked.attempts(), blocked.given_up()});
  }
  status.started_unix_ms = proto.started_unix_ms();
  status.ended_unix_ms = proto.ended_unix_ms();
  return status;
}

RepairCost CostOf(const v1::PlanCost& proto) {
  RepairCost cost;
  for (const auto& node : proto.nodes()) {
    cost.nodes.push_back({node.node_id(), node.up_bytes(), node.down_bytes()});
  }
  cost.busiest_link_bytes = proto.busiest_link_bytes();
  cost.total_bytes = proto.total_bytes();
  cost.depth = proto.depth();
  cost.expected_seconds = proto.expected_seconds();
  cost.timeslots = proto.timeslots();
  return cost;
}

absl::StatusOr<ExplainedRepair> ExplainedOf(const v1::ExplainRepairResponse& proto) {
  ExplainedRepair explained;
  explained.stripe_id = proto.stripe_id();
  explained.code = proto.code();
  explained.cost = CostOf(proto.cost());
  for (const auto& prediction : proto.predictions()) {
    explained.predictions.push_back({prediction.scheme(), prediction.expected_seconds(),
                                     prediction.timeslots(), prediction.cross_rack_bytes()});
  }
  ECPIPE_ASSIGN_OR_RETURN(explained.plan, PlanFromProto(proto));
  for (const auto& lane : proto.lanes()) {
    for (const auto& hop : lane.hops()) {
      if (hop.block_index() >= 0) explained.block_ids[hop.block_index()] = hop.block_id();
      if (!hop.rack().empty()) explained.racks[hop.node_id()] = hop.rack();
    }
  }
  return explained;
}

void StripeToProto(const StripeInfo& stripe, v1::Stripe* proto) {
  proto->set_stripe_id(stripe.stripe_id);
  proto->set_code(stripe.code);
  proto->set_block_bytes(stripe.block_bytes);
  for (const StripeBlock& block : stripe.blocks) {
    v1::BlockPlace* place = proto->add_blocks();
    place->set_block_id(block.block_id);
    place->set_node_id(block.node);
    place->set_sha256(block.sha256);
  }
}

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

StripeInfo StripeOf(const v1::Stripe& proto) {
  StripeInfo stripe{proto.stripe_id(), proto.code(), proto.block_bytes(), {}};
  for (const v1::BlockPlace& place : proto.blocks()) {
    stripe.blocks.push_back({place.block_id(), place.node_id(), place.sha256()});
  }
  return stripe;
}

// What begins a repair over a lost connection.
enum class WhenLost { kWaits, kFailsAtOnce };

struct GrpcConnection {
  GrpcConnection(const std::string& coordinator, const std::shared_ptr<TlsContext>& tls,
                 WhenLost when_lost)
      : address(coordinator),
        security(tls),
        channel(MakeChannel(address, security, Role::kCoordinator)),
        stub(v1::CoordinatorService::NewStub(channel)),
        reconnector(when_lost == WhenLost::kWaits ? nullptr
                                                  : std::make_unique<Reconnector>(channel)) {}

  const std::string address;
  const RpcSecurity security;
  const std::shared_ptr<grpc::Channel> channel;
  const std::unique_ptr<v1::CoordinatorService::Stub> stub;
  // Null: whoever begins a repair waits for a lost connection to come back.
  const std::unique_ptr<Reconnector> reconnector;
};

class CoordinatorGrpcClient : public CoordinatorApi {
 public:
  CoordinatorGrpcClient(std::shared_ptr<const GrpcConnection> connection, Duration timeout)
      : connection_(std::move(connection)), timeout_(timeout) {}

  absl::StatusOr<GrantedRepair> BeginRepair(const RepairTarget& target,
                                            const std::vector<std::string>& to,
                                            const std::string& requestor,
                                            const std::stop_token& stop) override {
    v1::BeginRepairRequest request;
    ECPIPE_ASSIGN_OR_RETURN(*request.mutable_target(), ToProto(target, to));
    request.set_requestor(requestor);
    if (connection_->reconnector == nullptr) AwaitCoordinator(stop);
    return Begin(request, stop);
  }

  absl::StatusOr<GrantedRepair> ResumeRepair(const RepairTarget& target,
                                             const std::string& requestor,
                                             const FailedAttempt& from,
                                             const std::stop_token& stop) override {
    v1::BeginRepairRequest request;
    ECPIPE_ASSIGN_OR_RETURN(*request.mutable_target(), ToProto(target, {}));
    request.set_requestor(requestor);
    v1::BeginRepairRequest::Resume* resume = request.mutable_resume();
    resume->set_repair_id(from.repair_id);
    resume->set_attempt(from.attempt);
    resume->mutable_grid()->set_offset(from.grid.offset);
    resume->mutable_grid()->set_bytes(from.grid.bytes);
    resume->mutable_grid()->set_slice_bytes(from.grid.slice_bytes);
    for (const SliceRun& run : from.missing) {
      v1::SliceRun* added = resume->add_missing();
      added->set_first(run.first);
      added->set_count(run.count);
      added->set_stride(run.stride);
    }
    resume->set_scheme(from.scheme);
    resume->set_status_code(static_cast<int>(from.failure.code()));
    resume->set_status_message(std::string(from.failure.message()));
    resume->set_blamed_node(BlamedBy(from.failure));
    resume->set_corrupt_block_id(CorruptBlockOf(from.failure));
    AwaitCoordinator(stop);
    return Begin(request, stop);
  }

  absl::StatusOr<RepairAdvice> InspectRepair(RepairId repair_id, uint32_t attempt,
                                             uint64_t missing_bytes, bool quiet) override {
    v1::InspectRepairRequest request;
    request.set_repair_id(repair_id);
    request.set_attempt(attempt);
    request.set_missing_bytes(missing_bytes);
    request.set_quiet(quiet);
    v1::InspectRepairResponse response;
    ECPIPE_RETURN_IF_ERROR(Call(&Stub::InspectRepair, request, &response, kInspectTimeout));
    return RepairAdvice{response.replan(), response.reason()};
  }

  absl::StatusOr<std::vector<StripeFacts::Source>> FinishRepair(
      RepairId repair_id, uint32_t attempt, const absl::Status& status, uint64_t verified_bytes,
      const std::stop_token& stop) override {
    v1::FinishRepairRequest request;
    request.set_repair_id(repair_id);
    request.set_attempt(attempt);
    request.set_status_code(static_cast<int>(status.code()));
    request.set_status_message(CleanText(std::string(status.message())));
    request.set_verified_bytes(verified_bytes);
    request.set_corrupt_block_id(CorruptBlockOf(status));
    v1::FinishRepairResponse response;
    const bool farewell = absl::IsCancelled(status) || stop.stop_requested();
    ECPIPE_RETURN_IF_ERROR(
        farewell
            ? Call(&Stub::FinishRepair, request, &response, std::min(timeout_, kFarewellTimeout))
            : Call(&Stub::FinishRepair, request, &response, timeout_, stop));
    return SourcesFromProto(response.corrupt());
  }

  absl::StatusOr<RepairStatus> Repair(RepairId repair_id, const std::stop_token& stop) override {
    v1::GetRepairRequest request;
    request.set_repair_id(repair_id);
    v1::GetRepairResponse response;
    ECPIPE_RETURN_IF_ERROR(Call(&Stub::GetRepair, request, &response, timeout_, stop));
    return RepairStatusOf(response.repair());
  }

  absl::StatusOr<ExplainedRepair> Explain(const RepairTarget& target,
                                          const std::vector<std::string>& to,
                                          const std::string& requestor) override {
    v1::ExplainRepairRequest request;
    ECPIPE_ASSIGN_OR_RETURN(*request.mutable_target(), ToProto(target, to));
    request.set_requestor(requestor);
    v1::ExplainRepairResponse response;
    ECPIPE_RETURN_IF_ERROR(Call(&Stub::ExplainRepair, request, &response));
    return ExplainedOf(response);
  }

  absl::Status PutStripes(const std::vector<StripeInfo>& stripes,
                          const ProgressFn& progress) override {
    for (size_t at = 0; at < stripes.size();) {
      v1::PutStripesRequest request;
      for (size_t bytes = 0; at < stripes.size() && bytes < kPutBytes; ++at) {
        if (request.stripes_size() == kStripesInPut) break;
        StripeToProto(stripes[at], request.add_stripes());
        bytes += request.stripes(request.stripes_size() - 1).ByteSizeLong();
      }
      v1::PutStripesResponse response;
      ECPIPE_RETURN_IF_ERROR(Call(&Stub::PutStripes, request, &response));
      if (progress) progress(at, stripes.size());
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<StripeInfo>> ListStripes(const std::string& after_stripe_id,
                                                      uint32_t limit) override {
    v1::ListStripesRequest request;
    request.set_after_stripe_id(after_stripe_id);
    request.set_limit(limit);
    v1::ListStripesResponse response;
    ECPIPE_RETURN_IF_ERROR(Call(&Stub::ListStripes, request, &response));
    std::vector<StripeInfo> stripes;
    for (const v1::Stripe& stripe : response.stripes()) stripes.push_back(StripeOf(stripe));
    return stripes;
  }

  absl::StatusOr<std::pair<StripeInfo, int>> LocateBlock(const std::string& block_id) override {
    v1::LocateBlockRequest request;
    request.set_block_id(block_id);
    v1::LocateBlockResponse response;
    ECPIPE_RETURN_IF_ERROR(Call(&Stub::LocateBlock, request, &response));
    return std::pair(StripeOf(response.stripe()), static_cast<int>(response.block_index()));
  }

  absl::StatusOr<uint64_t> BeginRecovery(const RecoverySpec& spec, bool even_if_live) override {
    v1::BeginRecoveryRequest request;
    ECPIPE_ASSIGN_OR_RETURN(*request.mutable_spec(), ToProto(spec));
    request.set_even_if_live(even_if_live);
    v1::BeginRecoveryResponse response;
    ECPIPE_RETURN_IF_ERROR(Call(&Stub::BeginRecovery, request, &response));
    return response.recovery_id();
  }

  absl::Status ChangeRecovery(uint64_t recovery_id, RecoveryChange change) override {
    v1::ChangeRecoveryRequest request;
    request.set_recovery_id(recovery_id);
    using Wire = v1::ChangeRecoveryRequest;
    request.set_change(change == RecoveryChange::kPause    ? Wire::CHANGE_PAUSE
                       : change == RecoveryChange::kResume ? Wire::CHANGE_RESUME
                                                           : Wire::CHANGE_CANCEL);
    v1::ChangeRecoveryResponse response;
    return Call(&Stub::ChangeRecovery, request, &response);
  }

  absl::StatusOr<std::vector<RecoveryStatus>> Recoveries(uint64_t recovery_id) override {
    v1::ListRecoveriesRequest request;
    request.set_recovery_id(recovery_id);
    v1::ListRecoveriesResponse response;
    ECPIPE_RETURN_IF_ERROR(Call(&Stub::ListRecoveries, request, &response));
    std::vector<RecoveryStatus> recoveries;
    for (const auto& recovery : response.recoveries()) recoveries.push_back(RecoveryOf(recovery));
    return recoveries;
  }

  absl::StatusOr<ProbeReport> ProbeLinks(
      const std::vector<std::pair<std::string, std::string>>& links, uint64_t bytes) override {
    v1::ProbeLinksRequest request;
    for (const auto& [from, to] : links) {
      v1::NodePair* pair = request.add_links();
      pair->set_from(from);
      pair->set_to(to);
    }
    request.set_bytes(bytes);
    v1::ProbeLinksResponse response;
    ECPIPE_RETURN_IF_ERROR(Call(&Stub::ProbeLinks, request, &response, kProbeTimeout));
    ProbeReport report;
    for (const auto& outcome : response.outcomes()) {
      report.outcomes.push_back({outcome.bytes_per_second(), outcome.error()});
    }
    report.rest_seconds = response.rest_seconds();
    return report;
  }

  absl::StatusOr<std::vector<LinkSpeed>> Links() override {
    v1::ListLinksResponse response;
    ECPIPE_RETURN_IF_ERROR(Call(&Stub::ListLinks, v1::ListLinksRequest(), &response));
    std::vector<LinkSpeed> links;
    for (const auto& link : response.links()) {
      links.push_back({link.pair().from(), link.pair().to(), link.bytes_per_second(),
                       link.samples(), link.age_seconds()});
    }
    return links;
  }

  absl::StatusOr<ClusterStatus> Status() override {
    v1::GetStatusResponse response;
    ECPIPE_RETURN_IF_ERROR(Call(&Stub::GetStatus, v1::GetStatusRequest(), &response));
    ClusterStatus status = ClusterStatusOf(response);
    AskHelpers(connection_->security, &status.nodes);
    AskAboutSilent(&status.nodes);
    return status;
  }

 private:
  using Stub = v1::CoordinatorService::Stub;

  // The coordinator says whether it reaches nodes that do not answer this process. If it does not
  // say, the nodes stay unchecked: what is known is worth more than an error.
  void AskAboutSilent(std::vector<NodeStatus>* nodes) {
    v1::GetStatusRequest request;
    for (const NodeStatus& node : *nodes) {
      if (node.state == "live" && !node.answers) request.add_check_nodes(node.node);
    }
    if (request.check_nodes().empty()) return;
    v1::GetStatusResponse response;
    const Duration timeout = std::min<Duration>(timeout_, kCheckTimeout);
    if (!Call(&Stub::GetStatus, request, &response, timeout).ok()) return;
    AddPortChecks(response, nodes);
  }

  absl::StatusOr<GrantedRepair> Begin(const v1::BeginRepairRequest& request,
                                      const std::stop_token& stop) {
    v1::BeginRepairResponse response;
    ECPIPE_RETURN_IF_ERROR(CallAtOnce(&Stub::BeginRepair, request, &response, timeout_, stop));
    GrantedRepair granted;
    granted.repair_id = response.repair_id();
    if (request.target().to().empty()) {
      ECPIPE_ASSIGN_OR_RETURN(granted.part, PartFromProto(response.part()));
    }
    granted.scheme = response.scheme();
    granted.stripe_id = response.stripe_id();
    ECPIPE_ASSIGN_OR_RETURN(granted.block_lengths, LengthsOf(request.target(), response));
    granted.checksum = ChecksumFromProto(response.checksum());
    granted.corrupt = SourcesFromProto(response.corrupt());
    granted.cost = CostOf(response.cost());
    return granted;
  }

  template <typename Method, typename Request, typename Response>
  absl::Status Call(Method method, const Request& request, Response* response) {
    return Call(method, request, response, timeout_);
  }
  template <typename Method, typename Request, typename Response>
  absl::Status Call(Method method, const Request& request, Response* response, Duration timeout,
                    const std::stop_token& stop = {}) {
    AwaitCoordinator(stop);
    return CallAtOnce(method, request, response, timeout, stop);
  }
  void AwaitCoordinator(const std::stop_token& stop) {
    AwaitReconnection(connection_->channel.get(), std::chrono::milliseconds(200), stop);
  }
  // Does not wait for a lost connection to come back; somebody else may.
  template <typename Method, typename Request, typename Response>
  absl::Status CallAtOnce(Method method, const Request& request, Response* response,
                          Duration timeout, const std::stop_token& stop) {
    grpc::ClientContext context;
    SetTimeout(&context, timeout);
    grpc::Status status;
    {
      // Also of a call that has not begun yet.
      const std::stop_callback on_stop(stop, [&context] { context.TryCancel(); });
      status = (connection_->stub.get()->*method)(&context, request, response);
    }
    const bool lost = status.error_code() == grpc::StatusCode::UNAVAILABLE;
    if (lost && connection_->reconnector != nullptr) connection_->reconnector->Begin();
    if (stop.stop_requested() && !status.ok()) {
      return absl::CancelledError("the requestor gave up");
    }
    // What the coordinator itself says needs no address before it.
    const bool transport_trouble = status.error_code() == grpc::StatusCode::UNAVAILABLE ||
                                   status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED ||
                                   status.error_code() == grpc::StatusCode::CANCELLED;
    if (transport_trouble) return FromGrpc(status, "coordinator " + connection_->address);
    return StatusFromWire(status.error_code(), status.error_message());
  }

  const std::shared_ptr<const GrpcConnection> connection_;  // shared by the clients that use it
  const Duration timeout_;
};

class SharedConnection : public CoordinatorConnection {
 public:
  explicit SharedConnection(std::shared_ptr<const GrpcConnection> connection)
      : connection_(std::move(connection)) {}

  std::unique_ptr<CoordinatorApi> Client(Duration timeout) override {
    return std::make_unique<CoordinatorGrpcClient>(connection_, timeout);
  }

 private:
  const std::shared_ptr<const GrpcConnection> connection_;  // shared with its clients
};

}  // namespace

absl::StatusOr<std::shared_ptr<CoordinatorConnection>> CoordinatorConnection::Open(
    const std::string& address, const std::shared_ptr<TlsContext>& tls) {
  ECPIPE_RETURN_IF_ERROR(ParseHostPort(address).status());
  return std::make_shared<SharedConnection>(
      std::make_shared<const GrpcConnection>(address, tls, WhenLost::kFailsAtOnce));
}

absl::StatusOr<std::unique_ptr<CoordinatorApi>> MakeCoordinatorClient(
    const std::string& address, Duration timeout, const std::shared_ptr<TlsContext>& tls) {
  ECPIPE_RETURN_IF_ERROR(ParseHostPort(address).status());
  return std::make_unique<CoordinatorGrpcClient>(
      std::make_shared<const GrpcConnection>(address, tls, WhenLost::kWaits), timeout);
}

}  // namespace ecpipe
