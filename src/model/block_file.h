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
  double age_seconds = 0;  // since it was changed in any way
};

inline bool IsSameFile(const BlockFile& a, const BlockFile& b) {
  return a.block_id == b.block_id && a.bytes == b.bytes && a.version == b.version;
}

}  // namespace ecpipe
