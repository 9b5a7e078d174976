// SPDX-License-Identifier: Apache-2.0
// Checksum files of the plain-directory layout: CRC32C of each chunk of a block, in a file beside
// it. Block X has the checksum file .crc32c.X.
//
//   header (24 bytes, all integers little-endian)
//     0  "ECPC"            magic
//     4  u8   1            version
//     5  3 bytes 0         reserved
//     8  u64  length of the block
//    16  u32  chunk bytes  4096
//    20  u32  CRC32C of bytes 0..19
//   then for each chunk  u32  CRC32C of its bytes; the last chunk may be short
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
  absl::Status Commit();

  const std::string& path() const { return file_.path(); }

 private:
  ChecksumFileWriter(AtomicFile file, uint64_t entries_offset)
      : file_(std::move(file)), entries_offset_(entries_offset) {}
  void EndChunk();
  absl::Status FlushEntries();

  AtomicFile file_;
  uint64_t block_bytes_ = 0;
  uint32_t chunk_crc_ = 0;
  std::vector<uint8_t> entries_;  // not written yet
  uint64_t entries_offset_;       // of the first of them, in the file
};

// An open checksum file. Used by one thread.
class ChecksumFile {
 public:
  // DATA_LOSS: the file is not a checksum file for a block of `block_bytes`.
  static absl::StatusOr<ChecksumFile> Open(UniqueFd fd, uint64_t block_bytes);

  // The checksum of a chunk of the block. With `at_once` it returns nothing instead of waiting for
  // a disk. DATA_LOSS: the file is too short.
  absl::StatusOr<std::optional<uint32_t>> Find(uint64_t chunk, bool at_once);

 private:
  ChecksumFile(UniqueFd fd, uint64_t chunks) : fd_(std::move(fd)), chunks_(chunks) {}
  absl::StatusOr<bool> LoadWindow(uint64_t first_chunk, bool at_once);

  UniqueFd fd_;
  uint64_t chunks_;
  // Entries around the last one that was asked for: memory does not grow with the block.
  uint64_t window_first_ = 0;
  std::vector<uint8_t> window_;
};

}  // namespace ecpipe
