// SPDX-License-Identifier: Apache-2.0
#include "requestor/client/cluster_status_client.h"

#include <algorithm>

#include "rpc/convert/node_loss_proto.h"
#include "rpc/convert/repair_proto.h"

namespace ecpipe {
namespace {

NodeStatus NodeOf(const v1::GetStatusResponse::Node& proto) {
  NodeStatus node;
  node.node = proto.info().node_id();
  node.rack = proto.info().rack();
  node.state = proto.state();
  node.control_address = proto.info().control_address();
  node.data_address = proto.info().data_address();
  node.redis_address = proto.info().redis_address();
  node.seconds_since_heartbeat = proto.seconds_since_heartbeat();
  node.heartbeat_unknown = proto.heartbeat_unknown();
  node.block_count = proto.inventory().block_count();
  node.block_bytes = proto.inventory().block_bytes();
  node.counting = proto.inventory().counting();
  if (proto.inventory().has_free_bytes()) node.free_bytes = proto.inventory().free_bytes();
  if (proto.inventory().has_disk_bytes()) node.disk_bytes = proto.inventory().disk_bytes();
  node.features.assign(proto.info().features().begin(), proto.info().features().end());
  const auto& failed_roots = proto.inventory().failed_roots();
  node.failed_roots.assign(failed_roots.begin(), failed_roots.end());
  node.silent_because = proto.silent_because();
  node.silent_seconds = proto.silent_seconds();
  node.kept_out = proto.kept_out();
  node.storage_id = proto.info().storage_id();
  node.reported_blocks = proto.reported_blocks();
  node.system = proto.system();
  node.state_in_system = proto.state_in_system();
  node.silent_in_system_seconds = proto.silent_in_system_seconds();
  return node;
}

SystemStatus SystemOf(const v1::SourceStatus& proto) {
  SystemStatus system{proto.system(), SourceFactsFromProto(proto.facts()),
                      proto.nodes(),  proto.blocks(),
                      std::nullopt,   std::nullopt};
  if (proto.has_degraded_groups()) system.degraded_groups = proto.degraded_groups();
  if (proto.has_lost_groups()) system.lost_groups = proto.lost_groups();
  return system;
}

}  // namespace

CorruptBlockStatus CorruptStatusOf(const v1::CorruptBlock& proto) {
  return {proto.block_id(), proto.node_id(), proto.reason(),    proto.found_unix_ms(),
          proto.system(),   proto.suspect(), proto.undecided(), proto.checks()};
}

ClusterStatus ClusterStatusOf(const v1::GetStatusResponse& proto) {
  ClusterStatus status;
  status.version = proto.version();
  status.stripe_count = proto.stripe_count();
  for (const auto& node : proto.nodes()) status.nodes.push_back(NodeOf(node));
  for (const auto& refused : proto.refused_nodes()) {
    status.refused_nodes.push_back(
        {refused.node_id(), refused.control_address(), refused.reason(), refused.seconds_ago()});
  }
  for (const auto& repair : proto.repairs()) status.repairs.push_back(RepairFromProto(repair));
  for (const auto& block : proto.corrupt_blocks()) {
    status.corrupt_blocks.push_back(CorruptStatusOf(block));
  }
  for (const auto& system : proto.sources()) status.systems.push_back(SystemOf(system));
  return status;
}

void AddPortChecks(const v1::GetStatusResponse& proto, std::vector<NodeStatus>* nodes) {
  for (const auto& checked : proto.nodes()) {
    const auto node = std::find_if(nodes->begin(), nodes->end(), [&](const NodeStatus& known) {
      return known.node == checked.info().node_id();
    });
    if (node == nodes->end()) continue;
    node->ports_checked = checked.ports_checked();
    node->control_error = checked.control_error();
    node->data_error = checked.data_error();
  }
}

}  // namespace ecpipe
