// SPDX-License-Identifier: Apache-2.0
#include "helper/plain_block.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>

#include "common/block_checksums.h"
#include "common/corrupt_block.h"
#include "common/crc32c.h"
#include "common/status.h"
#include "helper/file_pieces.h"

namespace ecpipe {
namespace {

constexpr uint64_t kChunk = kChecksumChunkBytes;

class PlainBlock : public BlockReader {
 public:
  PlainBlock(std::string block_id, UniqueFd fd, uint64_t bytes,
             std::optional<ChecksumFile> checksums)
      : block_id_(std::move(block_id)),
        fd_(std::move(fd)),
        bytes_(bytes),
        checksums_(std::move(checksums)) {
    ::posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  }

  uint64_t bytes() const override { return bytes_; }

  absl::Status ReadAt(uint64_t offset, std::span<uint8_t> out) override {
    const Reach reach = ReachOf(offset, out.size());
    FilePieces pieces = PiecesOf(reach, out);
    uint64_t at = offset - reach.before;
    while (!pieces.Full()) {
      const ssize_t got = pieces.ReadSome(fd_.get(), at, 0);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return ErrnoStatus(errno, "read");
      if (got == 0) {
        return CorruptBlockError(
            block_id_, "the block ends at byte " + std::to_string(at) + "; it has become shorter");
      }
      at += static_cast<uint64_t>(got);
    }
    return Check(reach, offset, out, Patience::kWait).status();
  }

  absl::StatusOr<bool> TryReadAt(uint64_t offset, std::span<uint8_t> out) override {
    const Reach reach = ReachOf(offset, out.size());
    FilePieces pieces = PiecesOf(reach, out);
    if (!pieces.Full()) pieces.ReadSome(fd_.get(), offset - reach.before, RWF_NOWAIT);
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

  Reach ReachOf(uint64_t offset, size_t bytes) const {
    if (!checksums_ || bytes == 0 || offset + bytes > bytes_) return {};
    const uint64_t end = offset + bytes;
    const uint64_t chunk_end = std::min((end + kChunk - 1) / kChunk * kChunk, bytes_);
    return {static_cast<size_t>(offset % kChunk), static_cast<size_t>(chunk_end - end)};
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
    if (!checksums_ || out.empty()) return true;
    uint64_t chunk = offset / kChunk;
    uint32_t crc = Crc32c(std::span(before_).first(reach.before));
    size_t room = static_cast<size_t>(kChunk) - reach.before;
    while (!out.empty()) {
      const size_t step = std::min(out.size(), room);
      crc = ExtendCrc32c(crc, out.first(step));
      out = out.subspan(step);
      if (out.empty()) crc = ExtendCrc32c(crc, std::span(after_).first(reach.after));
      ECPIPE_ASSIGN_OR_RETURN(const bool checked, CheckChunk(chunk, crc, patience));
      if (!checked) return false;
      ++chunk;
      crc = 0;
      room = static_cast<size_t>(kChunk);
    }
    return true;
  }

  absl::StatusOr<bool> CheckChunk(uint64_t chunk, uint32_t crc, Patience patience) {
    const auto expected = checksums_->Find(chunk, patience == Patience::kAtOnce);
    if (absl::IsDataLoss(expected.status())) {
      return CorruptBlockError(block_id_, std::string(expected.status().message()));
    }
    ECPIPE_RETURN_IF_ERROR(expected.status());
    if (!expected->has_value()) return false;
    if (**expected == crc) return true;
    return CorruptBlockError(block_id_, "the bytes from " + std::to_string(chunk * kChunk) +
                                            " on do not match their checksum");
  }

  const std::string block_id_;
  const UniqueFd fd_;
  const uint64_t bytes_;
  std::optional<ChecksumFile> checksums_;
  std::array<uint8_t, kChunk> before_;
  std::array<uint8_t, kChunk> after_;
};

// No checksum file: nothing, with OK.
absl::StatusOr<std::optional<ChecksumFile>> OpenChecksums(int root, const std::string& block_id,
                                                          uint64_t block_bytes) {
  if (!CanHaveChecksumFile(block_id)) return std::optional<ChecksumFile>();
  UniqueFd fd(::openat(root, ChecksumFileName(block_id).c_str(),
                       O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.valid() && errno == ENOENT) return std::optional<ChecksumFile>();
  if (!fd.valid()) return ErrnoStatus(errno, "open its checksum file");
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return ErrnoStatus(errno, "stat its checksum file");
  if (!S_ISREG(info.st_mode)) {
    return absl::PermissionDeniedError("its checksum file is not a regular file");
  }
  ECPIPE_ASSIGN_OR_RETURN(ChecksumFile checksums, ChecksumFile::Open(std::move(fd), block_bytes));
  return std::optional(std::move(checksums));
}

}  // namespace

absl::StatusOr<std::unique_ptr<BlockReader>> OpenPlainBlock(int root, const std::string& block_id,
                                                            UniqueFd block, uint64_t bytes) {
  absl::StatusOr<std::optional<ChecksumFile>> checksums = OpenChecksums(root, block_id, bytes);
  if (!checksums.ok()) {
    const std::string text = "block " + block_id + ": " + std::string(checksums.status().message());
    if (absl::IsDataLoss(checksums.status())) return CorruptBlockError(block_id, text);
    return absl::Status(checksums.status().code(), text);
  }
  return std::make_unique<PlainBlock>(block_id, std::move(block), bytes, *std::move(checksums));
}

}  // namespace ecpipe
