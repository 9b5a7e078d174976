// SPDX-License-Identifier: Apache-2.0
// Where the blocks of a request are: in a stripe of the catalog, or in one that the request itself
// describes.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/stripe_facts.h"
#include "coordinator/catalog.h"
#include "coordinator/node_registry.h"

namespace ecpipe {

struct LostBlocks {
  Stripe stripe;
  std::vector<int> indices;  // in the stripe, in the request's order
  // By block index: all nodes that have a replica of it, of which its place names the first. Empty:
  // each block is where its place says, and nowhere else.
  std::vector<std::vector<std::string>> replicas;
};

// INVALID_ARGUMENT: none, too many, one twice, or not all of one stripe. NOT_FOUND: no stripe has
// the first one.
absl::StatusOr<LostBlocks> FindLost(Catalog* catalog, const std::vector<std::string>& block_ids);

// The same of a block group of HDFS. A place that nobody has is empty; a DataNode beside which no
// helper has registered stands for itself, by a name that is no node's. INVALID_ARGUMENT: facts
// that cannot be, or blocks that are not the group's.
absl::StatusOr<LostBlocks> FindLost(const StripeFacts& facts,
                                    const std::vector<std::string>& block_ids, NodeRegistry* nodes);

}  // namespace ecpipe
