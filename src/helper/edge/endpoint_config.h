// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/process/config.h"
#include "base/process/log.h"
#include "net/tls/tls_files.h"
#include "web/web_options.h"

namespace ecpipe {

// The table [endpoint], in which deploy/helper.toml explains each key.
struct EndpointConfig {
  std::string address;  // as in net/endpoint_address.h; empty: no endpoint
  uint32_t mode = 0660;
  uint32_t max_connections = 64;
  std::vector<std::string> allow_users;
  std::vector<std::string> allow_groups;
  std::vector<std::string> first_users;
  std::string cookie;  // a path; empty: none
  uint32_t cookie_mode = 0600;
};

// Reads the table. Config::Finish() reports errors.
EndpointConfig ReadEndpointConfig(Config& config);

// The configuration of ecpipe-helper --requestor-only, which serves an endpoint and no blocks:
// deploy/requestor.toml.
struct RequestorOnlyConfig {
  ConfigValues values;  // all of them, by key
  std::string coordinator;
  std::string name;  // for logs and status; empty: host name and process id
  bool insecure = false;
  TlsFiles tls;
  EndpointConfig endpoint;
  std::string redis_password_file;  // empty: no password
  WebOptions web;
  LogSettings log;
};

// INVALID_ARGUMENT with file:line for anything that is wrong.
absl::StatusOr<RequestorOnlyConfig> LoadRequestorOnlyConfig(
    const std::string& path, const ConfigCheck<RequestorOnlyConfig>& check = nullptr);

// The keys that it takes up on SIGHUP.
const std::set<std::string>& ReloadableRequestorOnlyKeys();

}  // namespace ecpipe
