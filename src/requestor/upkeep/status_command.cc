// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/clock.h"
#include "base/status.h"
#include "requestor/cli/commands.h"
#include "requestor/cli/system_words.h"
#include "requestor/cli/terminal.h"
#include "requestor/doctor/node_troubles.h"
#include "requestor/upkeep/cluster_json.h"
#include "requestor/upkeep/cluster_tables.h"
#include "requestor/upkeep/marks_text.h"

namespace ecpipe {
namespace {

using Json = nlohmann::ordered_json;

Json SystemJson(const SystemStatus& system) {
  const SourceFacts& facts = system.facts;
  const auto known = [](const std::optional<uint64_t>& count) {
    return count ? Json(*count) : Json();
  };
  const std::string manager = system.system == "hdfs" ? "namenode" : "manager";
  return {{manager + "_configured", facts.configured},
          {"groups", facts.groups},
          {"groups_age_seconds", facts.age_seconds ? Json(*facts.age_seconds) : Json()},
          {manager + "_error", facts.last_error},
          {"safe_mode", facts.safe_mode},
          {"nodes", system.nodes},
          {"blocks", system.blocks},
          {"degraded_groups", known(system.degraded_groups)},
          {"lost_groups", known(system.lost_groups)}};
}

void PrintSystem(const SystemStatus& system) {
  const auto count = [](uint64_t number) { return static_cast<unsigned long long>(number); };
  const SystemWords words = WordsOf(system.system);
  const SourceFacts& facts = system.facts;
  std::printf("\n%s: %llu blocks of %ss on %llu %ss\n", words.name, count(system.blocks),
              words.stripe, count(system.nodes), words.node);
  if (!facts.configured) {
    std::printf("  %ss are not known: no %s is configured (%s)\n", words.stripe, words.manager,
                words.setting);
  } else if (facts.age_seconds && !system.degraded_groups) {
    std::printf("  the %s last answered %.0f s ago; which %ss lack a block is not asked\n",
                words.manager, *facts.age_seconds, words.stripe);
  } else if (facts.age_seconds) {
    std::printf(
        "  %llu %ss, as of %.0f s ago; %llu lack a block, and %llu of these lack more "
        "blocks than their parity makes up for\n",
        count(facts.groups), words.stripe, *facts.age_seconds, count(*system.degraded_groups),
        count(system.lost_groups.value_or(0)));
  } else {
    std::printf("  the %s has not answered yet, so which %ss lack a block is not known\n",
                words.manager, words.stripe);
  }
  if (!facts.safe_mode.empty()) {
    std::printf("  the %s orders no repairs: %s\n", words.manager, facts.safe_mode.c_str());
  }
  if (!facts.last_error.empty()) {
    std::printf("  the last question to the %s failed: %s\n", words.manager,
                facts.last_error.c_str());
  }
}

void PrintTroubles(const ClusterStatus& status) {
  for (const RefusedNodeStatus& node : status.refused_nodes) {
    std::printf("\nthe coordinator refuses a helper that last tried %.0f s ago:\n  %s\n",
                node.seconds_ago, node.reason.c_str());
  }
  for (const NodeStatus& node : status.nodes) {
    const std::vector<std::string> troubles = TroublesOf(node, HasHdfs(status));
    if (!troubles.empty()) std::printf("\ntrouble with %s:\n", node.node.c_str());
    for (const std::string& trouble : troubles) std::printf("  %s\n", trouble.c_str());
  }
}

void PrintStatus(const ClusterStatus& status) {
  std::printf("ecpipe %s, %llu stripes\n\n", status.version.c_str(),
              static_cast<unsigned long long>(status.stripe_count));
  std::vector<NodeStatus> nodes = status.nodes;
  SortNodes({}, {}, &nodes);
  PrintTable(NodesTable(nodes, {}));
  PrintTroubles(status);
  for (const SystemStatus& system : status.systems) PrintSystem(system);
  std::fputs(MarksAsText(status.corrupt_blocks).c_str(), stdout);
  if (status.repairs.empty()) return;
  std::vector<RepairRecord> repairs = status.repairs;
  const int64_t now = Clock::System().UnixMillis();
  SortRepairs({}, now, &repairs);
  std::printf("\n");
  PrintTable(RepairsTable(repairs, now));
}

}  // namespace

absl::Status RunStatus(const CommonArguments& common) {
  ECPIPE_ASSIGN_OR_RETURN(const std::unique_ptr<CoordinatorApi> coordinator,
                          ConnectCoordinator(common));
  ECPIPE_ASSIGN_OR_RETURN(const ClusterStatus status, coordinator->Status());
  if (!common.json) {
    PrintStatus(status);
    return absl::OkStatus();
  }
  Json json{{"version", status.version}, {"stripe_count", status.stripe_count}};
  json["nodes"] = Json::array();
  for (const NodeStatus& node : status.nodes) {
    json["nodes"].push_back(NodeJson(node, HasHdfs(status)));
  }
  json["refused_nodes"] = Json::array();
  for (const RefusedNodeStatus& node : status.refused_nodes) {
    json["refused_nodes"].push_back({{"node_id", node.node},
                                     {"control_address", node.control_address},
                                     {"reason", node.reason},
                                     {"seconds_ago", node.seconds_ago}});
  }
  json["repairs"] = Json::array();
  for (const RepairRecord& repair : status.repairs) json["repairs"].push_back(RepairJson(repair));
  json["corrupt_blocks"] = Json::array();
  for (const CorruptBlockStatus& block : status.corrupt_blocks) {
    json["corrupt_blocks"].push_back(MarkAsJson(block));
  }
  for (const SystemStatus& system : status.systems) json[system.system] = SystemJson(system);
  std::printf("%s\n", json.dump(2).c_str());
  return absl::OkStatus();
}

}  // namespace ecpipe
