// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "helper/store/file_pieces.h"
#include "pipeline/block_reader.h"

namespace ecpipe {

// The file of a block that may have a checksum for each of its chunks. It reads the whole chunks
// around the wanted range, and hands over only bytes that were checked. Of ranges within one chunk
// it keeps the chunk, so that small slices in a row read and check it once. The derived class knows
// the kind of the checksums, and where they are.
class CheckedFile : public BlockReader {
 public:
  uint64_t bytes() const override { return bytes_; }
  bool has_checksums() const override { return chunk_bytes_ > 0; }
  absl::Status ReadAt(uint64_t offset, std::span<uint8_t> out) override;
  absl::StatusOr<bool> TryReadAt(uint64_t offset, std::span<uint8_t> out) override;

 protected:
  // Whether the call may wait for a checksum.
  enum class Patience { kAtOnce, kWait };

  // `chunk_bytes` 0: there are no checksums. The block begins at `block_offset` of the file.
  CheckedFile(std::string block_id, UniqueFd file, uint64_t bytes, size_t chunk_bytes,
              uint64_t block_offset = 0);

  const std::string& block_id() const { return block_id_; }
  int file() const { return file_.get(); }

 private:
  // The range of whole chunks that has to be read to check a range.
  struct Reach {
    size_t before = 0;
    size_t after = 0;
  };

  // Extends the checksum `crc` (0 for no bytes) by `bytes`.
  virtual uint32_t Extend(uint32_t crc, std::span<const uint8_t> bytes) const = 0;
  // True if `crc` is the checksum of the chunk; false if that cannot be told without waiting. An
  // error if it is another one.
  virtual absl::StatusOr<bool> CheckChunk(uint64_t chunk, uint32_t crc, Patience patience) = 0;
  // The error for a file that ends at `at`, before its length.
  virtual absl::Status EndedAt(uint64_t at) const = 0;

  // Whether the range is a part of one chunk.
  bool IsWithinAChunk(uint64_t offset, size_t bytes) const;
  uint64_t ChunkBegin(uint64_t offset) const { return offset - offset % chunk_bytes_; }
  // Makes room for the chunk that begins there.
  std::span<uint8_t> RoomForChunk(uint64_t begin);
  void CopyKept(uint64_t offset, std::span<uint8_t> out) const;
  // Of any range, without what is kept.
  absl::Status ReadRange(uint64_t offset, std::span<uint8_t> out);
  absl::StatusOr<bool> TryReadRange(uint64_t offset, std::span<uint8_t> out);

  Reach ReachOf(uint64_t offset, size_t bytes) const;
  FilePieces PiecesOf(const Reach& reach, std::span<uint8_t> out);
  // True if all chunks of the range are right; false if that cannot be told without waiting.
  absl::StatusOr<bool> Check(const Reach& reach, uint64_t offset, std::span<const uint8_t> out,
                             Patience patience);

  const std::string block_id_;
  const UniqueFd file_;
  const uint64_t bytes_;
  const size_t chunk_bytes_;
  const uint64_t block_offset_;
  std::vector<uint8_t> before_;
  std::vector<uint8_t> after_;
  std::vector<uint8_t> kept_;  // a chunk that was checked
  std::optional<uint64_t> kept_at_;
};

}  // namespace ecpipe
