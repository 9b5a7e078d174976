// SPDX-License-Identifier: Apache-2.0
// How operators look at what HDFS has lost.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/tls.h"
#include "requestor/coordinator_api.h"

namespace ecpipe {

struct LostCount {
  uint64_t blocks = 0;
  uint64_t bytes = 0;
};

// What became of the blocks that a DataNode had. Of one that is not dead nothing is lost.
struct NodeLossView {
  std::string node;
  std::string state;  // as in NodeStatus
  double seconds_since_heartbeat = 0;
  LostCount lost;  // the next three make it up
  LostCount rebuilt;
  LostCount gone;  // not wanted any more
  LostCount outstanding;
  std::array<uint64_t, 3> by_missing{};  // outstanding, of groups that lack 1, 2, 3 and more
  uint64_t of_unknown_groups = 0;
  uint64_t beyond_repair = 0;
  uint64_t repairs_running = 0;
  double report_age_seconds = 0;
  uint64_t unreported_nodes = 0;  // live, but what they have is not known yet
  HdfsFactsStatus facts;
};

// Thread-safe.
class HdfsClient {
 public:
  virtual ~HdfsClient() = default;
  // Nullopt: it is not a DataNode of HDFS, or the coordinator knows no such node. NOT_FOUND: one
  // that has told nothing of its blocks. UNAVAILABLE and DEADLINE_EXCEEDED name the coordinator.
  virtual absl::StatusOr<std::optional<NodeLossView>> Loss(const std::string& node) = 0;
};

// As MakeCoordinatorClient.
absl::StatusOr<std::unique_ptr<HdfsClient>> MakeHdfsClient(const std::string& address,
                                                           Duration timeout,
                                                           const std::shared_ptr<TlsContext>& tls);

}  // namespace ecpipe
