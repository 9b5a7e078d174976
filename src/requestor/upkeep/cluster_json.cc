// SPDX-License-Identifier: Apache-2.0
#include "requestor/upkeep/cluster_json.h"

#include <nlohmann/json.hpp>

#include "requestor/cli/commands.h"
#include "requestor/doctor/node_troubles.h"
#include "requestor/upkeep/marks_text.h"

namespace ecpipe {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

Json NodeJson(const NodeStatus& node, bool has_hdfs) {
  Json json{{"node_id", node.node},
            {"rack", node.rack},
            {"state", node.state},
            {"control_address", node.control_address},
            {"data_address", node.data_address},
            {"redis_address", node.redis_address},
            {"seconds_since_heartbeat", node.seconds_since_heartbeat},
            {"heartbeat_unknown", node.heartbeat_unknown},
            {"block_count", node.block_count},
            {"block_bytes", node.block_bytes},
            {"counting", node.counting},
            {"free_bytes", node.free_bytes ? Json(*node.free_bytes) : Json()},
            {"disk_bytes", node.disk_bytes ? Json(*node.disk_bytes) : Json()},
            {"features", node.features},
            {"failed_roots", node.failed_roots},
            {"silent_because", node.silent_because},
            {"silent_seconds", node.silent_seconds},
            {"kept_out", node.kept_out},
            {"storage_id", node.storage_id},
            {"system", node.system},
            {"state_in_hdfs", node.state_in_system},
            {"troubles", TroublesOf(node, has_hdfs)},
            {"answers", node.answers}};
  if (!node.answers) return json;
  const HelperCounters& counters = node.counters;
  json["active_sessions"] = counters.active_sessions;
  json["buffer_bytes"] = counters.buffer_bytes;
  json["data_bytes_sent"] = counters.data_bytes_sent;
  json["data_bytes_received"] = counters.data_bytes_received;
  json["block_bytes_read"] = counters.block_bytes_read;
  json["parts_done"] = counters.parts_done;
  json["parts_failed"] = counters.parts_failed;
  json["cpu_seconds"] = counters.cpu_seconds;
  json["peak_resident_bytes"] = counters.peak_resident_bytes;
  json["version"] = counters.version;
  return json;
}

Json NodesJson(const ClusterStatus& status, const LinkUses& uses) {
  Json json = Json::array();
  for (const NodeStatus& node : status.nodes) {
    Json entry = NodeJson(node, HasHdfs(status));
    const auto use = uses.find(node.node);
    const bool known = use != uses.end();
    entry["sends_bytes_per_second"] = known ? Json(use->second.sends) : Json();
    entry["receives_bytes_per_second"] = known ? Json(use->second.receives) : Json();
    json.push_back(std::move(entry));
  }
  return json;
}

Json RepairJson(const RepairRecord& repair) {
  return {{"repair_id", RepairIdText(repair.repair_id)},
          {"attempt", repair.attempt},
          {"block_ids", repair.block_ids},
          {"scheme", repair.scheme},
          {"transport", repair.transport},
          {"state", RepairStateName(repair.state)},
          {"requestor", repair.requestor},
          {"started_unix_ms", repair.started_unix_ms},
          {"ended_unix_ms", repair.ended_unix_ms},
          {"detail", repair.detail},
          {"hosts", repair.hosts},
          {"recovery_id", repair.recovery_id}};
}

Json WatchJson(WatchFrame frame, const SortOrder& order) {
  SortNodes(order, frame.uses, &frame.status.nodes);
  SortRepairs({}, frame.now_unix_ms, &frame.status.repairs);
  Json json{{"now_unix_ms", frame.now_unix_ms},
            {"coordinator", frame.coordinator},
            {"error", frame.error},
            {"answered", frame.answered},
            {"stripe_count", frame.status.stripe_count},
            {"nodes", NodesJson(frame.status, frame.uses)},
            {"repairs", Json::array()},
            {"recoveries", Json::array()},
            {"corrupt_blocks", Json::array()}};
  for (const RepairRecord& repair : frame.status.repairs) {
    json["repairs"].push_back(RepairJson(repair));
  }
  for (const RecoveryView& recovery : frame.recoveries) {
    json["recoveries"].push_back(RecoveryJson(recovery));
  }
  for (const CorruptBlockStatus& block : frame.status.corrupt_blocks) {
    json["corrupt_blocks"].push_back(MarkAsJson(block));
  }
  return json;
}

}  // namespace ecpipe
