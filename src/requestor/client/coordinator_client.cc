// SPDX-License-Identifier: Apache-2.0
#include "requestor/client/coordinator_client.h"

#include <algorithm>

#include "base/status.h"
#include "ecpipe/v1/coordinator.grpc.pb.h"
#include "model/plan/features.h"
#include "net/tcp_socket.h"
#include "requestor/client/cluster_status_client.h"
#include "requestor/client/helper_status_client.h"
#include "rpc/channel.h"
#include "rpc/convert/facts_proto.h"
#include "rpc/convert/node_loss_proto.h"
#include "rpc/convert/part_proto.h"
#include "rpc/convert/plan_proto.h"
#include "rpc/convert/recovery_proto.h"
#include "rpc/convert/repair_proto.h"
#include "rpc/convert/scheme_proto.h"
#include "rpc/convert/stripe_proto.h"
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
constexpr auto kCheckProgressTimeout = std::chrono::milliseconds(1500);
// Nobody who cancels waits for long for a coordinator that does not answer: ecpipe.h promises four
// seconds, and there may be two farewells (of a repair, and of the search for its corrupt block)
// after a call of kCheckProgressTimeout.
constexpr Duration kFarewellTimeout = std::chrono::seconds(1);

absl::StatusOr<v1::RepairTarget> ToProto(const RepairTarget& target,
                                         const std::vector<std::string>& hosts) {
  v1::RepairTarget proto;
  for (const std::string& block_id : target.block_ids) proto.add_block_ids(block_id);
  for (const std::string& node : hosts) proto.add_hosts(node);
  proto.set_offset(target.offset);
  proto.set_bytes(target.bytes);
  proto.set_scheme(target.scheme);
  proto.set_slice_bytes(target.slice_bytes);
  proto.set_rack(target.rack);
  proto.set_link_bytes_per_second(target.link_mbit * 1e6 / 8);
  proto.set_verify(target.verify);
  proto.set_background(target.background);
  proto.set_prefer_direct(target.prefer_direct);
  if (target.facts) *proto.mutable_facts() = FactsToProto(*target.facts);
  proto.set_claim(target.claim);
  if (!target.transport.empty()) {
    ECPIPE_ASSIGN_OR_RETURN(const TransportKind transport, TransportNamed(target.transport));
    proto.set_transport(TransportToProto(transport));
  }
  return proto;
}

template <typename Request>
void AddFeatures(Request* request) {
  for (const std::string& name : FeatureNames(OwnFeatures())) request->add_features(name);
}

