// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ecpipe {

// A block that a recovery is to rebuild.
struct LostBlock {
  std::string block_id;
  uint64_t bytes = 0;
  int needed = 0;                    // survivors that an MDS code of this k needs
  std::vector<std::string> holders;  // nodes of the stripe's other blocks, as last looked up
  // The last attempt brought wrong bytes: the next one should locate the survivor they come from.
  bool uncertain = false;
};

}  // namespace ecpipe
