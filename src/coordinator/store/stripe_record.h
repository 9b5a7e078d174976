// SPDX-License-Identifier: Apache-2.0
// A stripe's blocks as the bytes that the SQLite catalog stores, and the hash it finds blocks by.
// Both are on disk: a change of either is a new schema version.
//
//   members = format count member* crc
//   format  = %x01 / %x02
//   count   = varint                      ; blocks of the stripe, 1..kMaxStripeBlocks
//   member  = node shared suffix_bytes suffix [sha256]
//   node    = varint                      ; row of the node's name
//   shared  = varint                      ; leading bytes taken from the block id before this one
//   suffix_bytes = varint                 ; then as many bytes of `suffix`
//   sha256  = 32 bytes                    ; of the whole block: in format 2 only, of every member
//   crc     = 4 bytes, little-endian      ; CRC32C, see below
//
// A varint is 7 bits a byte, low bits first, the high bit set on all but the last. Blocks b-1 on
// node 3 and b-2 on node 4 are 01 02 | 03 00 03 'b' '-' '1' | 04 02 01 '2' | crc.
//
// SQLite has no page checksums, and a stripe that has changed unseen could make a repair wrong
// without an error. So the CRC covers all of the stripe: its id and its code's name (each after
// its length in 4 bytes), block_bytes in 8 bytes, then the bytes above up to the CRC.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ecpipe {

inline constexpr size_t kMaxStripeBlocks = 255;  // no code here has more: GF(2^8)
// Ids are file names on helpers, which end at 255 bytes; the other names follow suit.
inline constexpr size_t kMaxCatalogIdBytes = 255;

struct StripeMember {
  std::string block_id;
  uint32_t node_ref = 0;
  std::string sha256 = {};  // 64 hexadecimal digits, or empty: of all members of a stripe, or none

  friend bool operator==(const StripeMember&, const StripeMember&) = default;
};

// What the CRC covers besides the members. Borrows its strings.
struct StripeHeader {
  std::string_view stripe_id;
  std::string_view code;
  uint64_t block_bytes = 0;
};

// Requires at most kMaxStripeBlocks members with ids of at most kMaxCatalogIdBytes.
std::string EncodeMembers(const StripeHeader& header, const std::vector<StripeMember>& members);

// DATA_LOSS, saying what is wrong, for bytes that EncodeMembers did not write for this header.
absl::StatusOr<std::vector<StripeMember>> DecodeMembers(const StripeHeader& header,
                                                        std::string_view bytes);

// FNV-1a of 64 bits, mixed and folded to 32 so that an index entry stays small. Different ids may
// share a hash: whoever finds a stripe by it looks for the id itself.
uint32_t BlockIdHash(std::string_view block_id);

}  // namespace ecpipe
