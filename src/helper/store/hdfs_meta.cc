// SPDX-License-Identifier: Apache-2.0
#include "helper/store/hdfs_meta.h"

#include <string>

#include "base/bytes/crc32c.h"

namespace ecpipe {
namespace {

uint32_t BigEndian(std::span<const uint8_t> bytes) {
  uint32_t value = 0;
  for (const uint8_t byte : bytes) value = value << 8 | byte;
  return value;
}

}  // namespace

absl::StatusOr<ChecksumKind> ParseHdfsMetaHeader(std::span<const uint8_t> header) {
  if (header.size() < kHdfsMetaHeaderBytes) {
    return absl::DataLossError("its .meta file is too short to hold a header");
  }
  const uint32_t version = BigEndian(header.first(2));
  const uint32_t type = header[2];
  const uint32_t chunk_bytes = BigEndian(header.subspan(3, 4));
  if (version != 1 || type > 2) {
    return absl::DataLossError("its .meta file has version " + std::to_string(version) +
                               " and checksum type " + std::to_string(type) +
                               "; only version 1 with types 0 to 2 is known");
  }
  if (type == 0) {
    return absl::FailedPreconditionError("the replica has no checksums, so it cannot be verified");
  }
  if (chunk_bytes == 0) {
    return absl::DataLossError("its .meta file has checksums for chunks of 0 bytes");
  }
  if (chunk_bytes > kMaxHdfsChunkBytes) {
    return absl::FailedPreconditionError("the replica has a checksum every " +
                                         std::to_string(chunk_bytes) + " bytes; at most " +
                                         std::to_string(kMaxHdfsChunkBytes) + " are supported");
  }
  return ChecksumKind{type == 1 ? ChecksumKind::Type::kCrc32 : ChecksumKind::Type::kCrc32c,
                      chunk_bytes};
}

uint64_t HdfsMetaBytes(uint64_t block_bytes, const ChecksumKind& kind) {
  const uint64_t chunks =
      block_bytes / kind.bytes_per_checksum + (block_bytes % kind.bytes_per_checksum != 0 ? 1 : 0);
  return kHdfsMetaHeaderBytes + 4 * chunks;
}

uint32_t HdfsChecksumAt(std::span<const uint8_t> checksums, size_t number) {
  return BigEndian(checksums.subspan(4 * number, 4));
}

uint32_t ExtendHdfsChecksum(ChecksumKind::Type type, uint32_t of_prefix,
                            std::span<const uint8_t> bytes) {
  return type == ChecksumKind::Type::kCrc32 ? ExtendCrc32(of_prefix, bytes)
                                            : ExtendCrc32c(of_prefix, bytes);
}

}  // namespace ecpipe
