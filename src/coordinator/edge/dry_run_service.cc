// SPDX-License-Identifier: Apache-2.0
// CoordinatorService: what calls that change something would do.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/bytes/utf8_text.h"
#include "base/status.h"
#include "coordinator/edge/coordinator_service.h"
#include "rpc/convert/recovery_proto.h"
#include "rpc/rpc_status.h"

namespace ecpipe {
namespace {

std::string RateText(double bytes_per_second) {
  if (bytes_per_second == 0) return "no limit";
  return absl::StrFormat("%.1f Mb/s", bytes_per_second * 8 / 1e6);
}

std::string Change(const std::string& what, const std::string& from, const std::string& to) {
  return from == to ? what + " stays " + to : what + ": " + from + " becomes " + to;
}

}  // namespace

CoordinatorServiceImpl::Effects CoordinatorServiceImpl::WouldRecover(
    const v1::BeginRecoveryRequest& request) {
  ECPIPE_ASSIGN_OR_RETURN(const RecoveryRequest wanted,
                          RecoveryRequestOf(request.request(), RecoveryKind::kRebuild));
  ECPIPE_ASSIGN_OR_RETURN(const RecoveryRecord record,
                          recoveries_->Prepare(wanted, IfLiveOf(request)));
  ECPIPE_ASSIGN_OR_RETURN(const std::string blocks, BlocksOn(wanted.node));
  const int64_t delay_ms =
      std::max<int64_t>(record.rebuild_after_unix_ms - Clock::System().UnixMillis(), 0);
  std::vector<std::string> effects;
  effects.push_back("would rebuild what node " + wanted.node + " has lost of " + blocks);
  effects.push_back(wanted.hosts.empty()
                        ? "would store blocks on any live node"
                        : "would store blocks on " + absl::StrJoin(wanted.hosts, ", "));
  effects.push_back(delay_ms == 0 ? std::string("would begin at once")
                                  : absl::StrFormat("would begin in %.0f s, unless the node comes "
                                                    "back",
                                                    static_cast<double>(delay_ms) / 1000));
  return effects;
}

CoordinatorServiceImpl::Effects CoordinatorServiceImpl::WouldDrain(
    const v1::DrainNodeRequest& request) {
  ECPIPE_ASSIGN_OR_RETURN(const RecoveryRequest wanted,
                          RecoveryRequestOf(request.request(), RecoveryKind::kMove));
  ECPIPE_RETURN_IF_ERROR(recoveries_->Prepare(wanted, IfLive::kRebuildAll).status());
  ECPIPE_ASSIGN_OR_RETURN(const std::string blocks, BlocksOn(wanted.node));
  return std::vector<std::string>{
      "would move off node " + wanted.node + " what it has: " + blocks,
      wanted.hosts.empty() ? "would store blocks on any live node"
                           : "would store blocks on " + absl::StrJoin(wanted.hosts, ", "),
      "node " + wanted.node + " would take no blocks until it is readmitted"};
}

CoordinatorServiceImpl::Effects CoordinatorServiceImpl::WouldReadmit(
    const v1::ReadmitNodeRequest& request) {
  const std::string& node = request.node_id();
  ECPIPE_ASSIGN_OR_RETURN(const std::vector<RecoveryRecord> by, recoveries_->KeptOutBy(node));
  std::vector<std::string> effects = {"node " + node + " would take blocks again"};
  if (absl::c_any_of(by, InMaintenance)) {
    effects.push_back("its maintenance would end: what it does not have would be rebuilt");
  }
  return effects;
}

CoordinatorServiceImpl::Effects CoordinatorServiceImpl::WouldMaintain(
    const v1::MaintainNodeRequest& request) {
  const std::string& node = request.node_id();
  ECPIPE_ASSIGN_OR_RETURN(const RecoveryRecord record,
                          recoveries_->PrepareMaintenance(node, request.seconds()));
  ECPIPE_ASSIGN_OR_RETURN(const std::string blocks, BlocksOn(node));
  const std::string seconds = absl::StrFormat("%.0f s", request.seconds());
  return std::vector<std::string>{
      record.recovery_id == 0
          ? "node " + node + " might be away for " + seconds + ", and would take no blocks"
          : "the maintenance of node " + node + " would end in " + seconds,
      "then what it does not have of " + blocks + " would be rebuilt"};
}

CoordinatorServiceImpl::Effects CoordinatorServiceImpl::WouldChange(
    const v1::ChangeRecoveryRequest& request) {
  ECPIPE_ASSIGN_OR_RETURN(const RecoveryView view, recoveries_->Get(request.recovery_id()));
  const RecoveryRecord& record = view.record;
  const bool cancel = request.change() == v1::ChangeRecoveryRequest::CHANGE_CANCEL;
  const bool pause = request.change() == v1::ChangeRecoveryRequest::CHANGE_PAUSE;
  ECPIPE_RETURN_IF_ERROR(RecoveryManager::CheckMayChange(record, cancel ? RecoveryState::kCancelled
                                                                 : pause
                                                                     ? RecoveryState::kPaused
                                                                     : RecoveryState::kRunning));
  if (cancel && InMaintenance(record)) {
    return std::vector<std::string>{
        "the maintenance of node " + record.request.node + " would end, and nothing be rebuilt",
        "node " + record.request.node + " would take blocks again"};
  }
  return std::vector<std::string>{absl::StrFormat(
      "would %s recovery %d of node %s, which is %s: %d of %d blocks done, %d running",
      cancel  ? "cancel"
      : pause ? "pause"
              : "resume",
      record.recovery_id, record.request.node, RecoveryStateName(record.state), record.done_blocks,
      record.blocks, view.running_blocks)};
}

CoordinatorServiceImpl::Effects CoordinatorServiceImpl::WouldSetLimits(
    const v1::SetLimitsRequest& request) {
  std::vector<std::string> effects;
  if (request.node_id().empty()) {
    const LimitsOfCluster before = limits_->limits().cluster;
    ECPIPE_ASSIGN_OR_RETURN(const LimitsOfCluster after, ClusterLimitsAfter(request));
    ECPIPE_RETURN_IF_ERROR(CheckLimits(after));
    const auto rate = [&](const LimitsOfCluster& limits) {
      return RateText(limits.repair_bytes_per_second.value_or(defaults_.cluster_rate));
    };
    const auto running = [&](const LimitsOfCluster& limits) {
      return std::to_string(limits.max_running.value_or(defaults_.max_running));
    };
    effects.push_back(Change("repair rate of the cluster", rate(before), rate(after)));
    effects.push_back(Change("repairs at once", running(before), running(after)));
    return effects;
  }
  const std::string& node = request.node_id();
  ECPIPE_ASSIGN_OR_RETURN(const LimitsOfNode after, NodeLimitsAfter(request));
  ECPIPE_RETURN_IF_ERROR(CheckLimits(node, after));
  Limits limits = limits_->limits();
  const LimitsOfNode before = limits.nodes[node];
  const auto rate = [](const LimitsOfNode& own) {
    return own.repair_bytes_per_second ? RateText(*own.repair_bytes_per_second)
                                       : std::string("as configured");
  };
  const auto sessions = [](const LimitsOfNode& own) {
    return own.max_sessions ? std::to_string(*own.max_sessions) : std::string("as configured");
  };
  effects.push_back(Change("repair rate of " + node, rate(before), rate(after)));
  effects.push_back(Change("sessions of " + node, sessions(before), sessions(after)));
  return effects;
}

CoordinatorServiceImpl::Effects CoordinatorServiceImpl::WouldClear(
    const v1::ClearCorruptBlockRequest& request) {
  const std::string block_id = sources_.BlockNamed(request.block_id());
  for (const CorruptBlock& block : repairs_->corrupt().All()) {
    if (block.block_id != block_id) continue;
    return std::vector<std::string>{"would take the mark of " + block_id + " on " + block.node +
                                    " away: " + block.reason};
  }
  return absl::NotFoundError("block " + block_id + " is not marked");
}

CoordinatorServiceImpl::Effects CoordinatorServiceImpl::WouldForget(
    const v1::ForgetNodeRequest& request) {
  ECPIPE_RETURN_IF_ERROR(CheckMayForget(request));
  ECPIPE_ASSIGN_OR_RETURN(const std::string blocks, BlocksOn(request.node_id()));
  return std::vector<std::string>{"would forget node " + request.node_id() +
                                  " and its limits; the catalog has " + blocks + " on it"};
}

CoordinatorServiceImpl::Effects CoordinatorServiceImpl::WouldRemove(
    const v1::RemoveStripesRequest& request) {
  ECPIPE_ASSIGN_OR_RETURN(const std::vector<std::string> stripes, StripesToRemove(request));
  ECPIPE_RETURN_IF_ERROR(CheckMayRemove(stripes));
  ECPIPE_ASSIGN_OR_RETURN(const std::vector<Stripe> would, catalog_->TryRemove(stripes));
  size_t blocks = 0;
  for (const Stripe& stripe : would) blocks += stripe.blocks.size();
  return std::vector<std::string>{absl::StrFormat(
      "would remove %d stripes with %d blocks from the catalog; the blocks stay on their nodes",
      would.size(), blocks)};
}

grpc::Status CoordinatorServiceImpl::DryRun(grpc::ServerContext*, const v1::DryRunRequest* request,
                                            v1::DryRunResponse* response) {
  if (request->has_put_stripes()) {
    const absl::StatusOr<std::vector<Stripe>> stripes = StripesToPut(request->put_stripes());
    if (!stripes.ok()) return ToGrpc(stripes.status());
    if (absl::Status may = CheckMayReplace(*stripes); !may.ok()) return ToGrpc(may);
    const absl::StatusOr<PutCounts> counts = catalog_->TryPut(*stripes);
    if (!counts.ok()) return ToGrpc(counts.status());
    response->set_added_stripes(counts->added);
    response->set_replaced_stripes(counts->replaced);
    response->set_unchanged_stripes(counts->unchanged);
    return grpc::Status::OK;
  }
  const Effects effects = [&]() -> Effects {
    switch (request->call_case()) {
      case v1::DryRunRequest::kBeginRecovery:
        return WouldRecover(request->begin_recovery());
      case v1::DryRunRequest::kChangeRecovery:
        return WouldChange(request->change_recovery());
      case v1::DryRunRequest::kSetLimits:
        return WouldSetLimits(request->set_limits());
      case v1::DryRunRequest::kClearCorruptBlock:
        return WouldClear(request->clear_corrupt_block());
      case v1::DryRunRequest::kRemoveStripes:
        return WouldRemove(request->remove_stripes());
      case v1::DryRunRequest::kForgetNode:
        return WouldForget(request->forget_node());
      case v1::DryRunRequest::kDrainNode:
        return WouldDrain(request->drain_node());
      case v1::DryRunRequest::kMaintainNode:
        return WouldMaintain(request->maintain_node());
      case v1::DryRunRequest::kReadmitNode:
        return WouldReadmit(request->readmit_node());
      default:
        return absl::UnimplementedError("this coordinator does not know what the call would do");
    }
  }();
  if (!effects.ok()) return ToGrpc(effects.status());
  for (const std::string& effect : *effects) response->add_effects(CleanText(effect));
  return grpc::Status::OK;
}

}  // namespace ecpipe
