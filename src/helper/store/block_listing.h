// SPDX-License-Identifier: Apache-2.0
// The blocks of HDFS block groups on a helper's disks, and the difference between two such lists.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model/block_report.h"

namespace ecpipe {

struct ListedBlock {
  InternalBlock block;
  int64_t changed_unix_ns = 0;  // when its file was last changed in any way

  friend bool operator==(const ListedBlock&, const ListedBlock&) = default;
};

// By pool; each in the order of ids, which come once.
using BlockListing = std::map<std::string, std::vector<ListedBlock>>;

// A listing that a store has taken. `scans` counts up, so that a new listing can be told from the
// one before even if nothing has changed.
struct TakenListing {
  uint64_t scans = 0;
  std::shared_ptr<const BlockListing> blocks;  // shared with the store; null: none was taken yet
};

// The changes from `before` to `after`. A block whose file is newer counts as added, even if all
// else is the same. Pools without changes are left out. Ages are relative to `now_unix_ns`.
std::map<std::string, BlockChanges> ChangesBetween(const BlockListing& before,
                                                   const BlockListing& after, int64_t now_unix_ns);

}  // namespace ecpipe
