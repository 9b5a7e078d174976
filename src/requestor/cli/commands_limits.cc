// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/status.h"
#include "requestor/cli/commands.h"
#include "requestor/cli/terminal.h"

namespace ecpipe {
namespace {

using Json = nlohmann::ordered_json;

Json ToJson(const ClusterLimitsView& view) {
  Json nodes = Json::array();
  for (const ClusterLimitsView::Node& node : view.nodes) {
    Json entry = {{"node", node.node},
                  {"state", node.state},
                  {"repair_mbit", Mbit(node.repair_bytes_per_second)},
                  {"max_sessions", node.max_sessions},
                  {"set_repair_mbit", nullptr},
                  {"set_max_sessions", nullptr}};
    if (node.set_repair_bytes_per_second) {
      entry["set_repair_mbit"] = Mbit(*node.set_repair_bytes_per_second);
    }
    if (node.set_max_sessions) entry["set_max_sessions"] = *node.set_max_sessions;
    nodes.push_back(std::move(entry));
  }
  return {{"cluster", ClusterLimitsJson(view)}, {"nodes", std::move(nodes)}};
}

// What the change would do: to the cluster, or to each of these nodes.
absl::Status ShowChange(const CommonArguments& common, LimitsChange change,
                        const std::vector<std::string>& nodes) {
  ECPIPE_ASSIGN_OR_RETURN(const auto catalog, ConnectCatalog(common));
  if (nodes.empty()) return PrintEffects(common, catalog->WouldSetLimits(change));
  std::vector<std::string> all;
  for (const std::string& node : nodes) {
    change.node = node;
    ECPIPE_ASSIGN_OR_RETURN(const std::vector<std::string> effects,
                            catalog->WouldSetLimits(change));
    all.insert(all.end(), effects.begin(), effects.end());
  }
  return PrintEffects(common, all);
}

absl::Status PrintAsJson(CoordinatorApi* coordinator) {
  ECPIPE_ASSIGN_OR_RETURN(const ClusterLimitsView view, coordinator->Limits());
  std::printf("%s\n", ToJson(view).dump(2).c_str());
  return absl::OkStatus();
}

}  // namespace

Json ClusterLimitsJson(const ClusterLimitsView& view) {
  return {{"repair_mbit", Mbit(view.repair_bytes_per_second)},
          {"repair_mbit_is_set", view.rate_is_set},
          {"max_running", view.max_running},
          {"max_running_is_set", view.max_running_is_set}};
}

absl::Status RunLimits(const CommonArguments& common) {
  ECPIPE_ASSIGN_OR_RETURN(const std::unique_ptr<CoordinatorApi> coordinator,
                          ConnectCoordinator(common));
  if (common.json) return PrintAsJson(coordinator.get());
  ECPIPE_ASSIGN_OR_RETURN(const ClusterLimitsView view, coordinator->Limits());
  std::printf("cluster: %s\n\n", ClusterLimitsText(view).c_str());
  using Align = Table::Align;
  Table table({{"node", Align::kLeft, /*shrinks=*/true},
               {"state"},
               {"repair Mb/s", Align::kRight},
               {"set", Align::kRight},
               {"sessions", Align::kRight},
               {"set", Align::kRight}});
  for (const ClusterLimitsView::Node& node : view.nodes) {
    const auto& rate = node.set_repair_bytes_per_second;
    table.Add({{node.node},
               {node.state},
               {RateText(node.repair_bytes_per_second)},
               {rate ? RateText(*rate) : "-"},
               {std::to_string(node.max_sessions)},
               {node.set_max_sessions ? std::to_string(*node.set_max_sessions) : "-"}});
  }
  PrintTable(table);
  return absl::OkStatus();
}

absl::Status RunSetLimits(const CommonArguments& common, const LimitsArguments& arguments) {
  LimitsChange change;
  change.reset = arguments.reset;
  if (arguments.repair_mbit)
    change.repair_bytes_per_second = BytesPerSecond(*arguments.repair_mbit);
  change.max_running = arguments.max_running;
  change.max_sessions = arguments.max_sessions;
  const bool changes = change.repair_bytes_per_second || change.max_running || change.max_sessions;
  if (!changes && !change.reset) {
    return absl::InvalidArgumentError(
        "no limit is named; use --repair-mbit, --max-running or --max-sessions");
  }
  if (arguments.cluster != arguments.nodes.empty()) {
    return absl::InvalidArgumentError("say whose limits to change: --cluster, or --node NODE");
  }
  if (arguments.dry_run) return ShowChange(common, change, arguments.nodes);
  ECPIPE_ASSIGN_OR_RETURN(const std::unique_ptr<CoordinatorApi> coordinator,
                          ConnectCoordinator(common));
  if (arguments.cluster) ECPIPE_RETURN_IF_ERROR(coordinator->SetLimits(change));
  for (const std::string& node : arguments.nodes) {
    change.node = node;
    ECPIPE_RETURN_IF_ERROR(Annotate(coordinator->SetLimits(change), "limits of " + node));
  }
  return common.json ? PrintAsJson(coordinator.get()) : absl::OkStatus();
}

}  // namespace ecpipe
