// SPDX-License-Identifier: Apache-2.0
#include "requestor/catalog/catalog_client.h"

#include <utility>

#include "base/status.h"
#include "ecpipe/v1/coordinator.grpc.pb.h"
#include "net/tcp_socket.h"
#include "rpc/channel.h"
#include "rpc/convert/recovery_proto.h"
#include "rpc/convert/stripe_proto.h"
#include "rpc/rpc_status.h"

namespace ecpipe {
namespace {

// More than any node here has: a coordinator that goes on and on is not listened to.
constexpr size_t kMaxNodeBlocks = 50'000'000;
// Of a call; the coordinator takes 4 MiB and 10,000 stripes.
constexpr size_t kTryBytes = 2 << 20;
constexpr int kStripesInTry = 1000;

BlockVerdict VerdictOf(v1::CheckBlocksResponse::Verdict verdict) {
  switch (verdict) {
    case v1::CheckBlocksResponse::VERDICT_THERE:
      return BlockVerdict::kThere;
    case v1::CheckBlocksResponse::VERDICT_MISSING:
      return BlockVerdict::kMissing;
    case v1::CheckBlocksResponse::VERDICT_WRONG_LENGTH:
      return BlockVerdict::kWrongLength;
    case v1::CheckBlocksResponse::VERDICT_UNREADABLE:
      return BlockVerdict::kUnreadable;
    case v1::CheckBlocksResponse::VERDICT_UNKNOWN:
      return BlockVerdict::kUnknown;
    case v1::CheckBlocksResponse::VERDICT_CORRUPT:
      return BlockVerdict::kCorrupt;
    default:
      return BlockVerdict::kNotAsked;
  }
}

class CatalogClient : public CatalogApi {
 public:
  CatalogClient(std::string address, Duration timeout, const std::shared_ptr<TlsContext>& tls)
      : address_(std::move(address)),
        timeout_(timeout),
        stub_(v1::CoordinatorService::NewStub(
            MakeChannel(address_, RpcSecurity(tls), Role::kCoordinator))) {}

  absl::StatusOr<std::vector<std::string>> NodeBlocks(const std::string& node) override {
    std::vector<std::string> blocks;
    v1::ListNodeBlocksRequest request;
    request.set_node_id(node);
    while (true) {
      v1::ListNodeBlocksResponse response;
      ECPIPE_RETURN_IF_ERROR(Call(&Stub::ListNodeBlocks, request, &response));
      blocks.insert(blocks.end(), response.block_ids().begin(), response.block_ids().end());
      if (response.next().empty()) return blocks;
      if (response.next() == request.page() || blocks.size() > kMaxNodeBlocks) {
        return absl::InternalError("the coordinator's list of the node's blocks does not end");
      }
      request.set_page(response.next());
    }
  }

  absl::StatusOr<std::vector<BlockCheck>> CheckBlocks(
      const std::vector<std::string>& block_ids) override {
    v1::CheckBlocksRequest request;
    for (const std::string& block_id : block_ids) request.add_block_ids(block_id);
    v1::CheckBlocksResponse response;
    ECPIPE_RETURN_IF_ERROR(Call(&Stub::CheckBlocks, request, &response));
    std::vector<BlockCheck> checks;
    for (const auto& block : response.blocks()) {
      checks.push_back(
          {block.block_id(), block.node_id(), VerdictOf(block.verdict()), block.detail()});
    }
    if (checks.size() == block_ids.size()) return checks;
    return absl::InternalError("the coordinator's answer has another number of blocks");
  }

  absl::StatusOr<PutCounts> TryPut(const std::vector<Stripe>& stripes) override {
    PutCounts counts;
    for (size_t at = 0; at < stripes.size();) {
      v1::DryRunRequest request;
      v1::PutStripesRequest* const put = request.mutable_put_stripes();
      for (size_t bytes = 0; at < stripes.size() && bytes < kTryBytes; ++at) {
        if (put->stripes_size() == kStripesInTry) break;
        StripeToProto(stripes[at], put->add_stripes());
        bytes += put->stripes(put->stripes_size() - 1).ByteSizeLong();
      }
      v1::DryRunResponse response;
      ECPIPE_RETURN_IF_ERROR(Call(&Stub::DryRun, request, &response));
      counts.added += response.added_stripes();
      counts.replaced += response.replaced_stripes();
      counts.unchanged += response.unchanged_stripes();
    }
    return counts;
  }

  absl::Status RemoveStripes(const std::vector<std::string>& stripe_ids) override {
    v1::RemoveStripesResponse response;
    return Call(&Stub::RemoveStripes, RemovalOf(stripe_ids), &response);
  }

