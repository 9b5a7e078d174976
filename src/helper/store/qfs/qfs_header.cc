// SPDX-License-Identifier: Apache-2.0
#include "helper/store/qfs/qfs_header.h"

#include <zlib.h>

#include <string>

#include "base/bytes/little_endian.h"
#include "base/status.h"

namespace ecpipe {
namespace {

constexpr uint32_t kMagic = 0xCAFECAFE;
constexpr uint32_t kSwappedMagic = 0xFECAFECA;
constexpr uint32_t kHeaderVersion = 1;
constexpr size_t kChecksumsAt = 40;
constexpr size_t kFlagsAt = 4396;
constexpr size_t kOwnChecksumAt = 4400;

absl::Status Corrupt(const std::string& what) { return absl::DataLossError(what); }

absl::Status CheckOwnChecksum(std::span<const uint8_t> header) {
  const auto stored = GetLittleEndian<uint64_t>(header, kOwnChecksumAt);
  if (stored == 0 || stored == ExtendAdler32(1, header.first(kOwnChecksumAt))) {
    return absl::OkStatus();
  }
  return Corrupt("its header does not match its checksum");
}

absl::Status CheckIds(std::span<const uint8_t> header, const QfsChunkId& chunk) {
  const auto file = static_cast<int64_t>(GetLittleEndian<uint64_t>(header, 8));
  const auto id = static_cast<int64_t>(GetLittleEndian<uint64_t>(header, 16));
  const auto version = static_cast<int64_t>(GetLittleEndian<uint64_t>(header, 24));
  if (file != chunk.file || id != chunk.chunk) {
    return Corrupt("its header is that of chunk " + std::to_string(file) + "." +
                   std::to_string(id));
  }
  // The chunkserver writes the header anew when it gives the chunk another version.
  if (version == chunk.version) return absl::OkStatus();
  return absl::FailedPreconditionError("its header is of version " + std::to_string(version));
}

}  // namespace

uint32_t ExtendAdler32(uint32_t of_prefix, std::span<const uint8_t> bytes) {
  if (bytes.empty()) return of_prefix;  // zlib begins anew when it is given no buffer
  return static_cast<uint32_t>(::adler32_z(of_prefix, bytes.data(), bytes.size()));
}

bool IsQfsChecksum(uint32_t stored, uint32_t sum, size_t bytes) {
  static constexpr uint8_t kZeros[kQfsChecksumBlock] = {};
  const std::span<const uint8_t> zeros(kZeros);
  const uint32_t filled = ExtendAdler32(sum, zeros.first(kQfsChecksumBlock - bytes));
  if (stored != 0) return stored == filled;
  static const uint32_t never_written = ExtendAdler32(1, zeros);
  return filled == never_written;
}

absl::StatusOr<QfsHeader> ParseQfsHeader(std::span<const uint8_t> header, const QfsChunkId& chunk) {
  const auto magic = GetLittleEndian<uint32_t>(header, 0);
  if (magic == kSwappedMagic) {
    return absl::FailedPreconditionError("it was written on a machine of another byte order");
  }
  if (magic != kMagic) return Corrupt("it does not begin as a chunk does");
  if (const auto version = GetLittleEndian<uint32_t>(header, 4); version != kHeaderVersion) {
    return absl::FailedPreconditionError("version " + std::to_string(version) +
                                         " of the header is not known");
  }
  ECPIPE_RETURN_IF_ERROR(CheckOwnChecksum(header));
  ECPIPE_RETURN_IF_ERROR(CheckIds(header, chunk));
  if (const auto flags = GetLittleEndian<uint32_t>(header, kFlagsAt); flags != 0) {
    return absl::FailedPreconditionError("it is a block of an object store");
  }
  QfsHeader parsed;
  parsed.bytes = GetLittleEndian<uint64_t>(header, 32);
  if (parsed.bytes > kQfsChunkBytes) {
    return Corrupt("its header says " + std::to_string(parsed.bytes) +
                   " bytes, more than a chunk can have");
  }
  const uint64_t blocks = (parsed.bytes + kQfsChecksumBlock - 1) / kQfsChecksumBlock;
  for (uint64_t i = 0; i < blocks; ++i) {
    parsed.checksums.push_back(GetLittleEndian<uint32_t>(header, kChecksumsAt + 4 * i));
  }
  return parsed;
}

}  // namespace ecpipe
