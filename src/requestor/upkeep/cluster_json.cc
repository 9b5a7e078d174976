// SPDX-License-Identifier: Apache-2.0
#include "requestor/upkeep/cluster_json.h"

#include <nlohmann/json.hpp>

#include "requestor/doctor/node_troubles.h"

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

}  // namespace ecpipe