  absl::Status ForgetNode(const std::string& node, bool force) override {
    v1::ForgetNodeResponse response;
    return Call(&Stub::ForgetNode, ForgettingOf(node, force), &response);
  }

  absl::StatusOr<ExtraCopyPage> ExtraCopies(const std::string& node,
                                            const std::string& page) override {
    v1::ListExtraCopiesRequest request;
    request.set_node_id(node);
    request.set_page(page);
    v1::ListExtraCopiesResponse response;
    ECPIPE_RETURN_IF_ERROR(Call(&Stub::ListExtraCopies, request, &response));
    if (!page.empty() && response.next() == page) {
      return absl::InternalError("the coordinator's list of the node's copies does not end");
    }
    return ExtraCopyPage{ViewsOf(response.copies()), response.next()};
  }

  absl::StatusOr<std::vector<ExtraCopyView>> RemoveExtraCopies(
      const std::string& node, const std::vector<ExtraCopyView>& copies) override {
    v1::RemoveExtraCopiesRequest request;
    request.set_node_id(node);
    for (const ExtraCopyView& copy : copies) {
      v1::ExtraCopy* const added = request.add_copies();
      added->set_block_id(copy.block_id);
      added->set_bytes(copy.bytes);
      added->set_version(copy.version);
    }
    v1::RemoveExtraCopiesResponse response;
    // The coordinator has blocks read for some seconds, and waits for those that it has begun: ten
    // minutes for one on a disk that fails, as in HelperClient.
    constexpr auto kReadTimeout = std::chrono::minutes(11);
    ECPIPE_RETURN_IF_ERROR(CallWithin(kReadTimeout, &Stub::RemoveExtraCopies, request, &response));
    std::vector<ExtraCopyView> views = ViewsOf(response.copies());
    if (views.size() == copies.size()) return views;
    return absl::InternalError("the coordinator's answer has another number of copies");
  }

  absl::StatusOr<uint64_t> DrainNode(const RecoveryRequest& wanted) override {
    v1::DrainNodeRequest request;
    *request.mutable_request() = RecoveryRequestToProto(wanted);
    v1::DrainNodeResponse response;
    ECPIPE_RETURN_IF_ERROR(Call(&Stub::DrainNode, request, &response));
    return response.recovery_id();
  }

  absl::StatusOr<uint64_t> MaintainNode(const std::string& node, double seconds) override {
    v1::MaintainNodeResponse response;
    ECPIPE_RETURN_IF_ERROR(Call(&Stub::MaintainNode, MaintenanceOf(node, seconds), &response));
    return response.recovery_id();
  }

  absl::Status ReadmitNode(const std::string& node) override {
    v1::ReadmitNodeRequest request;
    request.set_node_id(node);
    v1::ReadmitNodeResponse response;
    return Call(&Stub::ReadmitNode, request, &response);
  }

  Effects WouldDrain(const RecoveryRequest& request) override {
    v1::DryRunRequest dry_run;
    *dry_run.mutable_drain_node()->mutable_request() = RecoveryRequestToProto(request);
    return DryRun(dry_run);
  }

  Effects WouldMaintain(const std::string& node, double seconds) override {
    v1::DryRunRequest dry_run;
    *dry_run.mutable_maintain_node() = MaintenanceOf(node, seconds);
    return DryRun(dry_run);
  }

  Effects WouldReadmit(const std::string& node) override {
    v1::DryRunRequest dry_run;
    dry_run.mutable_readmit_node()->set_node_id(node);
    return DryRun(dry_run);
  }

  Effects WouldRecover(const RecoveryRequest& request, IfLive if_live) override {
    v1::DryRunRequest dry_run;
    v1::BeginRecoveryRequest& wanted = *dry_run.mutable_begin_recovery();
    *wanted.mutable_request() = RecoveryRequestToProto(request);
    wanted.set_even_if_live(if_live == IfLive::kRebuildAll);
    wanted.set_missing_only(if_live == IfLive::kRebuildMissing);
    return DryRun(dry_run);
  }

  Effects WouldChange(uint64_t recovery_id, RecoveryChange change) override {
    using Wire = v1::ChangeRecoveryRequest;
    v1::DryRunRequest dry_run;
    dry_run.mutable_change_recovery()->set_recovery_id(recovery_id);
    dry_run.mutable_change_recovery()->set_change(
        change == RecoveryChange::kPause    ? Wire::CHANGE_PAUSE
        : change == RecoveryChange::kResume ? Wire::CHANGE_RESUME
                                            : Wire::CHANGE_CANCEL);
    return DryRun(dry_run);
  }

