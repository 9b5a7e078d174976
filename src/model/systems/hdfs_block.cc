// SPDX-License-Identifier: Apache-2.0
#include "model/systems/hdfs_block.h"

#include "base/bytes/exact_integer.h"
#include "model/block_id.h"

namespace ecpipe {
namespace {

constexpr char kMark[] = ".blk_";
// The rest of a name takes up to 46 bytes of the 255.
constexpr size_t kMaxPoolBytes = 200;

}  // namespace

absl::Status ValidateHdfsPool(const std::string& pool) {
  if (pool.size() <= kMaxPoolBytes && ValidateBlockId(pool).ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "not a valid block pool id; it is 1 to " + std::to_string(kMaxPoolBytes) +
      " letters, digits, '.', '_' or '-', and does not begin with '.'");
}

std::string HdfsBlock::Name() const {
  return pool + kMark + std::to_string(id) + "_" + std::to_string(stamp);
}

absl::StatusOr<HdfsBlock> ParseHdfsBlock(const std::string& name) {
  HdfsBlock block;
  const size_t mark = name.rfind(kMark);
  const size_t line = name.rfind('_');
  int64_t stamp = -1;
  const size_t digits = mark + sizeof kMark - 1;
  const bool good = mark != std::string::npos && line >= digits &&
                    ReadExactInteger(name.substr(digits, line - digits), &block.id) &&
                    ReadExactInteger(name.substr(line + 1), &stamp) && stamp >= 0;
  if (good) {
    block.pool = name.substr(0, mark);
    block.stamp = static_cast<uint64_t>(stamp);
    // What is written otherwise, such as "-0" or "007", would be a second name of a block.
    if (ValidateHdfsPool(block.pool).ok() && block.Name() == name) return block;
  }
  return absl::InvalidArgumentError(
      "not the name of an HDFS block; the form is <pool>.blk_<id>_<generation stamp>");
}

std::string CanonicalBlockId(const std::string& text) {
  const size_t mark = text.find(":blk_");
  if (mark == std::string::npos) return text;
  std::string name = text;
  name[mark] = '.';
  return ParseHdfsBlock(name).ok() ? name : text;
}

}  // namespace ecpipe
