// SPDX-License-Identifier: Apache-2.0
#include "requestor/upkeep/config_command.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/status.h"
#include "requestor/upkeep/config_client.h"

namespace ecpipe {
namespace {

using Json = nlohmann::ordered_json;

// Where the helper of the node is called.
absl::StatusOr<std::string> HelperOf(const CommonArguments& common, const std::string& node) {
  ECPIPE_ASSIGN_OR_RETURN(const std::unique_ptr<CoordinatorApi> coordinator,
                          ConnectCoordinator(common));
  ECPIPE_ASSIGN_OR_RETURN(const ClusterStatus status, coordinator->Status());
  const auto found = std::ranges::find(status.nodes, node, &NodeStatus::node);
  if (found == status.nodes.end()) {
    return absl::NotFoundError("the coordinator knows no node '" + node +
                               "'; `ecpipe nodes` lists those it knows");
  }
  if (found->state == "dead") {
    return absl::UnavailableError("the helper of " + node + " is dead; look at its file");
  }
  return found->control_address;
}

}  // namespace

absl::Status RunConfig(const CommonArguments& common, const std::string& node) {
  ECPIPE_ASSIGN_OR_RETURN(const std::shared_ptr<TlsContext> tls,
                          TlsContext::CreateIfEnabled(common.tls));
  std::string address = common.coordinator;
  if (!node.empty()) {
    ECPIPE_ASSIGN_OR_RETURN(address, HelperOf(common, node));
  }
  ECPIPE_ASSIGN_OR_RETURN(const DaemonConfig config,
                          FetchConfig(address, node, FromSeconds(common.timeout_s), tls));
  if (!common.json) {
    std::fputs(ConfigText(config.values).c_str(), stdout);
    return absl::OkStatus();
  }
  Json json{{"node", node.empty() ? Json() : Json(node)}, {"values", Json::object()}};
  for (const auto& [key, value] : config.values) json["values"][key] = value;
  json["reloadable"] = config.reloadable;
  std::printf("%s\n", json.dump(2).c_str());
  return absl::OkStatus();
}

}  // namespace ecpipe
