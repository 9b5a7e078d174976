// SPDX-License-Identifier: Apache-2.0
// Databases of older versions. Up to version 6 lists were packed into columns of bytes. A list of
// ids had one byte of length before each id. The blocks of a stripe were
//
//   members = format count member* crc
//   format  = %x01 / %x02
//   count   = varint                      ; blocks of the stripe, 1..kMaxStripeBlocks
//   member  = node shared suffix_bytes suffix [sha256]
//   node    = varint                      ; number of the node
//   shared  = varint                      ; leading bytes taken from the block id before this one
//   suffix_bytes = varint                 ; then as many bytes of `suffix`
//   sha256  = 32 bytes                    ; in format 2 only, of every member
//   crc     = 4 bytes, little-endian      ; CRC32C, see below
//
// A varint is 7 bits a byte, low bits first, the high bit set on all but the last. The CRC covers
// the stripe's id and its code's name (each after its length in 4 bytes), block_bytes in 8 bytes,
// then the bytes above up to the CRC.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/store/catalog.h"
#include "coordinator/store/sqlite_db.h"

namespace ecpipe {

inline constexpr int kOldestUpgraded = 2;

// Brings tables of a version from kOldestUpgraded on to those of today, within the caller's write
// transaction. A stripe whose row is damaged stays damaged, and is logged.
absl::Status UpgradeTables(SqliteDb* db, int64_t version);

// Fills in the blocks of a stripe that has all else; `nodes` has the names by number. DATA_LOSS for
// bytes that were not written for this stripe.
absl::Status UnpackMembers(std::string_view members, const std::map<int64_t, std::string>& nodes,
                           Stripe* stripe);

// DATA_LOSS when the bytes are no list of ids.
absl::StatusOr<std::vector<std::string>> UnpackIds(std::string_view packed);

}  // namespace ecpipe
