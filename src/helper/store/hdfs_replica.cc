// SPDX-License-Identifier: Apache-2.0
#include "helper/store/hdfs_replica.h"

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/file_io.h"
#include "base/status.h"
#include "helper/store/checked_file.h"
#include "helper/store/hdfs_meta.h"
#include "model/corrupt_block.h"

namespace ecpipe {
namespace {

// Checksums are read this many bytes at a time: 4,096 of them are those of 2 MiB by default.
constexpr size_t kWindowBytes = size_t{16} << 10;

absl::Status LengthChanged(const std::string& block_id) {
  return absl::FailedPreconditionError("block " + block_id +
                                       " is being changed: its length differs from a moment ago");
}

class HdfsReplica : public CheckedFile {
 public:
  HdfsReplica(std::string block_id, UniqueFd data, UniqueFd meta, uint64_t bytes,
              const ChecksumKind& kind)
      : CheckedFile(std::move(block_id), std::move(data), bytes, kind.bytes_per_checksum),
        meta_(std::move(meta)),
        kind_(kind) {}

  std::optional<ChecksumKind> checksum() const override { return kind_; }

 private:
  uint32_t Extend(uint32_t crc, std::span<const uint8_t> bytes) const override {
    return ExtendHdfsChecksum(kind_.type, crc, bytes);
  }

  absl::StatusOr<bool> CheckChunk(uint64_t chunk, uint32_t crc, Patience patience) override {
    ECPIPE_ASSIGN_OR_RETURN(const bool there, Fetch(chunk, patience));
    if (!there) return false;
    if (HdfsChecksumAt(window_, static_cast<size_t>(chunk - window_first_)) == crc) return true;
    return Mismatch(chunk);
  }

  absl::Status EndedAt(uint64_t) const override { return LengthChanged(block_id()); }

  // Has the checksum of a chunk in the window; false if it would have to be waited for.
  absl::StatusOr<bool> Fetch(uint64_t chunk, Patience patience) {
    if (chunk >= window_first_ && chunk - window_first_ < window_.size() / 4) return true;
    const uint64_t from = kHdfsMetaHeaderBytes + 4 * chunk;
    const uint64_t end = HdfsMetaBytes(bytes(), kind_);
    std::vector<uint8_t> next(static_cast<size_t>(std::min<uint64_t>(kWindowBytes, end - from)));
    if (patience == Patience::kAtOnce) {
      FilePieces pieces;
      pieces.Add(next);
      pieces.ReadSome(meta_.get(), from, RWF_NOWAIT);
      if (!pieces.Full()) return false;
    } else {
      const absl::Status read = ReadFully(meta_.get(), from, next);
      if (absl::IsOutOfRange(read)) return LengthChanged(block_id());
      ECPIPE_RETURN_IF_ERROR(Annotate(read, "read the checksums of block " + block_id()));
    }
    window_ = std::move(next);
    window_first_ = chunk;
    return true;
  }

  // An append writes a new checksum over that of the last chunk: then nothing is corrupt.
  absl::Status Mismatch(uint64_t chunk) const {
    const absl::StatusOr<uint64_t> bytes_now = FileBytes(file());
    if (!bytes_now.ok() || *bytes_now != bytes()) return LengthChanged(block_id());
    return CorruptBlockError(block_id(), "block " + block_id() + ": the bytes from " +
                                             std::to_string(chunk * kind_.bytes_per_checksum) +
                                             " on do not match their checksum");
  }

  const UniqueFd meta_;
  const ChecksumKind kind_;
  std::vector<uint8_t> window_;  // checksums as in the file, from that of chunk window_first_ on
  uint64_t window_first_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<BlockReader>> OpenHdfsReplica(const std::string& block_id,
                                                             UniqueFd data, UniqueFd meta) {
  ECPIPE_ASSIGN_OR_RETURN(const uint64_t bytes, FileBytes(data.get()));
  ECPIPE_ASSIGN_OR_RETURN(const uint64_t meta_bytes, FileBytes(meta.get()));
  std::array<uint8_t, kHdfsMetaHeaderBytes> header{};
  const absl::Status read = ReadFully(meta.get(), 0, header);
  if (!read.ok() && !absl::IsOutOfRange(read)) {
    return Annotate(read, "read the checksums of block " + block_id);
  }
  const auto kind = ParseHdfsMetaHeader(std::span(header).first(read.ok() ? header.size() : 0));
  if (absl::IsDataLoss(kind.status())) {
    return CorruptBlockError(block_id,
                             "block " + block_id + ": " + std::string(kind.status().message()));
  }
  if (!kind.ok()) return Annotate(kind.status(), "block " + block_id);
  if (meta_bytes != HdfsMetaBytes(bytes, *kind)) {
    const absl::StatusOr<uint64_t> bytes_now = FileBytes(data.get());
    if (!bytes_now.ok() || *bytes_now != bytes) return LengthChanged(block_id);
    return CorruptBlockError(block_id,
                             "block " + block_id + " has " + std::to_string(bytes) +
                                 " bytes, but its .meta file has checksums for another length");
  }
  return std::make_unique<HdfsReplica>(block_id, std::move(data), std::move(meta), bytes, *kind);
}

}  // namespace ecpipe
