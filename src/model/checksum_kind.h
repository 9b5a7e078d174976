// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace ecpipe {

// The kind of checksums that a storage system keeps of a block. A program that writes a new block
// of the stripe wants to keep the same kind.
struct ChecksumKind {
  enum class Type : uint8_t { kCrc32, kCrc32c, kAdler32 };
  Type type = Type::kCrc32c;
  uint32_t bytes_per_checksum = 512;

  friend bool operator==(const ChecksumKind&, const ChecksumKind&) = default;
};

}  // namespace ecpipe
