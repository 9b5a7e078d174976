// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/algorithm/container.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/bytes/size_text.h"
#include "base/status.h"
#include "requestor/cli/commands.h"
#include "requestor/cli/marks_text.h"
#include "requestor/cli/node_troubles.h"
#include "requestor/cli/progress.h"
#include "requestor/cli/system_words.h"
#include "requestor/client/coordinator_client.h"
#include "requestor/files/manifest.h"

namespace ecpipe {
namespace {

using Json = nlohmann::ordered_json;

Json StripeJson(const Stripe& stripe) {
  Json json{{"stripe_id", stripe.stripe_id},
            {"code", stripe.code},
            {"block_bytes", stripe.block_bytes},
            {"blocks", Json::array()}};
  for (const BlockPlace& block : stripe.blocks) {
    json["blocks"].push_back({{"block_id", block.block_id}, {"node", block.node}});
  }
  return json;
}

Json NodeJson(const NodeStatus& node, bool hdfs) {
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
            {"failed_roots", node.failed_roots},
            {"silent_because", node.silent_because},
            {"silent_seconds", node.silent_seconds},
            {"storage_id", node.storage_id},
            {"system", node.system},
            {"state_in_hdfs", node.state_in_system},
            {"troubles", TroublesOf(node, hdfs)},
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

bool HasHdfs(const ClusterStatus& status) {
  return absl::c_any_of(status.systems,
                        [](const SystemStatus& system) { return system.system == "hdfs"; });
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
  std::printf("%-16s %-16s %-9s %8s %10s %9s %12s %12s\n", "node", "rack", "state", "blocks",
              "size", "sessions", "sent", "received");
  for (const NodeStatus& node : status.nodes) {
    const std::string state = node.state == "live" && !node.answers ? "silent" : node.state;
    const std::string blocks = node.counting ? "counting" : std::to_string(node.block_count);
    std::printf("%-16s %-16s %-9s %8s %10s %9u %12s %12s\n", node.node.c_str(), node.rack.c_str(),
                state.c_str(), blocks.c_str(), FormatSize(node.block_bytes).c_str(),
                node.counters.active_sessions, FormatSize(node.counters.data_bytes_sent).c_str(),
                FormatSize(node.counters.data_bytes_received).c_str());
  }
  PrintTroubles(status);
  for (const SystemStatus& system : status.systems) PrintSystem(system);
  std::fputs(MarksAsText(status.corrupt_blocks).c_str(), stdout);
  if (status.repairs.empty()) return;
  std::printf("\n%-16s %-12s %-13s %-6s %-8s %s\n", "repair", "state", "scheme", "via", "seconds",
              "block");
  for (const RepairRecord& repair : status.repairs) {
    const double seconds =
        repair.ended_unix_ms == 0
            ? 0
            : static_cast<double>(repair.ended_unix_ms - repair.started_unix_ms) / 1000;
    const std::string to = repair.hosts.empty() ? "" : " -> " + absl::StrJoin(repair.hosts, ", ");
    std::printf("%-16s %-12s %-13s %-6s %-8.3f %s%s%s%s\n", RepairIdText(repair.repair_id).c_str(),
                RepairStateName(repair.state), repair.scheme.c_str(), repair.transport.c_str(),
                seconds, absl::StrJoin(repair.block_ids, ", ").c_str(), to.c_str(),
                repair.detail.empty() ? "" : "  ", repair.detail.c_str());
  }
}

Stripe StripeOf(const Manifest& manifest, const ManifestStripe& listed) {
  Stripe stripe{listed.stripe_id, manifest.code, manifest.block_bytes, {}, {}};
  for (const ManifestBlock& block : listed.blocks) {
    stripe.blocks.push_back({block.block_id, block.node, block.sha256});
  }
  return stripe;
}

// The number of stripes that were loaded.
absl::StatusOr<size_t> LoadManifests(const CommonArguments& common,
                                     const std::vector<std::string>& paths) {
  ECPIPE_ASSIGN_OR_RETURN(const std::unique_ptr<CoordinatorApi> coordinator,
                          ConnectCoordinator(common));
  ProgressDisplay display({.unit = "stripes", .style = ProgressStyleOf(common)});
  size_t loaded = 0;
  for (size_t i = 0; i < paths.size(); ++i) {
    ECPIPE_ASSIGN_OR_RETURN(const Manifest manifest, ReadManifest(paths[i]));
    std::vector<Stripe> stripes;
    for (const ManifestStripe& stripe : manifest.stripes) {
      stripes.push_back(StripeOf(manifest, stripe));
    }
    const bool only = paths.size() == 1;
    display.Begin((only ? "" : absl::StrFormat("%zu/%zu ", i + 1, paths.size())) + manifest.name);
    display.Show({.done = 0, .total = stripes.size()});
    ECPIPE_RETURN_IF_ERROR(
        Annotate(coordinator->PutStripes(stripes, display.Callback()), paths[i]));
    loaded += stripes.size();
  }
  return loaded;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CoordinatorApi>> ConnectCoordinator(const CommonArguments& common) {
  ECPIPE_ASSIGN_OR_RETURN(const std::shared_ptr<TlsContext> tls,
                          TlsContext::CreateIfEnabled(common.tls));
  return MakeCoordinatorClient(common.coordinator, FromSeconds(common.timeout_s), tls);
}

absl::Status RunCatalogLoad(const CommonArguments& common,
                            const std::vector<std::string>& manifests) {
  ECPIPE_ASSIGN_OR_RETURN(const size_t loaded, LoadManifests(common, manifests));
  if (common.json) {
    std::printf("%s\n", Json{{"loaded_stripes", loaded}}.dump().c_str());
  } else {
    std::printf("loaded %zu stripes\n", loaded);
  }
  return absl::OkStatus();
}

absl::Status RunCatalogList(const CommonArguments& common, const std::string& after,
                            uint32_t limit) {
  ECPIPE_ASSIGN_OR_RETURN(const std::unique_ptr<CoordinatorApi> coordinator,
                          ConnectCoordinator(common));
  ECPIPE_ASSIGN_OR_RETURN(const std::vector<Stripe> stripes,
                          coordinator->ListStripes(after, limit));
  if (common.json) {
    Json json = Json::array();
    for (const Stripe& stripe : stripes) json.push_back(StripeJson(stripe));
    std::printf("%s\n", json.dump(2).c_str());
    return absl::OkStatus();
  }
  for (const Stripe& stripe : stripes) {
    std::printf("%s  %s  %s a block\n", stripe.stripe_id.c_str(), stripe.code.c_str(),
                FormatSize(stripe.block_bytes).c_str());
  }
  return absl::OkStatus();
}

absl::Status RunCatalogLocate(const CommonArguments& common, const std::string& block_id) {
  ECPIPE_ASSIGN_OR_RETURN(const std::unique_ptr<CoordinatorApi> coordinator,
                          ConnectCoordinator(common));
  ECPIPE_ASSIGN_OR_RETURN(const auto located, coordinator->LocateBlock(block_id));
  const auto& [stripe, block_index] = located;
  if (common.json) {
    Json json = StripeJson(stripe);
    json["block_index"] = block_index;
    std::printf("%s\n", json.dump(2).c_str());
    return absl::OkStatus();
  }
  std::printf("%s is block %d of stripe %s, %s, %s a block\n", block_id.c_str(), block_index,
              stripe.stripe_id.c_str(), stripe.code.c_str(),
              FormatSize(stripe.block_bytes).c_str());
  for (size_t i = 0; i < stripe.blocks.size(); ++i) {
    std::printf("  %3zu  %-16s %s%s\n", i, stripe.blocks[i].node.c_str(),
                stripe.blocks[i].block_id.c_str(),
                static_cast<int>(i) == block_index ? "  <--" : "");
  }
  return absl::OkStatus();
}

absl::Status RunSchemes(const CommonArguments& common) {
  ECPIPE_ASSIGN_OR_RETURN(const std::unique_ptr<CoordinatorApi> coordinator,
                          ConnectCoordinator(common));
  ECPIPE_ASSIGN_OR_RETURN(const std::vector<SchemeInfo> schemes, coordinator->Schemes());
  std::fputs((common.json ? SchemesJson(schemes) : SchemesText(schemes)).c_str(), stdout);
  return absl::OkStatus();
}

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
