// SPDX-License-Identifier: Apache-2.0
#include "model/systems/hdfs_group.h"

#include <algorithm>

#include "base/status.h"
#include "model/block_id.h"
#include "model/plan/slice_grid.h"
#include "model/systems/hdfs_block.h"
#include "model/systems/hdfs_policy.h"

namespace ecpipe {
namespace {

// Far above the 4 MiB that a NameNode allows by default, and far from any overflow.
constexpr uint64_t kMaxCellBytes = uint64_t{1} << 30;

absl::Status BadGroup(const std::string& what) { return absl::InvalidArgumentError(what); }

}  // namespace

absl::Status HdfsGroup::Validate() const {
  ECPIPE_RETURN_IF_ERROR(Annotate(ValidateHdfsPool(pool), "pool"));
  if (group >= 0 || group % kMaxBlocks != 0) {
    return BadGroup("group " + std::to_string(group) +
                    " is not an HDFS block group: its id must be negative and a multiple of " +
                    std::to_string(kMaxBlocks));
  }
  if (stamp > static_cast<uint64_t>(INT64_MAX))
    return BadGroup("the generation stamp is too large");
  if (codec != "rs" && codec != "rs-legacy" && codec != "xor") {
    return BadGroup("'" + codec + "' is not an HDFS codec; known are rs, rs-legacy, xor");
  }
  if (data < 1 || parity < 1 || data > kMaxBlocks || parity > kMaxBlocks || blocks() > kMaxBlocks) {
    return BadGroup("a group of " + std::to_string(data) + " + " + std::to_string(parity) +
                    " blocks is out of range: it needs at least 1 + 1 blocks and at most " +
                    std::to_string(kMaxBlocks) + " in all");
  }
  if (codec == "xor" && parity != 1) {
    return BadGroup("codec xor has one parity block, not " + std::to_string(parity));
  }
  if (cell_bytes == 0 || cell_bytes > kMaxCellBytes) {
    return BadGroup("a cell of " + std::to_string(cell_bytes) +
                    " bytes is out of range: it needs 1 to " + std::to_string(kMaxCellBytes) +
                    " bytes");
  }
  if (bytes == 0 || bytes > kMaxBlockBytes * static_cast<uint64_t>(data)) {
    return BadGroup("a group of " + std::to_string(bytes) +
                    " bytes is out of range: it needs 1 to " +
                    std::to_string(kMaxBlockBytes * static_cast<uint64_t>(data)) + " bytes");
  }
  if (BlockBytes(0) > kMaxBlockBytes) {
    return BadGroup("the group's blocks of " + std::to_string(BlockBytes(0)) +
                    " bytes are over the limit of " + std::to_string(kMaxBlockBytes));
  }
  if (sources.size() > kMaxSources) {
    return BadGroup("there are " + std::to_string(sources.size()) + " sources; the limit is " +
                    std::to_string(kMaxSources));
  }
  for (const StripeFacts::Source& source : sources) {
    if (source.index < 0 || source.index >= blocks()) {
      return BadGroup("a source names block " + std::to_string(source.index) +
                      ", but the group has blocks 0 to " + std::to_string(blocks() - 1));
    }
    if (absl::Status id = ValidateBlockId(source.storage_id); !id.ok()) {
      return Annotate(id, "the UUID of a source");
    }
    // One of both is wrong, and with a length that is too small bytes would be taken for zero.
    if (BlockBytes(source.index) == 0) {
      return BadGroup("a source names block " + std::to_string(source.index) +
                      ", which is empty in a group of " + std::to_string(bytes) + " bytes");
    }
  }
  return absl::OkStatus();
}

std::string HdfsGroup::BlockName(int index) const {
  return HdfsBlock{pool, group + index, stamp}.Name();
}

std::string HdfsGroup::StripeId() const { return "hdfs." + pool + "." + std::to_string(group); }

uint64_t HdfsGroup::BlockBytes(int index) const {
  const uint64_t row = cell_bytes * static_cast<uint64_t>(data);
  const uint64_t last_row = bytes % row;
  // A parity block is as long as the first data block.
  const uint64_t before = index < data ? cell_bytes * static_cast<uint64_t>(index) : 0;
  const uint64_t last_cell = last_row <= before ? 0 : std::min(last_row - before, cell_bytes);
  return bytes / row * cell_bytes + last_cell;
}

StripeFacts HdfsGroup::Facts() const {
  StripeFacts facts{StripeId(), *NameOfHdfsCodec(codec, data, parity), {}, sources};
  for (int i = 0; i < blocks(); ++i) facts.blocks.push_back({BlockName(i), BlockBytes(i)});
  return facts;
}

}  // namespace ecpipe
