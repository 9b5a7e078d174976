// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "helper/store/block_store.h"
#include "model/corrupt_block.h"

namespace ecpipe {

// Reads whole blocks, so that a doubt about one of them ends. One at a time: disks are for repairs.
// Thread-safe.
class WholeBlocks {
 public:
  // `store` outlives this.
  explicit WholeBlocks(BlockStore* store) : store_(store) {}

  // Reads the block in the caller's thread, until `stop` returns true, which is asked each MiB:
  // CANCELLED then. DATA_LOSS: the block does not match its checksums. RESOURCE_EXHAUSTED: another
  // call reads one. Other errors are those of BlockStore::Open and BlockReader::ReadAt.
  absl::StatusOr<WholeBlock> Check(const std::string& block_id, const std::function<bool()>& stop);

 private:
  BlockStore* const store_;
  std::atomic<bool> busy_{false};
};

}  // namespace ecpipe
