// SPDX-License-Identifier: Apache-2.0
// The internal blocks on a helper's disks at one time, and what is different at another.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/block_report.h"

namespace ecpipe {

struct ListedBlock {
  InternalBlock block;
  int64_t changed_unix_ns = 0;  // its file, in whatever way

  friend bool operator==(const ListedBlock&, const ListedBlock&) = default;
};

// By pool; each in the order of ids, which come once.
using BlockListing = std::map<std::string, std::vector<ListedBlock>>;

// A listing that a store has taken. `scans` counts up: by it one listing is told from the next also
// where nothing has changed.
struct TakenListing {
  uint64_t scans = 0;
  std::shared_ptr<const BlockListing> blocks;  // shared with the store; null: none was taken yet
};

// What makes `after` of `before`. A block whose file is newer counts as added, whatever else is the
// same. Pools in which nothing has changed are not named. `now_unix_ns` is what ages count from.
std::map<std::string, BlockChanges> ChangesBetween(const BlockListing& before,
                                                   const BlockListing& after, int64_t now_unix_ns);

}  // namespace ecpipe
