// SPDX-License-Identifier: Apache-2.0
// Checksum files of the plain-directory layout: CRC32C of each chunk of a block, in a file beside
// it. Block X has the checksum file .crc32c.X.
//
//   header (304 bytes, all integers little-endian)
//     0  "ECPC"            magic
//     4  u8   1            version
//     5  3 bytes 0         reserved
//     8  u64  length of the block
//    16  u32  chunk bytes  4096
//    20  32 bytes          SHA-256 of the whole block
//    52  248 bytes         the block's id, and zeros behind it
//   300  u32  CRC32C of bytes 0..299
//   then for each chunk  u32  CRC32C of its bytes; the last chunk may be short
//
// The id and the SHA-256 say which block this is, and which of those that had its name in turn:
// both files of a block can come back together from a time when it had other bytes, or be exchanged
// with those of another block (docs/design/010-corruption.md).
//
// The entries have no checksum of their own: a damaged one makes its chunk look damaged, and the
// repair of the block writes both anew.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file_io.h"
#include "base/unique_fd.h"

namespace ecpipe {

// A page: the page cache reads no less. Larger chunks make unaligned reads dearer, smaller ones
// the files larger (now a thousandth of the blocks).
inline constexpr uint32_t kChecksumChunkBytes = 4096;

// The file name of a block's checksum file. Not a block id, since it begins with '.'.
std::string ChecksumFileName(const std::string& block_id);
// The block whose checksum file has this name; nullopt: it is no checksum file's.
std::optional<std::string> BlockOfChecksumFile(const std::string& file_name);
// Whether that is short enough for a file name; blocks with the longest ids have no checksum file.
bool CanHaveChecksumFile(const std::string& block_id);

// Writes a checksum file. After an error it is not to be committed; destroyed without a Commit()
// that succeeded, it leaves nothing. Used by one thread.
//
// Commit it before the block that it describes takes its name. After a crash between the two steps
// the checksums of the new block may lie beside an older file with the same id; readers notice the
// difference, and the block is repaired. In the reverse order a damaged block could keep the
// checksums of its damaged bytes, or have none.
class ChecksumFileWriter {
 public:
  // For the block of this id in this directory.
  static absl::StatusOr<ChecksumFileWriter> Create(const std::string& directory,
                                                   const std::string& block_id);
  // The same in an open directory; `path` is its name in errors.
  static absl::StatusOr<ChecksumFileWriter> CreateBelow(int directory, const std::string& path,
                                                        const std::string& block_id,
                                                        const AtomicFile::Options& options);

  // The next bytes of the block, in order.
  absl::Status Append(std::span<const uint8_t> bytes);
  // Makes the file durable under its name, in the place of an older one. Once, after the last byte.
  // `sha256`: of all bytes, 64 lower-case hexadecimal digits; INVALID_ARGUMENT otherwise.
  absl::Status Commit(const std::string& sha256);

  const std::string& path() const { return file_.path(); }

 private:
  ChecksumFileWriter(AtomicFile file, std::string block_id);
  void EndChunk();
  absl::Status FlushEntries();

  AtomicFile file_;
  std::string block_id_;
  uint64_t block_bytes_ = 0;
  uint32_t chunk_crc_ = 0;
  std::vector<uint8_t> entries_;  // not written yet
  uint64_t entries_offset_;       // of the first of them, in the file
};

// An open checksum file. Used by one thread.
class ChecksumFile {
 public:
  // DATA_LOSS: the file is not a checksum file for this block, of `block_bytes` bytes.
  static absl::StatusOr<ChecksumFile> Open(UniqueFd fd, const std::string& block_id,
                                           uint64_t block_bytes);

  // Of the whole block, as it was stored: 64 lower-case hexadecimal digits.
  const std::string& sha256() const { return sha256_; }

  // The checksum of a chunk of the block. With `at_once` it returns nothing instead of waiting for
  // a disk. DATA_LOSS: the file is too short.
  absl::StatusOr<std::optional<uint32_t>> Find(uint64_t chunk, bool at_once);

 private:
  ChecksumFile(UniqueFd fd, std::string sha256, uint64_t chunks)
      : fd_(std::move(fd)), sha256_(std::move(sha256)), chunks_(chunks) {}
  absl::StatusOr<bool> LoadWindow(uint64_t first_chunk, bool at_once);

  UniqueFd fd_;
  std::string sha256_;
  uint64_t chunks_;
  // Entries around the last one that was asked for: memory does not grow with the block.
  uint64_t window_first_ = 0;
  std::vector<uint8_t> window_;
};

}  // namespace ecpipe
