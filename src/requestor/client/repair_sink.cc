// SPDX-License-Identifier: Apache-2.0
#include "requestor/client/repair_sink.h"

#include <algorithm>

#include "base/status.h"
#include "model/plan/slice_runs.h"

namespace ecpipe {

absl::Status RepairSink::Begin(const RepairPart& part, uint64_t offset, uint64_t bytes,
                               const std::vector<uint64_t>& block_lengths) {
  const uint32_t unit = part.layout.unit_bytes;
  if (unit > 0 && (part.grid.offset % unit != 0 || part.grid.slice_bytes % unit != 0)) {
    return absl::InternalError("the slices of the part are not whole units of the code");
  }
  const size_t rows = block_lengths.size() * part.layout.sub_blocks;
  if (rows == 0 || rows > kMaxRows) {
    return absl::InternalError("the part has an impossible number of rows: " +
                               std::to_string(rows));
  }
  if (rows_left_.empty()) {
    grid_ = part.grid;
    layout_ = part.layout;
    offset_ = offset;
    bytes_ = bytes;
    block_lengths_ = block_lengths;
    rows_left_.assign(grid_.slice_count(), static_cast<uint8_t>(rows));
    if (in_order_ != nullptr && rows > 1) held_.resize(HeldBytes() * blocks());
    ShowProgress();
    return absl::OkStatus();
  }
  if (part.grid != grid_ || part.layout != layout_) {
    return absl::InternalError(
        "the attempt cuts the block into other slices than the attempt before it");
  }
  for (uint8_t& left : rows_left_) {
    if (left != 0) left = static_cast<uint8_t>(rows);
  }
  return absl::OkStatus();
}

bool RepairSink::Ready(Row, uint32_t slice_index) {
  return in_order_ == nullptr || slice_index <= next_slice_;
}

absl::Status RepairSink::Write(Row row, uint32_t slice_index, std::span<const uint8_t> bytes) {
  const uint32_t block = row / layout_.sub_blocks;
  if (block >= blocks()) {
    return absl::InternalError("the part brought a row that was not asked for");
  }
  if (rows_left_[slice_index] == 0) return absl::OkStatus();
  absl::Status written;
  layout_.ForEachPiece(row % layout_.sub_blocks, grid_.SliceOffset(slice_index), bytes.size(),
                       [&](uint64_t place, uint64_t at, uint64_t piece_bytes) {
                         written = Take(block, slice_index, place, bytes.subspan(at, piece_bytes));
                         return written.ok();
                       });
  ECPIPE_RETURN_IF_ERROR(written);
  if (rows_left_[slice_index] == 1) ECPIPE_RETURN_IF_ERROR(Complete(slice_index));
  --rows_left_[slice_index];
  ShowProgress();
  return absl::OkStatus();
}

uint64_t RepairSink::bytes_of(size_t block) const {
  return std::clamp(block_lengths_[block], offset_, offset_ + bytes_) - offset_;
}

std::span<const uint8_t> RepairSink::Wanted(size_t block, uint64_t place,
                                            std::span<const uint8_t> piece) const {
  const uint64_t bytes = files_ != nullptr ? bytes_of(block) : bytes_;
  const uint64_t begin = std::clamp(offset_, place, place + piece.size());
  const uint64_t end = std::clamp(offset_ + bytes, begin, place + piece.size());
  return piece.subspan(begin - place, end - begin);
}

absl::Status RepairSink::Take(size_t block, uint32_t slice_index, uint64_t place,
                              std::span<const uint8_t> piece) {
  if (!held_.empty()) {
    const uint64_t begin = grid_.SliceOffset(slice_index) * layout_.sub_blocks;
    const uint64_t at = block * HeldBytes() + (place - begin);
    std::copy(piece.begin(), piece.end(), held_.begin() + static_cast<ptrdiff_t>(at));
    return absl::OkStatus();
  }
  const std::span<const uint8_t> wanted = Wanted(block, place, piece);
  if (wanted.empty()) return absl::OkStatus();
  if (in_order_ != nullptr) return HandOn({&wanted, 1});
  return (*files_)[block].WriteAt(std::max(place, offset_) - offset_, wanted);
}

absl::Status RepairSink::Complete(uint32_t slice_index) {
  const uint64_t begin = grid_.SliceOffset(slice_index) * layout_.sub_blocks;
  const uint64_t slice_bytes = uint64_t{grid_.SliceBytes(slice_index)} * layout_.sub_blocks;
  const uint64_t first = std::clamp(offset_, begin, begin + slice_bytes);
  const uint64_t end = std::clamp(offset_ + bytes_, first, begin + slice_bytes);
  if (!held_.empty() && first < end) {
    std::vector<std::span<const uint8_t>> pieces;
    for (size_t block = 0; block < blocks(); ++block) {
      const uint64_t at = block * HeldBytes() + (first - begin);
      pieces.push_back(std::span<const uint8_t>(held_).subspan(at, end - first));
    }
    ECPIPE_RETURN_IF_ERROR(HandOn(pieces));
  }
  verified_bytes_ += (end - first) * blocks();
  next_slice_ = slice_index + 1;
  return absl::OkStatus();
}

absl::Status RepairSink::HandOn(std::span<const std::span<const uint8_t>> pieces) {
  if (!first_handed_on_) first_handed_on_ = Clock::System().Now();
  absl::Status taken = (*in_order_)(pieces);
  if (!taken.ok()) refused_ = taken;
  return taken;
}

std::optional<double> RepairSink::SecondsToFirstByte(TimePoint since) const {
  if (!first_handed_on_) return std::nullopt;
  return Seconds(*first_handed_on_ - since);
}

uint64_t RepairSink::HeldBytes() const {
  return std::min<uint64_t>(grid_.slice_bytes, grid_.bytes) * layout_.sub_blocks;
}

std::vector<SliceRun> RepairSink::Missing() const { return MissingRuns(rows_left_); }

void RepairSink::ShowProgress() {
  if (!progress_) return;
  constexpr auto kInterval = std::chrono::milliseconds(100);
  const TimePoint now = Clock::System().Now();
  if (now < next_progress_ && verified_bytes_ < total_bytes()) return;
  next_progress_ = now + kInterval;
  progress_(verified_bytes_, total_bytes());
}

}  // namespace ecpipe
