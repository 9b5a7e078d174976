// SPDX-License-Identifier: Apache-2.0
#include "helper/store/qfs/qfs_chunk_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/file_io.h"
#include "base/status.h"
#include "helper/store/checked_file.h"
#include "helper/store/qfs/qfs_header.h"
#include "model/corrupt_block.h"

namespace ecpipe {
namespace {

absl::StatusOr<QfsHeader> ReadHeader(int file, const QfsChunkId& chunk) {
  std::array<uint8_t, kQfsHeaderBytes> header{};
  const absl::Status read = ReadFully(file, 0, header);
  if (absl::IsOutOfRange(read)) return absl::DataLossError("it is shorter than a header");
  ECPIPE_RETURN_IF_ERROR(Annotate(read, "read its header"));
  return ParseQfsHeader(header, chunk);
}

class QfsChunkFile : public CheckedFile {
 public:
  QfsChunkFile(const QfsChunkId& chunk, UniqueFd file, QfsHeader header)
      : CheckedFile(chunk.Name(), std::move(file), header.bytes, kQfsChecksumBlock, kQfsDataOffset),
        chunk_(chunk),
        header_(std::move(header)) {}

  std::optional<ChecksumKind> checksum() const override {
    return ChecksumKind{ChecksumKind::Type::kAdler32, kQfsChecksumBlock};
  }

 private:
  // CheckedFile begins with 0, Adler-32 with 1. No sum is lost by that: exclusive or turns back.
  static constexpr uint32_t kNoBytes = 1;

  uint32_t Extend(uint32_t crc, std::span<const uint8_t> bytes) const override {
    return ExtendAdler32(crc ^ kNoBytes, bytes) ^ kNoBytes;
  }

  absl::StatusOr<bool> CheckChunk(uint64_t block, uint32_t crc, Patience) override {
    const uint64_t begin = block * kQfsChecksumBlock;
    const auto filled = static_cast<size_t>(
        std::min<uint64_t>(kQfsChecksumBlock, bytes() - std::min(bytes(), begin)));
    if (block < header_.checksums.size() &&
        IsQfsChecksum(header_.checksums[static_cast<size_t>(block)], crc ^ kNoBytes, filled)) {
      return true;
    }
    return Wrong("the bytes from " + std::to_string(begin) + " on do not match their checksum");
  }

  absl::Status EndedAt(uint64_t at) const override {
    return Wrong("its file ends at byte " + std::to_string(at) + " of the data");
  }

  // Nothing is corrupt if the chunkserver has written the chunk anew, or is at it.
  absl::Status Wrong(const std::string& what) const {
    const absl::StatusOr<QfsHeader> now = ReadHeader(file(), chunk_);
    if (absl::IsFailedPrecondition(now.status()) || (now.ok() && *now != header_)) {
      return absl::FailedPreconditionError("block " + block_id() +
                                           " is being changed: its header is another than before");
    }
    return CorruptBlockError(block_id(), "block " + block_id() + ": " + what);
  }

  const QfsChunkId chunk_;
  const QfsHeader header_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<BlockReader>> OpenQfsChunk(const QfsChunkId& chunk, UniqueFd file) {
  absl::StatusOr<QfsHeader> header = ReadHeader(file.get(), chunk);
  if (absl::IsDataLoss(header.status())) {
    return CorruptBlockError(
        chunk.Name(), "block " + chunk.Name() + ": " + std::string(header.status().message()));
  }
  if (!header.ok()) return Annotate(header.status(), "block " + chunk.Name());
  return std::make_unique<QfsChunkFile>(chunk, std::move(file), *std::move(header));
}

}  // namespace ecpipe
