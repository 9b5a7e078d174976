// SPDX-License-Identifier: Apache-2.0
#include "common/block_layout.h"

#include <string>

namespace ecpipe {

absl::Status BlockLayout::Validate() const {
  if (sub_blocks == 0 || sub_blocks > kMaxSubBlocks) {
    return absl::InvalidArgumentError(std::to_string(sub_blocks) + " sub-blocks are not 1 to " +
                                      std::to_string(kMaxSubBlocks));
  }
  if ((sub_blocks > 1) != (unit_bytes > 0) || unit_bytes > kMaxUnitBytes) {
    return absl::InvalidArgumentError(std::to_string(sub_blocks) + " sub-blocks in units of " +
                                      std::to_string(unit_bytes) + " bytes are not possible");
  }
  return absl::OkStatus();
}

}  // namespace ecpipe
