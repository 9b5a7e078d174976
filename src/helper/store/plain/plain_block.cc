// SPDX-License-Identifier: Apache-2.0
#include "helper/store/plain/plain_block.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <optional>

#include "base/bytes/crc32c.h"
#include "base/status.h"
#include "helper/store/checked_file.h"
#include "model/block_checksums.h"
#include "model/corrupt_block.h"

namespace ecpipe {
namespace {

class PlainBlock : public CheckedFile {
 public:
  PlainBlock(std::string block_id, UniqueFd file, uint64_t bytes,
             std::optional<ChecksumFile> checksums)
      : CheckedFile(std::move(block_id), std::move(file), bytes,
                    checksums ? kChecksumChunkBytes : 0),
        checksums_(std::move(checksums)) {}

  std::string stored_sha256() const override { return checksums_ ? checksums_->sha256() : ""; }

 private:
  uint32_t Extend(uint32_t crc, std::span<const uint8_t> bytes) const override {
    return ExtendCrc32c(crc, bytes);
  }

  absl::StatusOr<bool> CheckChunk(uint64_t chunk, uint32_t crc, Patience patience) override {
    const auto expected = checksums_->Find(chunk, patience == Patience::kAtOnce);
    if (absl::IsDataLoss(expected.status())) {
      return CorruptBlockError(block_id(), std::string(expected.status().message()));
    }
    ECPIPE_RETURN_IF_ERROR(expected.status());
    if (!expected->has_value()) return false;
    if (**expected == crc) return true;
    return CorruptBlockError(block_id(), "the bytes from " +
                                             std::to_string(chunk * kChecksumChunkBytes) +
                                             " on do not match their checksum");
  }

  absl::Status EndedAt(uint64_t at) const override {
    return CorruptBlockError(block_id(), "the block ends at byte " + std::to_string(at) +
                                             "; it was longer when it was opened");
  }

  std::optional<ChecksumFile> checksums_;
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
  ECPIPE_ASSIGN_OR_RETURN(ChecksumFile checksums,
                          ChecksumFile::Open(std::move(fd), block_id, block_bytes));
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
