// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace ecpipe {

// A file that has a block.
struct BlockFile {
  std::string block_id;
  uint64_t bytes = 0;
  std::string version;  // the store's own words: another file of that block has another one

  friend bool operator==(const BlockFile&, const BlockFile&) = default;
};

}  // namespace ecpipe
