// SPDX-License-Identifier: Apache-2.0
// How a block file is cut into sub-blocks, for codes whose repair equations are over these.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"

namespace ecpipe {

// A block is a sequence of groups; a group has one unit of each sub-block in turn. So sub-block a
// of a block of B bytes has B / sub_blocks bytes, and its unit u begins at byte (u * sub_blocks +
// a) * unit_bytes of the file. Most codes have one sub-block, which is the block itself, and no
// units.
struct BlockLayout {
  uint32_t sub_blocks = 1;
  uint32_t unit_bytes = 0;  // 0 with one sub-block

  // A block is a multiple of this; 1 with one sub-block.
  uint64_t group_bytes() const { return sub_blocks == 1 ? 1 : uint64_t{sub_blocks} * unit_bytes; }
  bool Fits(uint64_t block_bytes) const { return block_bytes % group_bytes() == 0; }

  // Visits, in order, the pieces of the file that hold `bytes` bytes of a sub-block from `offset`
  // on: calls `visit(file_offset, at, piece_bytes)`, where `at` is the position of the piece in
  // these bytes. Returns false as soon as a visit does.
  template <typename Visit>
  bool ForEachPiece(uint32_t sub_block, uint64_t offset, uint64_t bytes, const Visit& visit) const {
    if (sub_blocks == 1) return visit(offset, uint64_t{0}, bytes);
    for (uint64_t at = 0; at < bytes;) {
      const uint64_t unit = (offset + at) / unit_bytes;
      const uint64_t into = (offset + at) % unit_bytes;
      const uint64_t piece = std::min<uint64_t>(unit_bytes - into, bytes - at);
      if (!visit((unit * sub_blocks + sub_block) * unit_bytes + into, at, piece)) return false;
      at += piece;
    }
    return true;
  }

  // INVALID_ARGUMENT unless 1 <= sub_blocks <= kMaxSubBlocks, and unit_bytes is 0 for one sub-block
  // and 1 to kMaxUnitBytes for more.
  [[nodiscard]] absl::Status Validate() const;

  friend bool operator==(const BlockLayout&, const BlockLayout&) = default;
};

// Far above what codes with sub-blocks need. The limits bound memory: a requestor that hands bytes
// on in order holds one slice of every sub-block.
inline constexpr uint32_t kMaxSubBlocks = 16;
inline constexpr uint32_t kMaxUnitBytes = 1u << 20;

}  // namespace ecpipe
