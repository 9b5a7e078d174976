// SPDX-License-Identifier: Apache-2.0
// Shows operators the blocks that HDFS has lost with a DataNode.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "model/node_loss.h"
#include "net/tls/tls.h"

namespace ecpipe {

// Thread-safe.
class HdfsClient {
 public:
  virtual ~HdfsClient() = default;
  // Nullopt: the node is not an HDFS DataNode, or the coordinator does not know it. NOT_FOUND: the
  // DataNode never reported its blocks. UNAVAILABLE and DEADLINE_EXCEEDED name the coordinator.
  virtual absl::StatusOr<std::optional<NodeLoss>> Loss(const std::string& node) = 0;
};

// As MakeCoordinatorClient.
absl::StatusOr<std::unique_ptr<HdfsClient>> MakeHdfsClient(const std::string& address,
                                                           Duration timeout,
                                                           const std::shared_ptr<TlsContext>& tls);

}  // namespace ecpipe
