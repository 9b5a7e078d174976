// SPDX-License-Identifier: Apache-2.0
#include "requestor/upkeep/drain_command.h"

#include <memory>
#include <optional>
#include <vector>

#include "base/status.h"

namespace ecpipe {
namespace {

absl::StatusOr<RecoveryRequest> RequestOf(const DrainArguments& arguments) {
  RecoveryRequest request = arguments.request;
  request.kind = RecoveryKind::kMove;
  if (!arguments.policy.empty()) {
    const std::optional<RecoveryPolicy> policy = RecoveryPolicyNamed(arguments.policy);
    if (!policy) return absl::InvalidArgumentError("unknown policy '" + arguments.policy + "'");
    request.policy = *policy;
  }
  if (!arguments.transport.empty()) {
    ECPIPE_ASSIGN_OR_RETURN(request.transport, TransportNamed(arguments.transport));
  }
  return request;
}

// What came to the node although it takes no blocks: somebody has put stripes into the catalog.
absl::Status CheckIsEmpty(CatalogApi* catalog, const std::string& node) {
  ECPIPE_ASSIGN_OR_RETURN(const std::vector<std::string> left, catalog->NodeBlocks(node));
  if (left.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError("the catalog still has " + std::to_string(left.size()) +
                                       " blocks on node " + node + ", such as " + left.front() +
                                       "; drain it again, once nobody loads stripes onto it");
}

}  // namespace

absl::Status RunDrain(const CommonArguments& common, const DrainArguments& arguments) {
  ECPIPE_ASSIGN_OR_RETURN(const RecoveryRequest request, RequestOf(arguments));
  ECPIPE_ASSIGN_OR_RETURN(const std::unique_ptr<CatalogApi> catalog, ConnectCatalog(common));
  if (arguments.dry_run) return PrintEffects(common, catalog->WouldDrain(request));
  ECPIPE_ASSIGN_OR_RETURN(const std::unique_ptr<CoordinatorApi> coordinator,
                          ConnectCoordinator(common));
  // Before it begins: then they are on other nodes.
  absl::StatusOr<std::vector<std::string>> blocks = std::vector<std::string>();
  if (!arguments.detach) blocks = catalog->NodeBlocks(request.node);
  ECPIPE_RETURN_IF_ERROR(blocks.status());
  ECPIPE_ASSIGN_OR_RETURN(const uint64_t id, catalog->DrainNode(request));
  if (arguments.detach) {
    PrintRecoveryBegun(common, id);
    return absl::OkStatus();
  }
  ECPIPE_RETURN_IF_ERROR(FollowAndVerify(common, coordinator.get(), catalog.get(), id, blocks));
  return CheckIsEmpty(catalog.get(), request.node);
}

}  // namespace ecpipe
