// SPDX-License-Identifier: Apache-2.0
// The header of a QFS chunk file. The data follows at byte 16384. All numbers are little-endian:
//
//   u32 0xCAFECAFE | u32 1 | i64 file | i64 chunk | i64 version | i64 bytes of data
//   | u32 Adler-32 of each 64 KiB, 1024 of them | 260 bytes | u32 flags | u64 Adler-32 of all
//   before
//
// The last block of data counts as filled up with zeros. A block whose checksum is 0 was never
// written, and has only zeros. A header checksum of 0 says that there is none.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "model/systems/qfs_chunk.h"

namespace ecpipe {

inline constexpr size_t kQfsHeaderBytes = 4408;  // those with a meaning
inline constexpr uint64_t kQfsDataOffset = 16384;
inline constexpr size_t kQfsChecksumBlock = 64 << 10;

struct QfsHeader {
  uint64_t bytes = 0;               // of data
  std::vector<uint32_t> checksums;  // of each block of them

  friend bool operator==(const QfsHeader&, const QfsHeader&) = default;
};

// `header` has kQfsHeaderBytes bytes. DATA_LOSS: it is not the header of this chunk, or is corrupt.
// FAILED_PRECONDITION: it is a good header of another version of the chunk, or of a form that is
// not read here.
absl::StatusOr<QfsHeader> ParseQfsHeader(std::span<const uint8_t> header, const QfsChunkId& chunk);

// The Adler-32 of A followed by B, from that of A and the bytes of B; 1 is that of no bytes.
uint32_t ExtendAdler32(uint32_t of_prefix, std::span<const uint8_t> bytes);

// Whether `sum`, of a block that ends with the data after `bytes` bytes, is the checksum that the
// header has for it.
bool IsQfsChecksum(uint32_t stored, uint32_t sum, size_t bytes);

}  // namespace ecpipe
