// SPDX-License-Identifier: Apache-2.0
#include "requestor/doctor/node_troubles.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_format.h"
#include "requestor/cli/system_words.h"

namespace ecpipe {
namespace {

void AddSilence(const NodeStatus& node, std::vector<std::string>* troubles) {
  troubles->push_back("the helper does not answer this command: " + node.answer_error);
  if (!node.ports_checked) {
    troubles->push_back("whether the coordinator reaches its ports is not known");
    return;
  }
  if (!node.control_error.empty()) {
    troubles->push_back("the coordinator does not reach its control port " + node.control_address +
                        ": " + node.control_error);
  }
  if (!node.data_error.empty()) {
    troubles->push_back("the coordinator does not reach its data port " + node.data_address + ": " +
                        node.data_error);
  }
  if (node.control_error.empty() && node.data_error.empty()) {
    troubles->push_back(
        "the coordinator reaches both its ports, so either the helper hangs, or this host is cut "
        "off from it");
  }
}

void AddSystem(const NodeStatus& node, bool hdfs, std::vector<std::string>* troubles) {
  if (node.storage_id.empty()) {
    if (!hdfs) return;
    troubles->push_back(
        "it serves no DataNode's blocks: beside a DataNode set [helper] store = \"hdfs\"");
    return;
  }
  if (!node.reported_blocks && node.state != "dead") {
    troubles->push_back("the helper has not reported its blocks yet");
  }
  if (node.state_in_system == "dead") {
    const SystemWords words = WordsOf(node.system);
    troubles->push_back(
        absl::StrFormat("the %s counts its %s as dead and last heard of it %.0f s ago",
                        words.manager, words.node, node.silent_in_system_seconds));
  }
}

}  // namespace

bool HasHdfs(const ClusterStatus& status) {
  return absl::c_any_of(status.systems,
                        [](const SystemStatus& system) { return system.system == "hdfs"; });
}

std::vector<std::string> TroublesOf(const NodeStatus& node, bool hdfs) {
  std::vector<std::string> troubles;
  if (node.Away()) return troubles;
  if (node.state == "dead") {
    troubles.push_back(absl::StrFormat(
        "no heartbeat for %.0f s: the helper has ended, or is cut off from the coordinator",
        node.seconds_since_heartbeat));
  } else if (node.state == "draining") {
    troubles.push_back(
        "the helper is shutting down: it ends the repairs that it takes part in, "
        "and takes no new ones");
  } else {
    if (!node.answers) AddSilence(node, &troubles);
    if (!node.silent_because.empty()) {
      troubles.push_back(absl::StrFormat(
          "its heartbeats come, but the coordinator's calls have had no answer for %.0f s (%s); "
          "repairs leave it out until it answers",
          node.silent_seconds, node.silent_because));
    }
    if (node.seconds_since_heartbeat > kLateHeartbeatSeconds) {
      troubles.push_back(
          absl::StrFormat("its last heartbeat is %.1f s old", node.seconds_since_heartbeat));
    }
    for (const std::string& root : node.failed_roots) {
      troubles.push_back("it cannot use a directory of [helper] roots: " + root);
    }
  }
  AddSystem(node, hdfs, &troubles);
  return troubles;
}

}  // namespace ecpipe
