// SPDX-License-Identifier: Apache-2.0
#include "coordinator/coordinator_config.h"

#include <algorithm>

#include "common/config.h"
#include "common/status.h"

namespace ecpipe {
namespace {

void ReadDefaults(Config& config, CoordinatorConfig* coordinator) {
  RepairCoordinator::Options& repairs = coordinator->repairs;
  repairs.default_scheme = config.String("defaults.scheme", repairs.default_scheme);
  std::vector<std::string> schemes = SchemeNames();
  schemes.push_back("auto");
  if (std::find(schemes.begin(), schemes.end(), repairs.default_scheme) == schemes.end()) {
    std::string known;
    for (const std::string& scheme : schemes) known += (known.empty() ? "" : ", ") + scheme;
    config.Reject("defaults.scheme", "'" + repairs.default_scheme + "' is not one of " + known);
  }
  repairs.default_slice_bytes = static_cast<uint32_t>(
      config.Size("defaults.slice_bytes", repairs.default_slice_bytes, 1, kMaxSliceBytes));
  const std::string transport = config.String("defaults.transport", "tcp");
  if (transport != "tcp" && transport != "redis") {
    config.Reject("defaults.transport", "'" + transport + "' is not one of tcp, redis");
  }
  coordinator->default_transport =
      transport == "redis" ? TransportKind::kRedis : TransportKind::kTcp;
  constexpr int64_t kFastestMbit = 10'000'000;
  const double megabit_bytes = 1e6 / 8;
  repairs.link_bytes_per_second = megabit_bytes * static_cast<double>(config.Integer(
                                                      "defaults.link_mbit", 1000, 1, kFastestMbit));
}

absl::Status ReadTopology(Config& config, RepairCoordinator::Options* repairs) {
  if (const std::string path = config.String("topology.racks", ""); !path.empty()) {
    ECPIPE_ASSIGN_OR_RETURN(repairs->racks, ReadRackTable(path));
  }
  if (const std::string path = config.String("topology.links", ""); !path.empty()) {
    ECPIPE_ASSIGN_OR_RETURN(LinkTable links, ReadLinkTable(path));
    repairs->links = std::make_shared<LinkTable>(std::move(links));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CoordinatorConfig> LoadCoordinatorConfig(const std::string& path) {
  ECPIPE_ASSIGN_OR_RETURN(Config config, Config::Load(path));
  CoordinatorConfig coordinator;
  RepairCoordinator::Options& repairs = coordinator.repairs;
  coordinator.listen = config.String("coordinator.listen", "127.0.0.1:7700");
  coordinator.data_directory = config.RequiredString("coordinator.data_directory");
  coordinator.insecure = config.Bool("coordinator.insecure", false);
  coordinator.metrics_address = config.String("metrics.listen", "");
  coordinator.log_level = config.String("log.level", "info");
  ReadDefaults(config, &coordinator);
  ECPIPE_RETURN_IF_ERROR(ReadTopology(config, &repairs));
  repairs.handout_timeout =
      FromSeconds(config.Seconds("timeouts.handout_seconds", Seconds(repairs.handout_timeout), 60));
  repairs.dead_after =
      FromSeconds(config.Seconds("timeouts.dead_after_seconds", Seconds(repairs.dead_after), 3600));
  repairs.abandon_after = FromSeconds(
      config.Seconds("timeouts.abandon_after_seconds", Seconds(repairs.abandon_after), 86400));
  repairs.max_running = static_cast<uint32_t>(
      config.Integer("limits.max_running", repairs.max_running, 1, 1'000'000));
  repairs.journal_keep =
      static_cast<int>(config.Integer("limits.journal_keep", repairs.journal_keep, 0, 10'000'000));
  ECPIPE_RETURN_IF_ERROR(config.Finish());
  return coordinator;
}

}  // namespace ecpipe
