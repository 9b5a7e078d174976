// SPDX-License-Identifier: Apache-2.0
// Finds the blocks of a request: in a stripe of the catalog, or in a stripe that the request itself
// describes.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/cluster/node_registry.h"
#include "coordinator/planning/code_cache.h"
#include "coordinator/store/catalog.h"
#include "model/stripe_facts.h"

namespace ecpipe {

struct WantedBlocks {
  Stripe stripe;
  std::vector<int> indices;  // in the stripe, in the request's order
  // By block index: all nodes that have a replica of the block; its place names the first of them.
  // Empty: each block is only where its place says.
  std::vector<std::vector<std::string>> replicas;
};

// INVALID_ARGUMENT: no blocks, too many, one of them twice, or blocks of different stripes.
// NOT_FOUND: no stripe has the first block.
absl::StatusOr<WantedBlocks> FindWanted(Catalog* catalog,
                                        const std::vector<std::string>& block_ids);

// The same for a stripe that a storage system describes. The place of a block that no node has is
// empty; a node of that system without a registered helper gets a name that no node has.
// INVALID_ARGUMENT: bad facts, or blocks that do not belong to the stripe.
absl::StatusOr<WantedBlocks> FindWanted(const StripeFacts& facts,
                                        const std::vector<std::string>& block_ids,
                                        NodeRegistry* nodes);

// INVALID_ARGUMENT unless the code of these facts is known, and their blocks fit it in number and
// length: a repair with another code would be accepted by the storage system, and be wrong.
absl::Status CheckFacts(const StripeFacts& facts, CodeCache* codes);

}  // namespace ecpipe
