// SPDX-License-Identifier: Apache-2.0
// The limits on repairs that operators set at run time, and how the limit of the cluster is divided
// among nodes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"

namespace ecpipe {

// A limit that is not set is as in the configuration. Rates are in bytes per second; 0 is no limit.
struct LimitsOfCluster {
  std::optional<double> repair_bytes_per_second;  // of all helpers together
  std::optional<uint32_t> max_running;            // repairs at once

  friend bool operator==(const LimitsOfCluster&, const LimitsOfCluster&) = default;
};
struct LimitsOfNode {
  std::optional<double> repair_bytes_per_second;
  std::optional<uint32_t> max_sessions;

  friend bool operator==(const LimitsOfNode&, const LimitsOfNode&) = default;
};
struct Limits {
  LimitsOfCluster cluster;
  std::map<std::string, LimitsOfNode> nodes;  // by node id; only nodes with a limit that is set

  friend bool operator==(const Limits&, const Limits&) = default;
};

// INVALID_ARGUMENT for a limit that cannot be meant: a rate under 1 Mb/s that is not 0, or 0
// sessions; or for a bad node id.
absl::Status CheckLimits(const LimitsOfCluster& limits);
absl::Status CheckLimits(const std::string& node, const LimitsOfNode& limits);

// The share of the cluster's rate that a node may send, in proportion to the streams that running
// repairs send from it. A node that sends nothing yet gets the share that it would have if all
// nodes sent; it asks again when its first session begins. 0 only if `rate` is 0.
double ShareOfRate(double rate, uint64_t streams_of_node, uint64_t streams_of_all,
                   uint64_t live_nodes);

}  // namespace ecpipe
