// SPDX-License-Identifier: Apache-2.0
// How a block file is cut into sub-blocks, for codes whose repair equations are over these.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"

namespace ecpipe {

// A block is a row of groups; a group is one unit of each sub-block in turn. So sub-block a of a
// block of B bytes has B / sub_blocks bytes, and its unit u lies at (u * sub_blocks + a) *
// unit_bytes of the file. Most codes have one sub-block, the block itself, and no units.
struct BlockLayout {
  uint32_t sub_blocks = 1;
  uint32_t unit_bytes = 0;  // 0 with one sub-block

  // A block is a multiple of this; 1 with one sub-block.
  uint64_t group_bytes() const { return sub_blocks == 1 ? 1 : uint64_t{sub_blocks} * unit_bytes; }
  bool Fits(uint64_t block_bytes) const { return block_bytes % group_bytes() == 0; }

  // The pieces of the file that make up `bytes` bytes of a sub-block from `offset` on, in order:
  // `visit(file_offset, at, piece_bytes)` with `at` from 0 on, until one returns false. False then.
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

  // INVALID_ARGUMENT unless 1 <= sub_blocks <= kMaxSubBlocks, and there are units, of at most
  // kMaxUnitBytes, exactly if there is more than one sub-block.
  [[nodiscard]] absl::Status Validate() const;

  friend bool operator==(const BlockLayout&, const BlockLayout&) = default;
};

// Of the codes that are used with sub-blocks these are large; a slice of all of them is held in
// memory where bytes are handed on in order.
inline constexpr uint32_t kMaxSubBlocks = 16;
inline constexpr uint32_t kMaxUnitBytes = 1u << 20;

}  // namespace ecpipe
