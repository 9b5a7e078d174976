// SPDX-License-Identifier: Apache-2.0
#include "model/plan/block_layout.h"

#include <string>

namespace ecpipe {

absl::Status BlockLayout::Validate() const {
  if (sub_blocks == 0 || sub_blocks > kMaxSubBlocks) {
    return absl::InvalidArgumentError("a block is cut into 1 to " + std::to_string(kMaxSubBlocks) +
                                      " sub-blocks, not into " + std::to_string(sub_blocks));
  }
  if ((sub_blocks > 1) != (unit_bytes > 0) || unit_bytes > kMaxUnitBytes) {
    return absl::InvalidArgumentError("a block cannot be cut into " + std::to_string(sub_blocks) +
                                      " sub-blocks in units of " + std::to_string(unit_bytes) +
                                      " bytes");
  }
  return absl::OkStatus();
}

}  // namespace ecpipe
