// SPDX-License-Identifier: Apache-2.0
#include "requestor/files/striped_reader.h"

#include <algorithm>
#include <atomic>

#include "base/mutex.h"
#include "base/side_by_side.h"
#include "base/status.h"

namespace ecpipe {
namespace {

// More would not be faster: each has a repair of its own.
constexpr size_t kReaders = 8;

// How many bytes of the first `end` bytes of the part are in the block.
uint64_t BytesBefore(const StripedFile::Part& part, size_t block, uint64_t end) {
  const uint64_t row = part.cell_bytes * part.data_blocks.size();
  const uint64_t before = part.cell_bytes * block;
  const uint64_t last = end % row;
  return end / row * part.cell_bytes +
         (last <= before ? 0 : std::min(last - before, part.cell_bytes));
}

struct Piece {
  BlockRange range;
  std::vector<uint8_t> bytes;
};

// Fills the pieces, several at a time.
absl::Status ReadPieces(const StripedFile::Part& part, const ReadBlockFn& read,
                        std::vector<Piece>* pieces) {
  std::atomic<bool> enough{false};
  Mutex mutex;
  absl::Status failed;
  SideBySide(pieces->size(), kReaders, [&](size_t i) {
    if (enough) return;
    Piece& piece = (*pieces)[i];
    piece.bytes.assign(static_cast<size_t>(piece.range.bytes), 0);
    if (piece.bytes.empty() || part.data_blocks[i].empty()) return;  // zeros
    const absl::Status status = read(part.data_blocks[i], piece.range.offset, piece.bytes);
    if (status.ok()) return;
    enough = true;
    MutexLock lock(&mutex);
    failed.Update(status);
  });
  MutexLock lock(&mutex);
  return failed;
}

}  // namespace

absl::Status DirectOrRebuilt::Read(const std::string& block_id, uint64_t offset,
                                   std::span<uint8_t> out) {
  bool lost = false;
  {
    MutexLock lock(&mutex_);
    const auto known = rebuilt_.find(block_id);
    lost = known != rebuilt_.end() && known->second;
  }
  if (!lost) {
    const absl::Status direct = direct_(block_id, offset, out);
    if (direct.ok() || absl::IsCancelled(direct)) return direct;
    lost =
        absl::IsFailedPrecondition(direct) || absl::IsNotFound(direct) || absl::IsDataLoss(direct);
    MutexLock lock(&mutex_);
    bool& known = rebuilt_[block_id];
    known = known || lost;
  }
  return rebuild_(block_id, offset, out);
}

size_t DirectOrRebuilt::rebuilt() const {
  MutexLock lock(&mutex_);
  return rebuilt_.size();
}

BlockRange RangeInBlock(const StripedFile::Part& part, size_t block, uint64_t begin, uint64_t end) {
  const uint64_t offset = BytesBefore(part, block, begin);
  return {offset, BytesBefore(part, block, end) - offset};
}

absl::Status ReadPart(const StripedFile::Part& part, uint64_t begin, uint64_t end,
                      const ReadBlockFn& read, const TakeBytesFn& take) {
  begin = std::max(begin, part.offset) - part.offset;
  end = std::min(end, part.offset + part.bytes) - part.offset;
  const uint64_t row = part.cell_bytes * part.data_blocks.size();
  const uint64_t rows = kStripedWindowBytes / row;
  for (uint64_t at = begin; at < end;) {
    const uint64_t window_end =
        std::min(rows > 0 ? at - at % row + rows * row : at + kStripedWindowBytes, end);
    std::vector<Piece> pieces(part.data_blocks.size());
    for (size_t i = 0; i < pieces.size(); ++i) {
      pieces[i].range = RangeInBlock(part, i, at, window_end);
    }
    ECPIPE_RETURN_IF_ERROR(ReadPieces(part, read, &pieces));
    for (std::vector<size_t> taken(pieces.size(), 0); at < window_end;) {
      const auto block = static_cast<size_t>(at / part.cell_bytes % pieces.size());
      const uint64_t step = std::min(part.cell_bytes - at % part.cell_bytes, window_end - at);
      ECPIPE_RETURN_IF_ERROR(
          take(std::span(pieces[block].bytes).subspan(taken[block], static_cast<size_t>(step))));
      taken[block] += static_cast<size_t>(step);
      at += step;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> ReadFileRange(const FileRange& range, const FileAtFn& file_at,
                                       const ReadBlockFn& read, const TakeBytesFn& take) {
  ECPIPE_ASSIGN_OR_RETURN(StripedFile file, file_at(range.offset));
  if (range.offset > file.bytes || range.bytes > file.bytes - range.offset) {
    return absl::InvalidArgumentError("the range is not within the " + std::to_string(file.bytes) +
                                      " bytes of " + range.path);
  }
  const std::string id = file.id;
  const uint64_t bytes = file.bytes;
  const uint64_t end = range.bytes == 0 ? bytes : range.offset + range.bytes;
  for (uint64_t at = range.offset; at < end;) {
    for (const StripedFile::Part& part : file.parts) {
      if (at >= end) break;
      ECPIPE_RETURN_IF_ERROR(ReadPart(part, at, end, read, take));
      at = std::min(part.offset + part.bytes, end);
    }
    if (at >= end) break;
    ECPIPE_ASSIGN_OR_RETURN(file, file_at(at));
    if (file.id != id || file.bytes != bytes) {
      return absl::FailedPreconditionError(range.path + " has changed while it was read");
    }
  }
  return end - range.offset;
}

}  // namespace ecpipe
