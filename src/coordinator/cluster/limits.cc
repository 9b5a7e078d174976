// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cluster/limits.h"

#include <algorithm>

#include "base/status.h"
#include "model/block_id.h"

namespace ecpipe {
namespace {

// Below 1 Mb/s a slice takes so long that the next node takes it for a stall.
constexpr double kLeastRate = 1e6 / 8;
constexpr double kMostRate = 1e13 / 8;
// As in the configurations.
constexpr uint32_t kMostRunning = 1'000'000;
constexpr uint32_t kMostSessions = 4096;

absl::Status CheckRate(const std::optional<double>& rate) {
  if (!rate || *rate == 0 || (*rate >= kLeastRate && *rate <= kMostRate)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "a rate limit must be 0 for no limit, or from 1 to 10000000 Mb/s");
}

absl::Status CheckCount(const char* name, const std::optional<uint32_t>& count, uint32_t most) {
  if (!count || (*count >= 1 && *count <= most)) return absl::OkStatus();
  return absl::InvalidArgumentError(std::string(name) + " must be from 1 to " +
                                    std::to_string(most));
}

}  // namespace

absl::Status CheckLimits(const LimitsOfCluster& limits) {
  ECPIPE_RETURN_IF_ERROR(CheckRate(limits.repair_bytes_per_second));
  return CheckCount("max_running", limits.max_running, kMostRunning);
}

absl::Status CheckLimits(const std::string& node, const LimitsOfNode& limits) {
  // Node ids are made of the same characters as block ids.
  ECPIPE_RETURN_IF_ERROR(Annotate(ValidateBlockId(node), "node id"));
  ECPIPE_RETURN_IF_ERROR(CheckRate(limits.repair_bytes_per_second));
  return CheckCount("max_sessions", limits.max_sessions, kMostSessions);
}

double ShareOfRate(double rate, uint64_t streams_of_node, uint64_t streams_of_all,
                   uint64_t live_nodes) {
  if (streams_of_node == 0) {
    return rate / static_cast<double>(std::max({streams_of_all, live_nodes, uint64_t{1}}));
  }
  return rate * static_cast<double>(streams_of_node) / static_cast<double>(streams_of_all);
}

}  // namespace ecpipe