  Effects WouldSetLimits(const LimitsChange& change) override {
    v1::DryRunRequest dry_run;
    v1::SetLimitsRequest& limits = *dry_run.mutable_set_limits();
    limits.set_node_id(change.node);
    limits.set_reset(change.reset);
    if (change.repair_bytes_per_second) {
      limits.set_repair_bytes_per_second(*change.repair_bytes_per_second);
    }
    if (change.max_running) limits.set_max_running(*change.max_running);
    if (change.max_sessions) limits.set_max_sessions(*change.max_sessions);
    return DryRun(dry_run);
  }

  Effects WouldClear(const std::string& block_id) override {
    v1::DryRunRequest dry_run;
    dry_run.mutable_clear_corrupt_block()->set_block_id(block_id);
    return DryRun(dry_run);
  }

  Effects WouldRemove(const std::vector<std::string>& stripe_ids) override {
    v1::DryRunRequest dry_run;
    *dry_run.mutable_remove_stripes() = RemovalOf(stripe_ids);
    return DryRun(dry_run);
  }

  Effects WouldForget(const std::string& node, bool force) override {
    v1::DryRunRequest dry_run;
    *dry_run.mutable_forget_node() = ForgettingOf(node, force);
    return DryRun(dry_run);
  }

 private:
  using Stub = v1::CoordinatorService::Stub;

  static v1::RemoveStripesRequest RemovalOf(const std::vector<std::string>& stripe_ids) {
    v1::RemoveStripesRequest request;
    for (const std::string& stripe_id : stripe_ids) request.add_stripe_id(stripe_id);
    return request;
  }

  static v1::MaintainNodeRequest MaintenanceOf(const std::string& node, double seconds) {
    v1::MaintainNodeRequest request;
    request.set_node_id(node);
    request.set_seconds(seconds);
    return request;
  }

  static v1::ForgetNodeRequest ForgettingOf(const std::string& node, bool force) {
    v1::ForgetNodeRequest request;
    request.set_node_id(node);
    request.set_force(force);
    return request;
  }

  static std::vector<ExtraCopyView> ViewsOf(
      const google::protobuf::RepeatedPtrField<v1::ExtraCopy>& copies) {
    std::vector<ExtraCopyView> views;
    for (const v1::ExtraCopy& copy : copies) {
      views.push_back({copy.block_id(), copy.bytes(), copy.version(), copy.holder(),
                       copy.kept_because(), copy.ask_again(), copy.age_seconds()});
    }
    return views;
  }

  Effects DryRun(const v1::DryRunRequest& request) {
    v1::DryRunResponse response;
    ECPIPE_RETURN_IF_ERROR(Call(&Stub::DryRun, request, &response));
    return std::vector<std::string>(response.effects().begin(), response.effects().end());
  }

  template <typename Method, typename Request, typename Response>
  absl::Status Call(Method method, const Request& request, Response* response) {
    return CallWithin(timeout_, method, request, response);
  }

  template <typename Method, typename Request, typename Response>
  absl::Status CallWithin(Duration timeout, Method method, const Request& request,
                          Response* response) {
    grpc::ClientContext context;
    SetTimeout(&context, timeout);
    const grpc::Status status = (stub_.get()->*method)(&context, request, response);
    if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
      return absl::UnimplementedError("coordinator " + address_ +
                                      " is too old for this call, and has done nothing");
    }
    return FromGrpc(status, "coordinator " + address_);
  }

  const std::string address_;
  const Duration timeout_;
  const std::unique_ptr<Stub> stub_;
};

}  // namespace

const char* BlockVerdictName(BlockVerdict verdict) {
  switch (verdict) {
    case BlockVerdict::kThere:
      return "there";
    case BlockVerdict::kMissing:
      return "missing";
    case BlockVerdict::kWrongLength:
      return "wrong length";
    case BlockVerdict::kUnreadable:
      return "unreadable";
    case BlockVerdict::kNotAsked:
      return "not asked";
    case BlockVerdict::kUnknown:
      return "unknown";
    case BlockVerdict::kCorrupt:
      return "corrupt";
  }
  return "not asked";
}

absl::StatusOr<std::unique_ptr<CatalogApi>> CatalogApi::Connect(
    const std::string& coordinator, Duration timeout, const std::shared_ptr<TlsContext>& tls) {
  ECPIPE_RETURN_IF_ERROR(ParseHostPort(coordinator).status());
  return std::make_unique<CatalogClient>(coordinator, timeout, tls);
}

}  // namespace ecpipe
