// SPDX-License-Identifier: Apache-2.0
#include "common/stripe_facts.h"

#include <algorithm>

#include "common/block_id.h"
#include "common/hdfs_block.h"
#include "common/slice_grid.h"
#include "common/status.h"

namespace ecpipe {
namespace {

// Far above the 4 MiB that a NameNode allows by default, and far from any overflow.
constexpr uint64_t kMaxCellBytes = uint64_t{1} << 30;

absl::Status Bad(const std::string& what) { return absl::InvalidArgumentError(what); }

}  // namespace

absl::Status StripeFacts::Validate() const {
  ECPIPE_RETURN_IF_ERROR(Annotate(ValidateHdfsPool(pool), "pool"));
  if (group >= 0 || group % kMaxBlocks != 0) {
    return Bad("group " + std::to_string(group) + " is not a block group's id");
  }
  if (stamp > static_cast<uint64_t>(INT64_MAX)) return Bad("the generation stamp is too large");
  if (codec != "rs" && codec != "rs-legacy" && codec != "xor") {
    return Bad("'" + codec + "' is not a codec of HDFS; known are rs, rs-legacy, xor");
  }
  if (data < 1 || parity < 1 || data > kMaxBlocks || parity > kMaxBlocks || blocks() > kMaxBlocks) {
    return Bad("a group of " + std::to_string(data) + " + " + std::to_string(parity) +
               " blocks is not possible");
  }
  if (codec == "xor" && parity != 1) return Bad("codec xor has one parity");
  if (cell_bytes == 0 || cell_bytes > kMaxCellBytes) {
    return Bad("a cell of " + std::to_string(cell_bytes) + " bytes is not possible");
  }
  if (bytes == 0 || bytes > kMaxBlockBytes * static_cast<uint64_t>(data)) {
    return Bad("a group of " + std::to_string(bytes) + " bytes is not possible");
  }
  if (BlockBytes(0) > kMaxBlockBytes) return Bad("the group's blocks are too long");
  if (sources.size() > kMaxSources) return Bad("there are too many sources");
  for (const Source& source : sources) {
    if (source.index < 0 || source.index >= blocks()) {
      return Bad("a source has block " + std::to_string(source.index) + " of " +
                 std::to_string(blocks()));
    }
    if (absl::Status id = ValidateBlockId(source.storage_id); !id.ok()) {
      return Annotate(id, "the UUID of a source");
    }
    // One of both is wrong, and with a length that is too small bytes would be taken for zero.
    if (BlockBytes(source.index) == 0) {
      return Bad("a source has block " + std::to_string(source.index) + ", which a group of " +
                 std::to_string(bytes) + " bytes does not have");
    }
  }
  return absl::OkStatus();
}

std::string StripeFacts::BlockName(int index) const {
  return HdfsBlock{pool, group + index, stamp}.Name();
}

std::string StripeFacts::StripeId() const { return "hdfs." + pool + "." + std::to_string(group); }

uint64_t StripeFacts::BlockBytes(int index) const {
  const uint64_t row = cell_bytes * static_cast<uint64_t>(data);
  const uint64_t last_row = bytes % row;
  // A parity block is as long as the first data block.
  const uint64_t before = index < data ? cell_bytes * static_cast<uint64_t>(index) : 0;
  const uint64_t last_cell = last_row <= before ? 0 : std::min(last_row - before, cell_bytes);
  return bytes / row * cell_bytes + last_cell;
}

}  // namespace ecpipe
