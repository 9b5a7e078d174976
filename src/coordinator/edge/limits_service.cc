// SPDX-License-Identifier: Apache-2.0
// The calls of the coordinator's service that carry limits: to helpers with each heartbeat, and to
// and from operators.
#include "base/status.h"
#include "coordinator/edge/coordinator_service.h"
#include "rpc/access.h"
#include "rpc/rpc_status.h"

namespace ecpipe {
namespace {

using Wire = v1::GetLimitsResponse;

void NodeToProto(const LimitsOfNode& limits, Wire::Node* proto) {
  if (limits.repair_bytes_per_second) {
    proto->set_set_repair_bytes_per_second(*limits.repair_bytes_per_second);
  }
  if (limits.max_sessions) proto->set_set_max_sessions(*limits.max_sessions);
}

}  // namespace

v1::HelperLimits CoordinatorServiceImpl::LimitsFor(const std::string& node) {
  v1::HelperLimits told;
  const Limits limits = limits_->limits();
  if (const auto own = limits.nodes.find(node); own != limits.nodes.end()) {
    if (const auto& rate = own->second.repair_bytes_per_second) {
      told.set_repair_bytes_per_second(*rate);
    }
    if (const auto& sessions = own->second.max_sessions) told.set_max_sessions(*sessions);
  }
  const double rate = limits.cluster.repair_bytes_per_second.value_or(defaults_.cluster_rate);
  if (rate == 0) return told;
  const SendingStreams streams = repairs_->StreamsOf(node);
  told.set_cluster_share_bytes_per_second(
      ShareOfRate(rate, streams.of_node, streams.of_all, repairs_->nodes().CountLive()));
  return told;
}

grpc::Status CoordinatorServiceImpl::Heartbeat(grpc::ServerContext* context,
                                               const v1::HeartbeatRequest* request,
                                               v1::HeartbeatResponse* response) {
  if (absl::Status own = CheckSpeaksFor(context, request->node_id()); !own.ok()) {
    return ToGrpc(own);
  }
  const NodeReport report{request->inventory().block_count(),  request->inventory().block_bytes(),
                          request->active_sessions(),          request->draining(),
                          request->repair_bytes_per_second(),  request->max_sessions(),
                          FailedRootsOf(request->inventory()), request->inventory().counting(),
                          FreeBytesOf(request->inventory()),   DiskBytesOf(request->inventory())};
  *response->mutable_limits() = LimitsFor(request->node_id());
  return ToGrpc(repairs_->nodes().Heartbeat(request->node_id(), request->incarnation(), report));
}

grpc::Status CoordinatorServiceImpl::GetLimits(grpc::ServerContext*, const v1::GetLimitsRequest*,
                                               v1::GetLimitsResponse* response) {
  Limits limits = limits_->limits();
  Wire::Cluster* cluster = response->mutable_cluster();
  const LimitsOfCluster& set = limits.cluster;
  cluster->set_repair_bytes_per_second(
      set.repair_bytes_per_second.value_or(defaults_.cluster_rate));
  cluster->set_rate_is_set(set.repair_bytes_per_second.has_value());
  cluster->set_max_running(set.max_running.value_or(defaults_.max_running));
  cluster->set_max_running_is_set(set.max_running.has_value());
  for (const NodeView& view : repairs_->nodes().All()) {
    Wire::Node* node = response->add_nodes();
    node->set_node_id(view.record.node_id);
    node->set_state(NodeStateName(view.state));
    node->set_repair_bytes_per_second(view.record.repair_bytes_per_second);
    node->set_max_sessions(view.record.max_sessions);
    NodeToProto(limits.nodes[view.record.node_id], node);
    limits.nodes.erase(view.record.node_id);
  }
  // Limits of nodes that have not come yet since the coordinator started.
  for (const auto& [node_id, own] : limits.nodes) {
    Wire::Node* node = response->add_nodes();
    node->set_node_id(node_id);
    node->set_state(NodeStateName(NodeState::kDead));
    NodeToProto(own, node);
  }
  return grpc::Status::OK;
}

absl::StatusOr<LimitsOfCluster> CoordinatorServiceImpl::ClusterLimitsAfter(
    const v1::SetLimitsRequest& request) {
  if (request.has_max_sessions()) {
    return absl::InvalidArgumentError(
        "max_sessions is a limit of a node, not of the cluster; name a node");
  }
  LimitsOfCluster limits = request.reset() ? LimitsOfCluster{} : limits_->limits().cluster;
  if (request.has_repair_bytes_per_second()) {
    limits.repair_bytes_per_second = request.repair_bytes_per_second();
  }
  if (request.has_max_running()) limits.max_running = request.max_running();
  return limits;
}

absl::Status CoordinatorServiceImpl::SetClusterLimits(const v1::SetLimitsRequest& request) {
  ECPIPE_ASSIGN_OR_RETURN(const LimitsOfCluster limits, ClusterLimitsAfter(request));
  const absl::Status set = limits_->Set(limits);
  // What is stored holds, whatever becomes of it in a power cut.
  repairs_->SetMaxRunning(limits_->limits().cluster.max_running.value_or(defaults_.max_running));
  return set;
}

absl::StatusOr<LimitsOfNode> CoordinatorServiceImpl::NodeLimitsAfter(
    const v1::SetLimitsRequest& request) {
  if (request.has_max_running()) {
    return absl::InvalidArgumentError("max_running is a limit of the cluster, not of a node");
  }
  const std::string& node = request.node_id();
  const std::map<std::string, LimitsOfNode> known = limits_->limits().nodes;
  const auto before = known.find(node);
  if (before == known.end() && !repairs_->nodes().Find(node)) {
    return absl::NotFoundError("node " + node + " has never registered");
  }
  LimitsOfNode limits;
  if (before != known.end() && !request.reset()) limits = before->second;
  if (request.has_repair_bytes_per_second()) {
    limits.repair_bytes_per_second = request.repair_bytes_per_second();
  }
  if (request.has_max_sessions()) limits.max_sessions = request.max_sessions();
  return limits;
}

absl::Status CoordinatorServiceImpl::SetNodeLimits(const v1::SetLimitsRequest& request) {
  ECPIPE_ASSIGN_OR_RETURN(const LimitsOfNode limits, NodeLimitsAfter(request));
  return limits_->Set(request.node_id(), limits);
}

grpc::Status CoordinatorServiceImpl::SetLimits(grpc::ServerContext*,
                                               const v1::SetLimitsRequest* request,
                                               v1::SetLimitsResponse*) {
  return ToGrpc(request->node_id().empty() ? SetClusterLimits(*request) : SetNodeLimits(*request));
}

}  // namespace ecpipe
