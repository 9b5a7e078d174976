// SPDX-License-Identifier: Apache-2.0
// The .meta file that a DataNode keeps beside each replica: a header, then a checksum of each chunk
// of the block. All numbers are big-endian:
//
//   u16 version 1 | u8 type: 0 none, 1 CRC32, 2 CRC32C | u32 bytes per checksum | u32 a chunk ...
#pragma once

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/checksum_kind.h"

namespace ecpipe {

inline constexpr size_t kHdfsMetaHeaderBytes = 7;
// HDFS's default is 512. What is read around a range, so that whole chunks can be checked, is at
// most twice this.
inline constexpr uint32_t kMaxHdfsChunkBytes = 1u << 20;

// Reads the header. DATA_LOSS: the header is too short, or has an unknown version or type.
// FAILED_PRECONDITION: the header is good, but the replica has no checksums, or its chunks are over
// the limit, so its bytes cannot be verified here.
absl::StatusOr<ChecksumKind> ParseHdfsMetaHeader(std::span<const uint8_t> header);

// The length of the whole file, for a block of this length.
uint64_t HdfsMetaBytes(uint64_t block_bytes, const ChecksumKind& kind);

// The checksum of the chunk with this number in `checksums`, which is a part of the file after its
// header. Requires that the chunk is in it.
uint32_t HdfsChecksumAt(std::span<const uint8_t> checksums, size_t number);

// The checksum of A followed by B, from the checksum of A (0 for no bytes) and the bytes of B.
uint32_t ExtendHdfsChecksum(ChecksumKind::Type type, uint32_t of_prefix,
                            std::span<const uint8_t> bytes);

}  // namespace ecpipe
