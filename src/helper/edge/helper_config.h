// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/process/config.h"
#include "base/process/log.h"
#include "helper/edge/endpoint_config.h"
#include "helper/sessions/session_manager.h"
#include "helper/store/plain/plain_store.h"
#include "net/tls/tls_files.h"
#include "web/web_options.h"

namespace ecpipe {

// The storage system that keeps the blocks beside the helper.
enum class StoreKind { kPlain, kHdfs, kQfs };

// deploy/helper.toml explains each key.
struct HelperConfig {
  ConfigValues values;  // all of them, by key
  std::string node_id;
  std::string rack;
  std::string coordinator;
  std::vector<std::string> roots;
  StoreKind store = StoreKind::kPlain;
  Duration report_interval{};  // between scans of an HDFS or QFS store, which are reported
  std::string chunkserver;     // of a QFS store: where its chunkserver listens, host:port
  EndpointConfig endpoint;
  bool insecure = false;
  TlsFiles tls;
  StoredChecksums checksums = StoredChecksums::kWrite;
  std::string control_address;             // to listen on
  std::string data_address;                // to listen on
  std::string advertised_control_address;  // what others dial; empty: what was bound
  std::string advertised_data_address;
  std::string redis_address;        // empty: no redis transport
  std::string redis_password_file;  // empty: no password
  WebOptions web;
  std::string audit_path;  // empty: no audit log
  LogSettings log;
  double repair_bytes_per_second = 0;  // 0: no limit
  SessionManager::Options sessions;
  Duration drain_patience{};
};

// INVALID_ARGUMENT with file:line for anything that is wrong.
absl::StatusOr<HelperConfig> LoadHelperConfig(const std::string& path,
                                              const ConfigCheck<HelperConfig>& check = nullptr);

// The keys that it takes up on SIGHUP.
const std::set<std::string>& ReloadableHelperKeys();

}  // namespace ecpipe
