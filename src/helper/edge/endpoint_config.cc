// SPDX-License-Identifier: Apache-2.0
#include "helper/edge/endpoint_config.h"

#include <charconv>

#include "base/process/daemon.h"
#include "base/status.h"
#include "net/endpoint_address.h"
#include "net/tcp_socket.h"

namespace ecpipe {
namespace {

// As chmod takes it: "0660".
bool ReadMode(const std::string& text, uint32_t* mode) {
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, *mode, 8);
  return error == std::errc() && rest == end && *mode <= 0777;
}

}  // namespace

EndpointConfig ReadEndpointConfig(Config& config) {
  EndpointConfig endpoint;
  endpoint.address = config.String("endpoint.address", "");
  const std::string mode = config.String("endpoint.mode", "0660");
  endpoint.max_connections = static_cast<uint32_t>(
      config.Integer("endpoint.max_connections", endpoint.max_connections, 1, 4096));
  endpoint.allow_users = config.Strings("endpoint.allow_users");
  endpoint.allow_groups = config.Strings("endpoint.allow_groups");
  endpoint.first_users = config.Strings("endpoint.first_users");
  endpoint.cookie = config.String("endpoint.cookie", "");
  const std::string cookie_mode = config.String("endpoint.cookie_mode", "0600");
  if (!endpoint.address.empty()) {
    const absl::Status form = ParseEndpointAddress(endpoint.address).status();
    if (!form.ok()) config.Reject("endpoint.address", std::string(form.message()));
  }
  if (!ReadMode(mode, &endpoint.mode)) {
    config.Reject("endpoint.mode", "'" + mode + "' is not an octal file mode such as \"0660\"");
  }
  if (!ReadMode(cookie_mode, &endpoint.cookie_mode)) {
    config.Reject("endpoint.cookie_mode",
                  "'" + cookie_mode + "' is not an octal file mode such as \"0600\"");
  }
  return endpoint;
}

absl::StatusOr<RequestorOnlyConfig> LoadRequestorOnlyConfig(
    const std::string& path, const ConfigCheck<RequestorOnlyConfig>& check) {
  ECPIPE_ASSIGN_OR_RETURN(Config config, Config::Load(path));
  RequestorOnlyConfig requestor;
  requestor.coordinator = config.RequiredString("requestor.coordinator");
  requestor.name = config.String("requestor.name", "");
  requestor.insecure = config.Bool("requestor.insecure", false);
  requestor.tls = ReadTlsFiles(config);
  config.RequiredString("endpoint.address");
  requestor.endpoint = ReadEndpointConfig(config);
  requestor.redis_password_file = config.String("redis.password_file", "");
  requestor.web = ReadWebOptions(config);
  requestor.log = ReadLog(config);
  if (!requestor.coordinator.empty() && !ParseHostPort(requestor.coordinator).ok()) {
    config.Reject("requestor.coordinator",
                  "'" + requestor.coordinator + "' is not an address of the form host:port");
  }
  if (check) config.Reject(check(requestor));
  ECPIPE_RETURN_IF_ERROR(config.Finish());
  requestor.values = config.values();
  return requestor;
}

const std::set<std::string>& ReloadableRequestorOnlyKeys() {
  static const auto* const keys = new std::set<std::string>{"log.format", "log.level"};
  return *keys;
}

}  // namespace ecpipe
