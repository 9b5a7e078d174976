// SPDX-License-Identifier: Apache-2.0
#include "helper/hdfs_replica.h"

#include <fcntl.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

#include "common/corrupt_block.h"
#include "common/file_io.h"
#include "common/status.h"
#include "helper/file_pieces.h"
#include "helper/hdfs_meta.h"

namespace ecpipe {
namespace {

// Checksums are read this many bytes at a time: 4,096 of them are those of 2 MiB by default.
constexpr size_t kWindowBytes = size_t{16} << 10;

absl::Status LengthChanged(const std::string& block_id) {
  return absl::FailedPreconditionError("block " + block_id +
                                       " changes: its length is another one than before");
}

class HdfsReplica : public BlockReader {
 public:
  HdfsReplica(std::string block_id, UniqueFd data, UniqueFd meta, uint64_t bytes,
              const ChecksumKind& kind)
      : block_id_(std::move(block_id)),
        data_(std::move(data)),
        meta_(std::move(meta)),
        bytes_(bytes),
        kind_(kind),
        before_(kind.bytes_per_checksum),
        after_(kind.bytes_per_checksum) {
    ::posix_fadvise(data_.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  }

  uint64_t bytes() const override { return bytes_; }
  std::optional<ChecksumKind> checksum() const override { return kind_; }

  absl::Status ReadAt(uint64_t offset, std::span<uint8_t> out) override {
    const Reach reach = ReachOf(offset, out.size());
    FilePieces pieces = PiecesOf(reach, out);
    uint64_t at = offset - reach.before;
    while (!pieces.Full()) {
      const ssize_t got = pieces.ReadSome(data_.get(), at, 0);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return ErrnoStatus(errno, "read block " + block_id_);
      if (got == 0) return LengthChanged(block_id_);
      at += static_cast<uint64_t>(got);
    }
    return Check(reach, offset, out, Patience::kWait).status();
  }

  absl::StatusOr<bool> TryReadAt(uint64_t offset, std::span<uint8_t> out) override {
    const Reach reach = ReachOf(offset, out.size());
    FilePieces pieces = PiecesOf(reach, out);
    if (!pieces.Full()) pieces.ReadSome(data_.get(), offset - reach.before, RWF_NOWAIT);
    // A short read, EAGAIN, or a file system without this flag: the waiting read finds out.
    if (!pieces.Full()) return false;
    return Check(reach, offset, out, Patience::kAtOnce);
  }

 private:
  enum class Patience { kAtOnce, kWait };

  // What has to be read around a range, so that whole chunks are there to be checked.
  struct Reach {
    size_t before = 0;
    size_t after = 0;
  };

  uint64_t chunk_bytes() const { return kind_.bytes_per_checksum; }

  Reach ReachOf(uint64_t offset, size_t bytes) const {
    const uint64_t end = offset + bytes;
    const uint64_t into_last = end % chunk_bytes();
    const uint64_t to_chunk_end = into_last == 0 ? 0 : chunk_bytes() - into_last;
    return {static_cast<size_t>(offset % chunk_bytes()),
            static_cast<size_t>(std::min(to_chunk_end, bytes_ - end))};
  }

  FilePieces PiecesOf(const Reach& reach, std::span<uint8_t> out) {
    FilePieces pieces;
    pieces.Add(std::span(before_).first(reach.before));
    pieces.Add(out);
    pieces.Add(std::span(after_).first(reach.after));
    return pieces;
  }

  // True if all chunks of the range are right; false if their checksums would have to be waited
  // for.
  absl::StatusOr<bool> Check(const Reach& reach, uint64_t offset, std::span<const uint8_t> out,
                             Patience patience) {
    uint64_t chunk = offset / chunk_bytes();
    const auto extend = [this](uint32_t crc, std::span<const uint8_t> bytes) {
      return ExtendHdfsChecksum(kind_.type, crc, bytes);
    };
    uint32_t crc = extend(0, std::span(before_).first(reach.before));
    size_t room = static_cast<size_t>(chunk_bytes()) - reach.before;
    while (!out.empty()) {
      const size_t step = std::min(out.size(), room);
      crc = extend(crc, out.first(step));
      out = out.subspan(step);
      if (out.empty()) crc = extend(crc, std::span(after_).first(reach.after));
      ECPIPE_ASSIGN_OR_RETURN(const bool there, Fetch(chunk, patience));
      if (!there) return false;
      if (HdfsChecksumAt(window_, static_cast<size_t>(chunk - window_first_)) != crc) {
        return Mismatch(chunk);
      }
      ++chunk;
      crc = 0;
      room = static_cast<size_t>(chunk_bytes());
    }
    return true;
  }

  // Has the checksum of a chunk in the window; false if it would have to be waited for.
  absl::StatusOr<bool> Fetch(uint64_t chunk, Patience patience) {
    if (chunk >= window_first_ && chunk - window_first_ < window_.size() / 4) return true;
    const uint64_t from = kHdfsMetaHeaderBytes + 4 * chunk;
    const uint64_t end = HdfsMetaBytes(bytes_, kind_);
    std::vector<uint8_t> next(static_cast<size_t>(std::min<uint64_t>(kWindowBytes, end - from)));
    if (patience == Patience::kAtOnce) {
      FilePieces pieces;
      pieces.Add(next);
      pieces.ReadSome(meta_.get(), from, RWF_NOWAIT);
      if (!pieces.Full()) return false;
    } else {
      const absl::Status read = ReadFully(meta_.get(), from, next);
      if (absl::IsOutOfRange(read)) return LengthChanged(block_id_);
      ECPIPE_RETURN_IF_ERROR(Annotate(read, "read the checksums of block " + block_id_));
    }
    window_ = std::move(next);
    window_first_ = chunk;
    return true;
  }

  // An append writes a new checksum over that of the last chunk: then nothing is corrupt.
  absl::Status Mismatch(uint64_t chunk) const {
    const absl::StatusOr<uint64_t> bytes_now = FileBytes(data_.get());
    if (!bytes_now.ok() || *bytes_now != bytes_) return LengthChanged(block_id_);
    return CorruptBlockError(block_id_, "block " + block_id_ + ": the bytes from " +
                                            std::to_string(chunk * chunk_bytes()) +
                                            " on do not match their checksum");
  }

  const std::string block_id_;
  const UniqueFd data_;
  const UniqueFd meta_;
  const uint64_t bytes_;
  const ChecksumKind kind_;
  std::vector<uint8_t> before_;
  std::vector<uint8_t> after_;
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
    return CorruptBlockError(block_id, "block " + block_id + " has " + std::to_string(bytes) +
                                           " bytes, and checksums for another length");
  }
  return std::make_unique<HdfsReplica>(block_id, std::move(data), std::move(meta), bytes, *kind);
}

}  // namespace ecpipe
