// SPDX-License-Identifier: Apache-2.0
#include "helper/edge/helper_config.h"

#include "base/process/config.h"
#include "base/process/daemon.h"
#include "base/status.h"
#include "model/block_id.h"
#include "model/systems/qfs_chunk.h"
#include "net/tcp_socket.h"

namespace ecpipe {
namespace {

void ReadLimits(Config& config, HelperConfig* helper) {
  helper->repair_bytes_per_second = config.Rate("limits.repair_mbit", 0);
  SessionManager::Options* const sessions = &helper->sessions;
  SessionManager::Options defaults;
  sessions->max_sessions =
      static_cast<uint32_t>(config.Integer("limits.max_sessions", defaults.max_sessions, 1, 4096));
  sessions->max_buffer_bytes = config.Size("limits.max_buffer_bytes", defaults.max_buffer_bytes,
                                           uint64_t{1} << 20, uint64_t{1} << 40);
  sessions->part.ring_bytes = static_cast<size_t>(
      config.Size("limits.ring_bytes", defaults.part.ring_bytes, 4096, uint64_t{1} << 30));
  sessions->part.stall_timeout = FromSeconds(
      config.Seconds("timeouts.stall_seconds", Seconds(defaults.part.stall_timeout), 3600));
}

void CheckChunkserver(Config& config, const HelperConfig& helper) {
  if (helper.store != StoreKind::kQfs) return;
  const absl::StatusOr<std::string> id = QfsStorageId(helper.chunkserver);
  if (!id.ok()) config.Reject("helper.chunkserver", std::string(id.status().message()));
}

}  // namespace

absl::StatusOr<HelperConfig> LoadHelperConfig(const std::string& path,
                                              const ConfigCheck<HelperConfig>& check) {
  ECPIPE_ASSIGN_OR_RETURN(Config config, Config::Load(path));
  HelperConfig helper;
  helper.node_id = config.RequiredString("helper.node_id");
  helper.rack = config.String("helper.rack", "/default-rack");
  helper.coordinator = config.RequiredString("helper.coordinator");
  helper.roots = config.RequiredStrings("helper.roots");
  helper.insecure = config.Bool("helper.insecure", false);
  helper.tls = ReadTlsFiles(config);
  helper.checksums =
      config.Bool("helper.checksums", true) ? StoredChecksums::kWrite : StoredChecksums::kOmit;
  const std::string store = config.String("helper.store", "plain");
  helper.store = store == "hdfs"  ? StoreKind::kHdfs
                 : store == "qfs" ? StoreKind::kQfs
                                  : StoreKind::kPlain;
  helper.chunkserver = config.String("helper.chunkserver", "");
  helper.report_interval = FromSeconds(config.Seconds("helper.report_seconds", 30, 3600));
  helper.endpoint = ReadEndpointConfig(config);
  helper.control_address = config.String("listen.control", "127.0.0.1:7711");
  helper.data_address = config.String("listen.data", "127.0.0.1:7712");
  helper.advertised_control_address = config.String("listen.advertise_control", "");
  helper.advertised_data_address = config.String("listen.advertise_data", "");
  helper.redis_address = config.String("redis.address", "");
  helper.redis_password_file = config.String("redis.password_file", "");
  helper.web = ReadWebOptions(config);
  helper.audit_path = config.String("audit.file", "");
  helper.log = ReadLog(config);
  helper.drain_patience = FromSeconds(config.Seconds("timeouts.drain_seconds", 30, 3600));
  ReadLimits(config, &helper);

  if (absl::Status id = ValidateBlockId(helper.node_id); !helper.node_id.empty() && !id.ok()) {
    config.Reject("helper.node_id", std::string(id.message()));
  }
  if (store != "plain" && store != "hdfs" && store != "qfs") {
    config.Reject("helper.store", "'" + store + "' is not one of plain, hdfs, qfs");
  }
  CheckChunkserver(config, helper);
  constexpr Duration kShortestInterval = std::chrono::milliseconds(100);
  if (helper.report_interval < kShortestInterval) {
    config.Reject("helper.report_seconds",
                  "must be at least 0.1: each scan looks at all directories");
  }
  for (const auto& [key, address] :
       {std::pair("helper.coordinator", helper.coordinator),
        std::pair("listen.advertise_control", helper.advertised_control_address),
        std::pair("listen.advertise_data", helper.advertised_data_address),
        std::pair("redis.address", helper.redis_address)}) {
    if (address.empty()) continue;
    const auto parsed = ParseHostPort(address);
    if (!parsed.ok()) config.Reject(key, std::string(parsed.status().message()));
  }
  if (check) config.Reject(check(helper));
  ECPIPE_RETURN_IF_ERROR(config.Finish());
  helper.values = config.values();
  return helper;
}

const std::set<std::string>& ReloadableHelperKeys() {
  static const auto* const keys =
      new std::set<std::string>{"limits.max_sessions", "limits.repair_mbit", "log.format",
                                "log.level", "timeouts.drain_seconds"};
  return *keys;
}

}  // namespace ecpipe
