// SPDX-License-Identifier: Apache-2.0
// Reads and sets the limits on repairs, for operators.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "net/tls/tls.h"

namespace ecpipe {

// Rates are in bytes per second that repairs send over the network; 0 is no limit.
struct ClusterLimitsView {
  struct Node {
    std::string node;
    std::string state;                        // as in NodeStatus
    double repair_bytes_per_second = 0;       // the limit at the helper, by its latest heartbeat
    uint32_t max_sessions = 0;                // the limit at the helper, by its latest heartbeat
    std::optional<double> set_repair_bytes_per_second;  // by SetLimits
    std::optional<uint32_t> set_max_sessions;
  };
  double repair_bytes_per_second = 0;  // of all helpers together
  bool rate_is_set = false;            // set by SetLimits; false: as configured
  uint32_t max_running = 0;            // repairs at once
  bool max_running_is_set = false;
  std::vector<Node> nodes;             // by id
};

// Only limits that are set here change.
struct LimitsChange {
  std::string node;    // empty: the cluster's limits
  bool reset = false;  // first go back to the limits in the configurations
  std::optional<double> repair_bytes_per_second;
  std::optional<uint32_t> max_running;   // of the cluster
  std::optional<uint32_t> max_sessions;  // of a node
};

// Thread-safe. UNAVAILABLE and DEADLINE_EXCEEDED name the coordinator; other errors are its own.
class LimitsClient {
 public:
  virtual ~LimitsClient() = default;
  virtual absl::StatusOr<ClusterLimitsView> Get() = 0;
  // The new limits hold when this returns; for running repairs they hold within about a second.
  virtual absl::Status Set(const LimitsChange& change) = 0;
};

// As MakeCoordinatorClient.
absl::StatusOr<std::unique_ptr<LimitsClient>> MakeLimitsClient(
    const std::string& address, Duration timeout, const std::shared_ptr<TlsContext>& tls);

}  // namespace ecpipe
