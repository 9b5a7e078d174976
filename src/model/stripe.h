// SPDX-License-Identifier: Apache-2.0
// Stripes as a catalog has them: which blocks form one, with which code, and where they are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ecpipe {

struct BlockPlace {
  std::string block_id;
  std::string node;  // node id of the helper beside which the block is stored
  // The SHA-256 of the whole block from its manifest, 64 hexadecimal digits; empty: not known. The
  // receiver of a repaired block compares it.
  std::string sha256 = {};

  friend bool operator==(const BlockPlace&, const BlockPlace&) = default;
};

struct Stripe {
  std::string stripe_id;
  std::string code;                // a name that CreateErasureCode takes
  uint64_t block_bytes = 0;        // length of each block, or of the longest
  std::vector<BlockPlace> blocks;  // n of them; the position is the block's index in the code
  // The length of each block, for codes without sub-blocks: a shorter block counts as followed by
  // zeros, and a block of length 0 does not exist. Empty: all blocks have block_bytes.
  std::vector<uint64_t> block_lengths;

  uint64_t BytesOf(int block_index) const {
    return block_lengths.empty() ? block_bytes : block_lengths[static_cast<size_t>(block_index)];
  }

  friend bool operator==(const Stripe&, const Stripe&) = default;
};

struct BlockLocation {
  Stripe stripe;
  int block_index = 0;
};

}  // namespace ecpipe
