// SPDX-License-Identifier: Apache-2.0
#include "requestor/upkeep/list_commands.h"

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/clock.h"
#include "base/status.h"
#include "requestor/cli/terminal.h"
#include "requestor/upkeep/cluster_json.h"

namespace ecpipe {
namespace {

using Json = nlohmann::ordered_json;

// Long enough for a rate that says something, and short enough for people.
constexpr Duration kBetweenSamples = std::chrono::milliseconds(500);

}  // namespace

absl::Status RunNodes(const CommonArguments& common, const SortOrder& order) {
  ECPIPE_ASSIGN_OR_RETURN(const std::unique_ptr<CoordinatorApi> coordinator,
                          ConnectCoordinator(common));
  ECPIPE_ASSIGN_OR_RETURN(const ClusterStatus before, coordinator->Status());
  const TimePoint first = Clock::System().Now();
  std::this_thread::sleep_for(kBetweenSamples);  // sleep-ok: a rate needs two samples
  ECPIPE_ASSIGN_OR_RETURN(ClusterStatus status, coordinator->Status());
  const double seconds = Seconds(Clock::System().Now() - first);
  const LinkUses uses = LinkUsesBetween(before.nodes, status.nodes, seconds);
  SortNodes(order, uses, &status.nodes);
  if (!common.json) {
    PrintTable(NodesTable(status.nodes, uses));
    return absl::OkStatus();
  }
  std::printf("%s\n", NodesJson(status, uses).dump(2).c_str());
  return absl::OkStatus();
}

absl::Status RunRepairs(const CommonArguments& common, const RepairsArguments& arguments) {
  ECPIPE_ASSIGN_OR_RETURN(const std::unique_ptr<CoordinatorApi> coordinator,
                          ConnectCoordinator(common));
  ECPIPE_ASSIGN_OR_RETURN(ClusterStatus status, coordinator->Status());
  if (arguments.running) {
    std::erase_if(status.repairs,
                  [](const RepairRecord& repair) { return repair.state != RepairState::kRunning; });
  }
  const int64_t now = Clock::System().UnixMillis();
  SortRepairs(arguments.order, now, &status.repairs);
  if (common.json) {
    Json json = Json::array();
    for (const RepairRecord& repair : status.repairs) json.push_back(RepairJson(repair));
    std::printf("%s\n", json.dump(2).c_str());
  } else if (status.repairs.empty()) {
    std::printf("%s\n", arguments.running ? "no repair runs" : "no repair is known");
  } else {
    PrintTable(RepairsTable(status.repairs, now));
  }
  return absl::OkStatus();
}

}  // namespace ecpipe
