// SPDX-License-Identifier: Apache-2.0
// CoordinatorService: the state of the cluster for operators.
#include <chrono>
#include <set>
#include <string>
#include <vector>

#include "base/bytes/utf8_text.h"
#include "base/process/version.h"
#include "coordinator/edge/coordinator_service.h"
#include "model/plan/features.h"
#include "rpc/convert/repair_proto.h"
#include "rpc/examine/port_check.h"
#include "rpc/rpc_status.h"

namespace ecpipe {
namespace {

constexpr int kRecentRepairs = 50;
constexpr size_t kMaxCheckedNodes = 100;  // each takes up to ten descriptors for a moment
constexpr auto kPortPatience = std::chrono::seconds(2);

// Tries the ports of these nodes, and writes down what is wrong with them.
void CheckNodes(const std::set<std::string>& nodes, v1::GetStatusResponse* response) {
  std::vector<v1::GetStatusResponse::Node*> checked;
  std::vector<std::string> addresses;
  for (v1::GetStatusResponse::Node& node : *response->mutable_nodes()) {
    if (!nodes.contains(node.info().node_id()) || checked.size() == kMaxCheckedNodes) continue;
    checked.push_back(&node);
    addresses.push_back(node.info().control_address());
    addresses.push_back(node.info().data_address());
  }
  const std::vector<absl::Status> answers = CheckPorts(addresses, kPortPatience);
  for (size_t i = 0; i < checked.size(); ++i) {
    checked[i]->set_ports_checked(true);
    checked[i]->set_control_error(CleanText(std::string(answers[2 * i].message())));
    checked[i]->set_data_error(CleanText(std::string(answers[2 * i + 1].message())));
  }
}

void NodeToProto(const NodeView& view, v1::GetStatusResponse::Node* node) {
  v1::NodeInfo* info = node->mutable_info();
  info->set_node_id(view.record.node_id);
  info->set_rack(view.record.rack);
  info->set_control_address(view.record.control_address);
  info->set_data_address(view.record.data_address);
  info->set_redis_address(view.record.redis_address);
  info->set_incarnation(view.record.incarnation);
  info->set_storage_id(view.record.storage_id);
  node->mutable_inventory()->set_block_count(view.record.block_count);
  node->mutable_inventory()->set_block_bytes(view.record.block_bytes);
  node->mutable_inventory()->set_counting(view.record.counting);
  for (const std::string& name : FeatureNames(view.record.features)) info->add_features(name);
  if (view.record.free_bytes) node->mutable_inventory()->set_free_bytes(*view.record.free_bytes);
  if (view.record.disk_bytes) node->mutable_inventory()->set_disk_bytes(*view.record.disk_bytes);
  node->set_state(NodeStateName(view.state));
  node->set_seconds_since_heartbeat(view.seconds_since_heartbeat);
  node->set_heartbeat_unknown(view.heartbeat_unknown);
  node->set_active_sessions(view.record.active_sessions);
  node->set_silent_because(CleanText(view.silent_because));
  node->set_silent_seconds(view.silent_seconds);
  node->set_kept_out(KeptOutName(view.kept_out));
  for (const std::string& root : view.record.failed_roots) {
    node->mutable_inventory()->add_failed_roots(root);
  }
}

}  // namespace

grpc::Status CoordinatorServiceImpl::GetStatus(grpc::ServerContext*,
                                               const v1::GetStatusRequest* request,
                                               v1::GetStatusResponse* response) {
  response->set_version(Version());
  const absl::StatusOr<uint64_t> stripe_count = catalog_->CountStripes();
  if (!stripe_count.ok()) return ToGrpc(stripe_count.status());
  response->set_stripe_count(*stripe_count);
  for (const NodeView& view : repairs_->nodes().All()) {
    v1::GetStatusResponse::Node* node = response->add_nodes();
    NodeToProto(view, node);
    SystemNodeToStatus(view, node);
  }
  for (const RefusedNode& refused : repairs_->nodes().Refused()) {
    v1::GetStatusResponse::RefusedNode* added = response->add_refused_nodes();
    added->set_node_id(refused.node_id);
    added->set_control_address(refused.control_address);
    added->set_reason(CleanText(refused.reason));
    added->set_seconds_ago(refused.seconds_ago);
  }
  const auto& wanted = request->check_nodes();
  CheckNodes(std::set<std::string>(wanted.begin(), wanted.end()), response);
  const absl::StatusOr<std::vector<RepairRecord>> repairs = journal_->Recent(kRecentRepairs);
  if (!repairs.ok()) return ToGrpc(repairs.status());
  for (const RepairRecord& record : *repairs) RepairToProto(record, response->add_repairs());
  MarksToProto(response->mutable_corrupt_blocks());
  SourcesToStatus(response);
  return grpc::Status::OK;
}

}  // namespace ecpipe
