// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "helper/session_manager.h"

namespace ecpipe {

// deploy/helper.toml explains each key.
struct HelperConfig {
  std::string node_id;
  std::string rack;
  std::string coordinator;
  std::vector<std::string> roots;
  bool insecure = false;
  std::string control_address;            // to listen on
  std::string data_address;               // to listen on
  std::string advertised_control_address; // what others dial; empty: what was bound
  std::string advertised_data_address;
  std::string redis_address;              // empty: no redis transport
  std::string metrics_address;            // empty: no metrics
  std::string log_level;
  SessionManager::Options sessions;
  Duration drain_patience{};
};

// INVALID_ARGUMENT with file:line for anything that is wrong.
absl::StatusOr<HelperConfig> LoadHelperConfig(const std::string& path);

}  // namespace ecpipe
