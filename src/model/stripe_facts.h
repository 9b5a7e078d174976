// SPDX-License-Identifier: Apache-2.0
// What a storage system says of a stripe that no catalog has. The coordinator plans from it as from
// a stripe of its catalog. A request for a repair can carry it, or a StripeSource of the
// coordinator finds it out. How a system computes it is in model/systems.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace ecpipe {

struct StripeFacts {
  struct Block {
    std::string name;    // as model/block_id.h has it
    uint64_t bytes = 0;  // 0: the block does not exist, and counts as zeros

    friend bool operator==(const Block&, const Block&) = default;
  };
  // A node of the storage system that has a block of the stripe.
  struct Source {
    int index = 0;           // of the block
    std::string storage_id;  // as the helper beside that node registers it

    friend bool operator==(const Source&, const Source&) = default;
  };
  // Codes over GF(2^8) have no more.
  static constexpr int kMaxBlocks = 255;
  // Surplus replicas and nodes that are being emptied can give a block more than one source.
  static constexpr size_t kMaxSources = 512;

  std::string stripe_id;
  std::string code;             // a name that CreateErasureCode takes
  std::vector<Block> blocks;    // n of them; the position is the block's index in the code
  std::vector<Source> sources;  // one for each replica, in any order

  // INVALID_ARGUMENT, naming what is wrong: a field out of its range, or facts that contradict each
  // other, such as two blocks of one name or a source of a block that does not exist. Whether the
  // code is known, and fits the blocks, only CheckFacts in coordinator/planning can tell. The other
  // function requires valid facts.
  absl::Status Validate() const;

  uint64_t LongestBlock() const;  // in bytes

  friend bool operator==(const StripeFacts&, const StripeFacts&) = default;
};

}  // namespace ecpipe
