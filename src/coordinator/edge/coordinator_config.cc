// SPDX-License-Identifier: Apache-2.0
#include "coordinator/edge/coordinator_config.h"

#include "absl/strings/str_join.h"
#include "base/process/config.h"
#include "base/process/daemon.h"
#include "base/status.h"
#include "coordinator/planning/scheme.h"
#include "coordinator/sources/http_get.h"
#include "net/tcp_socket.h"

namespace ecpipe {
namespace {

void ReadDefaults(Config& config, CoordinatorConfig* coordinator) {
  RepairPlanner::Options& planner = coordinator->repairs.planner;
  planner.default_scheme = config.String("defaults.scheme", planner.default_scheme);
  coordinator->recoveries.default_scheme = planner.default_scheme;
  if (planner.default_scheme != "auto" && FindScheme(planner.default_scheme) == nullptr) {
    config.Reject("defaults.scheme", "'" + planner.default_scheme + "' is not one of " +
                                         absl::StrJoin(SchemeNames(), ", ") + ", auto");
  }
  planner.default_slice_bytes = static_cast<uint32_t>(
      config.Size("defaults.slice_bytes", planner.default_slice_bytes, 1, kMaxSliceBytes));
  const std::string verify = config.String("defaults.verify", "none");
  if (const auto named = VerificationNamed(verify); named.ok()) {
    planner.default_verification = *named;
  } else {
    config.Reject("defaults.verify", std::string(named.status().message()));
  }
  const std::string transport = config.String("defaults.transport", "tcp");
  if (transport != "tcp" && transport != "redis") {
    config.Reject("defaults.transport", "'" + transport + "' is not one of tcp, redis");
  }
  coordinator->default_transport =
      transport == "redis" ? TransportKind::kRedis : TransportKind::kTcp;
  planner.link_bytes_per_second = config.Rate("defaults.link_mbit", 1000);
}

void ReadProbes(Config& config, LinkProber::Options* probes) {
  constexpr uint64_t kMost = uint64_t{1} << 30;
  probes->max_bytes = config.Size("probe.max_bytes", probes->max_bytes, probes->min_bytes, kMost);
  probes->max_bytes_per_second = config.Rate("probe.max_mbit", 100);
}

void ReadNameNode(Config& config, NameNodeOptions* namenode) {
  constexpr double kDay = 86400;
  namenode->urls = config.Strings("hdfs.namenodes");
  namenode->user = config.String("hdfs.user", "hdfs");
  namenode->path = config.String("hdfs.path", namenode->path);
  namenode->refresh =
      FromSeconds(config.Seconds("hdfs.refresh_seconds", Seconds(namenode->refresh), kDay));
  if (namenode->urls.empty()) return;
  for (const std::string& url : namenode->urls) {
    const absl::Status valid = ValidateHttpServer(url);
    if (!valid.ok()) config.Reject("hdfs.namenodes", std::string(valid.message()));
  }
  if (namenode->user.empty()) {
    config.Reject("hdfs.user", "must not be empty: name a superuser of HDFS");
  }
  if (!namenode->path.starts_with("/")) config.Reject("hdfs.path", "must begin with '/'");
}

void ReadQfs(Config& config, QfsOptions* qfs) {
  constexpr double kMostSeconds = 60;
  qfs->metaservers = config.Strings("qfs.metaservers");
  qfs->timeout =
      FromSeconds(config.Seconds("qfs.timeout_seconds", Seconds(qfs->timeout), kMostSeconds));
  qfs->fresh = FromSeconds(config.Seconds("qfs.fresh_seconds", Seconds(qfs->fresh), kMostSeconds));
  for (const std::string& metaserver : qfs->metaservers) {
    const absl::StatusOr<HostPort> address = ParseHostPort(metaserver);
    if (!address.ok()) config.Reject("qfs.metaservers", std::string(address.status().message()));
  }
}

void ReadTopology(Config& config, RepairCoordinator::Options* repairs) {
  if (const std::string path = config.String("topology.racks", ""); !path.empty()) {
    auto racks = ReadRackTable(path);
    if (!racks.ok()) config.Reject("topology.racks", std::string(racks.status().message()));
    if (racks.ok()) repairs->racks = *std::move(racks);
  }
  repairs->topology_script = config.String("topology.script", "");
  repairs->planner.rack_bytes_per_second = config.Rate("topology.rack_mbit", 0);
  if (const std::string path = config.String("topology.links", ""); !path.empty()) {
    absl::StatusOr<LinkTable> links = ReadLinkTable(path);
    if (!links.ok()) config.Reject("topology.links", std::string(links.status().message()));
    if (links.ok()) repairs->links = std::make_shared<const LinkTable>(*std::move(links));
  }
}

void ReadRecovery(Config& config, RecoveryManager::Options* recoveries) {
  RecoveryQueue::Options& queue = recoveries->queue;
  recoveries->streams_per_node = static_cast<uint32_t>(
      config.Integer("recovery.streams_per_node", recoveries->streams_per_node, 1, 1000));
  queue.max_attempts =
      static_cast<int>(config.Integer("recovery.max_attempts", queue.max_attempts, 1, 1000));
  const auto duration = [&](const std::string& key, Duration fallback) {
    constexpr double kDay = 86400;
    return FromSeconds(config.Seconds("recovery." + key, Seconds(fallback), kDay));
  };
  recoveries->delay = duration("delay_seconds", recoveries->delay);
  queue.first_pause = duration("first_pause_seconds", queue.first_pause);
  queue.longest_pause = duration("longest_pause_seconds", queue.longest_pause);
}

}  // namespace

absl::StatusOr<CoordinatorConfig> LoadCoordinatorConfig(
    const std::string& path, const ConfigCheck<CoordinatorConfig>& check) {
  ECPIPE_ASSIGN_OR_RETURN(Config config, Config::Load(path));
  CoordinatorConfig coordinator;
  RepairCoordinator::Options& repairs = coordinator.repairs;
  coordinator.listen = config.String("coordinator.listen", "127.0.0.1:7700");
  coordinator.data_directory = config.RequiredString("coordinator.data_directory");
  coordinator.insecure = config.Bool("coordinator.insecure", false);
  coordinator.tls = ReadTlsFiles(config);
  coordinator.web = ReadWebOptions(config);
  const auto addresses = AddressRule::Create(config.Strings("coordinator.node_addresses"));
  if (addresses.ok()) {
    coordinator.addresses = *addresses;
  } else {
    config.Reject("coordinator.node_addresses", std::string(addresses.status().message()));
  }
  coordinator.audit_path = config.String("audit.file", "");
  coordinator.log = ReadLog(config);
  ReadDefaults(config, &coordinator);
  ReadTopology(config, &repairs);
  repairs.handout_timeout =
      FromSeconds(config.Seconds("timeouts.handout_seconds", Seconds(repairs.handout_timeout), 60));
  repairs.dead_after =
      FromSeconds(config.Seconds("timeouts.dead_after_seconds", Seconds(repairs.dead_after), 3600));
  repairs.abandon_after = FromSeconds(
      config.Seconds("timeouts.abandon_after_seconds", Seconds(repairs.abandon_after), 86400));
  repairs.max_running = static_cast<uint32_t>(
      config.Integer("limits.max_running", repairs.max_running, 1, 1'000'000));
  coordinator.repair_bytes_per_second = config.Rate("limits.repair_mbit", 0);
  repairs.journal_keep =
      static_cast<int>(config.Integer("limits.journal_keep", repairs.journal_keep, 0, 10'000'000));
  coordinator.reported.blocks = static_cast<uint64_t>(
      config.Integer("limits.max_reported_blocks",
                     static_cast<int64_t>(coordinator.reported.blocks), 1, 1'000'000'000));
  ReadRecovery(config, &coordinator.recoveries);
  coordinator.recoveries.gather = repairs.dead_after;
  ReadProbes(config, &coordinator.probes);
  ReadNameNode(config, &coordinator.namenode);
  ReadQfs(config, &coordinator.qfs);
  if (check) config.Reject(check(coordinator));
  ECPIPE_RETURN_IF_ERROR(config.Finish());
  coordinator.values = config.values();
  return coordinator;
}

const std::set<std::string>& ReloadableCoordinatorKeys() {
  static const auto* const keys = new std::set<std::string>{
      "coordinator.node_addresses", "log.format", "log.level", "topology.links", "topology.racks"};
  return *keys;
}

}  // namespace ecpipe
