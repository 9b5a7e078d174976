// SPDX-License-Identifier: Apache-2.0
// HDFS-3's blocks by name: "<pool>.blk_<id>_<stamp>", such as
// "BP-1-127.0.0.1-17.blk_-9223372036854775791_1001". The generation stamp is a part of the name, so
// that a replica of another generation is another block.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace ecpipe {

struct HdfsBlock {
  std::string pool;
  int64_t id = 0;
  uint64_t stamp = 0;  // at most INT64_MAX, as in HDFS

  // A block id as all of ECPipe uses it (block_id.h).
  std::string Name() const;

  friend bool operator==(const HdfsBlock&, const HdfsBlock&) = default;
};

// INVALID_ARGUMENT for a text that Name() does not write.
absl::StatusOr<HdfsBlock> ParseHdfsBlock(const std::string& name);

// Operators copy names from HDFS's logs and from fsck, which write "<pool>:blk_<id>_<stamp>".
// Returns Name() of such a block; any other text comes back as it is.
std::string CanonicalBlockId(const std::string& text);

// INVALID_ARGUMENT unless a directory of this name can be a block pool's: an id (block_id.h).
absl::Status ValidateHdfsPool(const std::string& pool);

}  // namespace ecpipe
