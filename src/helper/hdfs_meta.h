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
#include "common/checksum_kind.h"

namespace ecpipe {

inline constexpr size_t kHdfsMetaHeaderBytes = 7;
// HDFS's default is 512. What is read around a range, so that whole chunks can be checked, is at
// most twice this.
inline constexpr uint32_t kMaxHdfsChunkBytes = 1u << 20;

// Reads the header. DATA_LOSS: it is none, or of a version or type that there is not.
// FAILED_PRECONDITION: it is a good one of a replica without checksums, or with chunks over the
// limit, whose bytes cannot be verified here.
absl::StatusOr<ChecksumKind> ParseHdfsMetaHeader(std::span<const uint8_t> header);

// The length of the whole file, for a block of this length.
uint64_t HdfsMetaBytes(uint64_t block_bytes, const ChecksumKind& kind);

// The checksum of the chunk of this number among `checksums`, which are a part of the file behind
// its header. Requires that it is there.
uint32_t HdfsChecksumAt(std::span<const uint8_t> checksums, size_t number);

// The checksum of A followed by B, given that of A (0: of nothing) and the bytes of B.
uint32_t ExtendHdfsChecksum(ChecksumKind::Type type, uint32_t of_prefix,
                            std::span<const uint8_t> bytes);

}  // namespace ecpipe
