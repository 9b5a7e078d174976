// SPDX-License-Identifier: Apache-2.0
// Whether blocks are where the catalog has them.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "coordinator/cluster/corrupt_blocks.h"
#include "coordinator/cluster/node_registry.h"
#include "coordinator/repairs/helper_gateway.h"
#include "coordinator/store/catalog.h"

namespace ecpipe {

enum class Presence {
  kThere,  // with the length that the catalog has
  kMissing,
  kWrongLength,
  kUnreadable,
  kNotAsked,  // the helper does not answer, or has too much to look for
  kUnknown,   // the catalog does not have the block
  kCorrupt,   // it is marked as corrupt, or another block than the catalog has
};

struct CheckedBlock {
  std::string block_id;
  std::string node;  // of the catalog
  Presence presence = Presence::kNotAsked;
  std::string detail;  // why, in words
};

struct PresenceCheck {
  Catalog* catalog;
  NodeRegistry* nodes;
  CorruptBlocks* corrupt;
  HelperGateway* helpers;
  const Clock* clock;
  Duration patience;  // with all helpers, which are asked at the same time
};

// Asks each block's helper, which reads no bytes. At most kMaxBlocksInQuestion blocks. One answer
// for each, in order. A block that is another one than the catalog has becomes a suspect by this:
// it is checked, and no plan reads it meanwhile.
std::vector<CheckedBlock> CheckPresence(const std::vector<std::string>& block_ids,
                                        const PresenceCheck& check);

}  // namespace ecpipe
