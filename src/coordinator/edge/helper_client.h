// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <stop_token>
#include <string>

#include "base/mutex.h"
#include "coordinator/cluster/node_table.h"
#include "coordinator/repairs/helper_gateway.h"
#include "coordinator/upkeep/extra_copies.h"
#include "ecpipe/v1/helper.grpc.pb.h"
#include "model/corrupt_block.h"
#include "rpc/rpc_security.h"

namespace ecpipe {

// Keeps a channel to every helper, so that handing out a part costs one round trip.
class HelperClient : public HelperGateway, public BlockFileGateway {
 public:
  // Twice as many as nodes can be registered: nodes move, and are forgotten.
  static constexpr size_t kMaxConnections = 2 * NodeTable::kMaxNodes;

  // `tls` null: plain text.
  explicit HelperClient(const std::shared_ptr<TlsContext>& tls,
                        size_t max_connections = kMaxConnections)
      : tls_(tls != nullptr), max_connections_(max_connections), security_(tls) {}

  std::vector<absl::StatusOr<Started>> StartParts(const std::vector<Handout>& handouts,
                                                  Duration timeout,
                                                  std::optional<Duration> straggler_after) override;
  std::vector<absl::StatusOr<PartProgress>> AskParts(
      RepairId repair_id, uint32_t attempt, const std::vector<HelperAddress>& helpers,
      Duration timeout, std::optional<Duration> straggler_after) override;
  std::vector<absl::Status> CancelRepair(RepairId repair_id, uint32_t attempt,
                                         const std::vector<HelperAddress>& helpers) override;
  std::vector<absl::Status> EndAttempt(RepairId repair_id, uint32_t attempt,
                                       const std::vector<HelperAddress>& helpers) override;
  std::vector<absl::StatusOr<FoundBlocks>> FindBlocks(const std::vector<BlockQuestion>& questions,
                                                      Duration timeout) override;
  absl::StatusOr<Files> ListBlockFiles(const HelperAddress& helper,
                                       const std::string& after) override;
  absl::StatusOr<std::vector<absl::Status>> RemoveBlockFiles(
      const HelperAddress& helper, const std::vector<BlockFile>& files) override;
  void ForgetConnection(const std::string& control_address) override;
  size_t connections();  // that are kept

  // Has the helper read a block from beginning to end, which may take minutes. DEADLINE_EXCEEDED
  // after ten of them, CANCELLED when `stop` is asked to stop. Other errors are those of
  // HelperService.CheckBlock.
  absl::StatusOr<WholeBlock> CheckBlock(const HelperAddress& helper, const std::string& block_id,
                                        const std::stop_token& stop) override;

 private:
  // Shared: a call under way keeps its stub when the connection is forgotten.
  using Stub = std::shared_ptr<v1::HelperService::Stub>;
  Stub StubFor(const HelperAddress& helper);
  std::vector<absl::Status> EndParts(RepairId repair_id, uint32_t attempt,
                                     const std::vector<HelperAddress>& helpers, bool keep);

  const bool tls_;
  const size_t max_connections_;
  const RpcSecurity security_;
  Mutex mutex_;
  // By address and node: with TLS a connection is to that node alone. Without, the node is empty.
  std::map<std::pair<std::string, std::string>, Stub> stubs_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ecpipe
