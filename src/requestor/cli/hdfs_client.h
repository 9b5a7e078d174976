// SPDX-License-Identifier: Apache-2.0
// Shows operators the blocks that HDFS has lost with a DataNode.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "net/tls/tls.h"
#include "requestor/client/coordinator_api.h"

namespace ecpipe {

struct LostCount {
  uint64_t blocks = 0;
  uint64_t bytes = 0;
};

// What became of the blocks of a DataNode. A DataNode that is not dead has lost no blocks.
struct NodeLossView {
  std::string node;
  std::string state;  // as in NodeStatus; by the NameNode, or by heartbeats where it does not say
  double seconds_since_heartbeat = 0;  // since its last sign of life
  LostCount lost;  // the sum of the next three
  LostCount rebuilt;
  LostCount gone;  // blocks that need no repair: their group was deleted or written anew
  LostCount outstanding;
  std::array<uint64_t, 3> by_missing{};  // outstanding blocks in groups that lack 1, 2, 3 or more
  uint64_t of_unknown_groups = 0;
  uint64_t beyond_repair = 0;
  uint64_t repairs_running = 0;
  double report_age_seconds = 0;
  uint64_t unreported_nodes = 0;  // live DataNodes that have not reported their blocks yet
  std::string state_in_hdfs;  // "live" or "dead", by the NameNode; empty: it does not say
  std::string helper_state;   // by the heartbeats of the helper beside the DataNode
  double helper_silent_seconds = 0;
  HdfsFactsStatus facts;
};

// Thread-safe.
class HdfsClient {
 public:
  virtual ~HdfsClient() = default;
  // Nullopt: the node is not an HDFS DataNode, or the coordinator does not know it. NOT_FOUND: the
  // DataNode never reported its blocks. UNAVAILABLE and DEADLINE_EXCEEDED name the coordinator.
  virtual absl::StatusOr<std::optional<NodeLossView>> Loss(const std::string& node) = 0;
};

// As MakeCoordinatorClient.
absl::StatusOr<std::unique_ptr<HdfsClient>> MakeHdfsClient(const std::string& address,
                                                           Duration timeout,
                                                           const std::shared_ptr<TlsContext>& tls);

}  // namespace ecpipe