absl::StatusOr<ExplainedRepair> ExplainedOf(const v1::ExplainRepairResponse& proto) {
  ExplainedRepair explained;
  explained.stripe_id = proto.stripe_id();
  explained.code = proto.code();
  explained.cost = CostFromProto(proto.cost());
  for (const auto& prediction : proto.predictions()) {
    explained.predictions.push_back(PredictionFromProto(prediction));
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

ClusterLimitsView::Node NodeLimitsOf(const v1::GetLimitsResponse::Node& proto) {
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

  absl::StatusOr<RepairGrant> BeginRepair(const RepairTarget& target,
                                          const std::vector<std::string>& hosts,
                                          const std::string& requestor,
                                          const std::stop_token& stop) override {
    v1::BeginRepairRequest request;
    ECPIPE_ASSIGN_OR_RETURN(*request.mutable_target(), ToProto(target, hosts));
    request.set_requestor(requestor);
    AddFeatures(&request);
    if (connection_->reconnector == nullptr) AwaitCoordinator(stop);
    return Begin(request, stop);
  }

  absl::StatusOr<RepairGrant> ResumeRepair(const RepairTarget& target, const std::string& requestor,
                                           const ResumePoint& from,
                                           const std::stop_token& stop) override {
    v1::BeginRepairRequest request;
    ECPIPE_ASSIGN_OR_RETURN(*request.mutable_target(), ToProto(target, {}));
    request.set_requestor(requestor);
    AddFeatures(&request);
    ResumeToProto(from, request.mutable_resume());
    AwaitCoordinator(stop);
    return Begin(request, stop);
  }

  absl::StatusOr<ProgressAdvice> CheckProgress(RepairId repair_id, uint32_t attempt,
                                               uint64_t missing_bytes, bool quiet,
                                               const std::stop_token& stop) override {
    v1::CheckProgressRequest request;
    request.set_repair_id(repair_id);
    request.set_attempt(attempt);
    request.set_missing_bytes(missing_bytes);
    request.set_quiet(quiet);
    v1::CheckProgressResponse response;
    ECPIPE_RETURN_IF_ERROR(
        Call(&Stub::CheckProgress, request, &response, kCheckProgressTimeout, stop));
    return ProgressAdvice{response.replan(), response.reason()};
  }

  absl::StatusOr<std::vector<StripeFacts::Source>> FinishRepair(
      RepairId repair_id, uint32_t attempt, const RepairVerdict& verdict,
      const std::stop_token& stop) override {
    v1::FinishRepairRequest request;
    request.set_repair_id(repair_id);
    request.set_attempt(attempt);
    VerdictToProto(verdict, &request);
    v1::FinishRepairResponse response;
    const bool farewell = absl::IsCancelled(verdict.status) || stop.stop_requested();
    ECPIPE_RETURN_IF_ERROR(
        farewell
            ? Call(&Stub::FinishRepair, request, &response, std::min(timeout_, kFarewellTimeout))
            : Call(&Stub::FinishRepair, request, &response, timeout_, stop));
    return SourcesFromProto(response.corrupt());
  }

  absl::StatusOr<RepairRecord> Repair(RepairId repair_id, const std::stop_token& stop) override {
    v1::GetRepairRequest request;
    request.set_repair_id(repair_id);
    v1::GetRepairResponse response;
    ECPIPE_RETURN_IF_ERROR(Call(&Stub::GetRepair, request, &response, timeout_, stop));
    return RepairFromProto(response.repair());
  }

  absl::StatusOr<ExplainedRepair> Explain(const RepairTarget& target,
                                          const std::vector<std::string>& hosts,
                                          const std::string& requestor) override {
    v1::ExplainRepairRequest request;
    ECPIPE_ASSIGN_OR_RETURN(*request.mutable_target(), ToProto(target, hosts));
    request.set_requestor(requestor);
    AddFeatures(&request);
    v1::ExplainRepairResponse response;
    ECPIPE_RETURN_IF_ERROR(Call(&Stub::ExplainRepair, request, &response));
    return ExplainedOf(response);
  }

  absl::Status PutStripes(const std::vector<Stripe>& stripes, const ProgressFn& progress) override {
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

  absl::StatusOr<ListedStripes> ListStripes(const std::string& after_stripe_id,
                                            uint32_t limit) override {
    v1::ListStripesRequest request;
    request.set_after_stripe_id(after_stripe_id);
    request.set_limit(limit);
    v1::ListStripesResponse response;
    ECPIPE_RETURN_IF_ERROR(Call(&Stub::ListStripes, request, &response));
    ListedStripes listed;
    for (const v1::Stripe& stripe : response.stripes()) {
      listed.stripes.push_back(StripeFromProto(stripe));
    }
    listed.damaged.assign(response.damaged_stripe_id().begin(), response.damaged_stripe_id().end());
    listed.damaged_count = response.damaged_stripes();
    return listed;
  }

  absl::StatusOr<BlockLocation> LocateBlock(const std::string& block_id) override {
    v1::LocateBlockRequest request;
    request.set_block_id(block_id);
    v1::LocateBlockResponse response;
    ECPIPE_RETURN_IF_ERROR(Call(&Stub::LocateBlock, request, &response));
    return BlockLocation{StripeFromProto(response.stripe()),
                         static_cast<int>(response.block_index())};
  }

  absl::StatusOr<uint64_t> BeginRecovery(const RecoveryRequest& wanted, IfLive if_live) override {
    v1::BeginRecoveryRequest request;
    *request.mutable_request() = RecoveryRequestToProto(wanted);
    request.set_even_if_live(if_live == IfLive::kRebuildAll);
    request.set_missing_only(if_live == IfLive::kRebuildMissing);
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

  absl::StatusOr<std::vector<RecoveryView>> Recoveries(uint64_t recovery_id) override {
    v1::ListRecoveriesRequest request;
    request.set_recovery_id(recovery_id);
    v1::ListRecoveriesResponse response;
    ECPIPE_RETURN_IF_ERROR(Call(&Stub::ListRecoveries, request, &response));
    std::vector<RecoveryView> recoveries;
    for (const auto& proto : response.recoveries()) {
      ECPIPE_ASSIGN_OR_RETURN(RecoveryView recovery, RecoveryFromProto(proto));
      recoveries.push_back(std::move(recovery));
    }
    return recoveries;
  }

  absl::StatusOr<ProbeReport> ProbeLinks(
      const std::vector<std::pair<std::string, std::string>>& links, uint64_t bytes,
      ProbeKind kind) override {
    v1::ProbeLinksRequest request;
    for (const auto& [from, to] : links) {
      v1::NodePair* pair = request.add_links();
      pair->set_from(from);
      pair->set_to(to);
    }
    request.set_bytes(bytes);
    request.set_together(kind == ProbeKind::kWhatIsShared);
    v1::ProbeLinksResponse response;
    ECPIPE_RETURN_IF_ERROR(Call(&Stub::ProbeLinks, request, &response, kProbeTimeout));
    ProbeReport report;
    for (const auto& outcome : response.outcomes()) {
      report.outcomes.push_back({outcome.bytes_per_second(), outcome.error()});
    }
    report.rest_seconds = response.rest_seconds();
    return report;
  }

  absl::StatusOr<std::vector<SchemeInfo>> Schemes() override {
    v1::ListSchemesResponse response;
    const absl::Status status = Call(&Stub::ListSchemes, v1::ListSchemesRequest(), &response);
    if (absl::IsUnimplemented(status)) {
      return absl::UnimplementedError("the coordinator at " + connection_->address +
                                      " is older than this command and cannot list its schemes; "
                                      "upgrade it, or see docs/schemes.md");
    }
    ECPIPE_RETURN_IF_ERROR(status);
    return SchemesFromProto(response);
  }

  absl::StatusOr<std::vector<LinkSpeed>> Links() override {
    v1::ListLinksResponse response;
    ECPIPE_RETURN_IF_ERROR(Call(&Stub::ListLinks, v1::ListLinksRequest(), &response));
    std::vector<LinkSpeed> links;
    for (const auto& link : response.links()) {
      links.push_back({link.pair().from(), link.pair().to(), link.bytes_per_second(),
                       link.samples(), link.age_seconds(), link.shared()});
    }
    return links;
  }

  absl::StatusOr<std::optional<NodeLoss>> LossOf(const std::string& node) override {
    v1::GetNodeLossRequest request;
    request.set_node_id(node);
    v1::GetNodeLossResponse response;
    ECPIPE_RETURN_IF_ERROR(Call(&Stub::GetNodeLoss, request, &response));
    return NodeLossFromProto(node, response);
  }

  absl::StatusOr<ClusterLimitsView> Limits() override {
    v1::GetLimitsResponse response;
    ECPIPE_RETURN_IF_ERROR(Call(&Stub::GetLimits, v1::GetLimitsRequest(), &response));
    ClusterLimitsView view;
    view.repair_bytes_per_second = response.cluster().repair_bytes_per_second();
    view.rate_is_set = response.cluster().rate_is_set();
    view.max_running = response.cluster().max_running();
    view.max_running_is_set = response.cluster().max_running_is_set();
    for (const auto& node : response.nodes()) view.nodes.push_back(NodeLimitsOf(node));
    return view;
  }

  absl::Status SetLimits(const LimitsChange& change) override {
    v1::SetLimitsRequest request;
    request.set_node_id(change.node);
    request.set_reset(change.reset);
    if (change.repair_bytes_per_second) {
      request.set_repair_bytes_per_second(*change.repair_bytes_per_second);
    }
    if (change.max_running) request.set_max_running(*change.max_running);
    if (change.max_sessions) request.set_max_sessions(*change.max_sessions);
    v1::SetLimitsResponse response;
    return Call(&Stub::SetLimits, request, &response);
  }

  absl::StatusOr<std::vector<CorruptBlockStatus>> CorruptBlocks() override {
    v1::ListCorruptBlocksResponse response;
    ECPIPE_RETURN_IF_ERROR(
        Call(&Stub::ListCorruptBlocks, v1::ListCorruptBlocksRequest(), &response));
    std::vector<CorruptBlockStatus> blocks;
    for (const v1::CorruptBlock& block : response.blocks()) {
      blocks.push_back(CorruptStatusOf(block));
    }
    return blocks;
  }

  absl::Status ClearCorruptBlock(const std::string& block_id) override {
    v1::ClearCorruptBlockRequest request;
    request.set_block_id(block_id);
    v1::ClearCorruptBlockResponse response;
    return Call(&Stub::ClearCorruptBlock, request, &response);
  }

  absl::Status CheckCorruptBlock(const std::string& block_id) override {
    v1::CheckCorruptBlockRequest request;
    request.set_block_id(block_id);
    v1::CheckCorruptBlockResponse response;
    return Call(&Stub::CheckCorruptBlock, request, &response);
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

  absl::StatusOr<RepairGrant> Begin(const v1::BeginRepairRequest& request,
                                    const std::stop_token& stop) {
    v1::BeginRepairResponse response;
    ECPIPE_RETURN_IF_ERROR(CallAtOnce(&Stub::BeginRepair, request, &response, timeout_, stop));
    return GrantFromProto(response, request.target());
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
