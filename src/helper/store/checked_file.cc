// SPDX-License-Identifier: Apache-2.0
#include "helper/store/checked_file.h"

#include <fcntl.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/status.h"

namespace ecpipe {

CheckedFile::CheckedFile(std::string block_id, UniqueFd file, uint64_t bytes, size_t chunk_bytes,
                         uint64_t block_offset)
    : block_id_(std::move(block_id)),
      file_(std::move(file)),
      bytes_(bytes),
      chunk_bytes_(chunk_bytes),
      block_offset_(block_offset),
      before_(chunk_bytes),
      after_(chunk_bytes) {
  ::posix_fadvise(file_.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
}

absl::Status CheckedFile::ReadAt(uint64_t offset, std::span<uint8_t> out) {
  if (!IsWithinAChunk(offset, out.size())) return ReadRange(offset, out);
  const uint64_t begin = ChunkBegin(offset);
  if (kept_at_ != begin) {
    ECPIPE_RETURN_IF_ERROR(ReadRange(begin, RoomForChunk(begin)));
    kept_at_ = begin;
  }
  CopyKept(offset, out);
  return absl::OkStatus();
}

absl::StatusOr<bool> CheckedFile::TryReadAt(uint64_t offset, std::span<uint8_t> out) {
  if (!IsWithinAChunk(offset, out.size())) return TryReadRange(offset, out);
  const uint64_t begin = ChunkBegin(offset);
  if (kept_at_ != begin) {
    ECPIPE_ASSIGN_OR_RETURN(const bool read, TryReadRange(begin, RoomForChunk(begin)));
    if (!read) return false;
    kept_at_ = begin;
  }
  CopyKept(offset, out);
  return true;
}

bool CheckedFile::IsWithinAChunk(uint64_t offset, size_t bytes) const {
  return bytes > 0 && bytes < chunk_bytes_ && offset + bytes <= bytes_ &&
         offset % chunk_bytes_ + bytes <= chunk_bytes_;
}

std::span<uint8_t> CheckedFile::RoomForChunk(uint64_t begin) {
  kept_at_.reset();
  kept_.resize(static_cast<size_t>(std::min<uint64_t>(chunk_bytes_, bytes_ - begin)));
  return kept_;
}

void CheckedFile::CopyKept(uint64_t offset, std::span<uint8_t> out) const {
  const auto from = static_cast<std::ptrdiff_t>(offset - *kept_at_);
  std::copy_n(kept_.begin() + from, out.size(), out.begin());
}

absl::Status CheckedFile::ReadRange(uint64_t offset, std::span<uint8_t> out) {
  const Reach reach = ReachOf(offset, out.size());
  FilePieces pieces = PiecesOf(reach, out);
  uint64_t at = offset - reach.before;
  while (!pieces.Full()) {
    const ssize_t got = pieces.ReadSome(file_.get(), block_offset_ + at, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, "read");
    if (got == 0) return EndedAt(at);
    at += static_cast<uint64_t>(got);
  }
  return Check(reach, offset, out, Patience::kWait).status();
}

absl::StatusOr<bool> CheckedFile::TryReadRange(uint64_t offset, std::span<uint8_t> out) {
  const Reach reach = ReachOf(offset, out.size());
  FilePieces pieces = PiecesOf(reach, out);
  if (!pieces.Full())
    pieces.ReadSome(file_.get(), block_offset_ + offset - reach.before, RWF_NOWAIT);
  // A short read, EAGAIN, or a file system without this flag: the waiting read finds out.
  if (!pieces.Full()) return false;
  return Check(reach, offset, out, Patience::kAtOnce);
}

CheckedFile::Reach CheckedFile::ReachOf(uint64_t offset, size_t bytes) const {
  if (chunk_bytes_ == 0 || bytes == 0 || offset + bytes > bytes_) return {};
  const uint64_t end = offset + bytes;
  const uint64_t chunk_end =
      std::min((end + chunk_bytes_ - 1) / chunk_bytes_ * chunk_bytes_, bytes_);
  return {static_cast<size_t>(offset % chunk_bytes_), static_cast<size_t>(chunk_end - end)};
}

FilePieces CheckedFile::PiecesOf(const Reach& reach, std::span<uint8_t> out) {
  FilePieces pieces;
  pieces.Add(std::span(before_).first(reach.before));
  pieces.Add(out);
  pieces.Add(std::span(after_).first(reach.after));
  return pieces;
}

absl::StatusOr<bool> CheckedFile::Check(const Reach& reach, uint64_t offset,
                                        std::span<const uint8_t> out, Patience patience) {
  if (chunk_bytes_ == 0 || out.empty()) return true;
  uint64_t chunk = offset / chunk_bytes_;
  uint32_t crc = Extend(0, std::span(before_).first(reach.before));
  size_t room = chunk_bytes_ - reach.before;
  while (!out.empty()) {
    const size_t step = std::min(out.size(), room);
    crc = Extend(crc, out.first(step));
    out = out.subspan(step);
    if (out.empty()) crc = Extend(crc, std::span(after_).first(reach.after));
    ECPIPE_ASSIGN_OR_RETURN(const bool checked, CheckChunk(chunk, crc, patience));
    if (!checked) return false;
    ++chunk;
    crc = 0;
    room = chunk_bytes_;
  }
  return true;
}

}  // namespace ecpipe
