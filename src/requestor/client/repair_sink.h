// SPDX-License-Identifier: Apache-2.0
// The sink of a repair at a requestor: hands the wanted bytes on, in order to a function or in any
// order to a file for each block, and knows which slices are still missing.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/file_io.h"
#include "base/progress_fn.h"
#include "model/plan/repair_plan.h"
#include "pipeline/slice_sink.h"

namespace ecpipe {

// Takes the bytes of one block in the order of the range. An error ends the repair with it.
using ByteSink = std::function<absl::Status(std::span<const uint8_t> bytes)>;

// Takes the bytes of several blocks in the order of the range. Each call brings the same piece of
// the range of every block: `pieces` has one for each, all equally long. An error ends the repair
// with it.
using PiecesSink = std::function<absl::Status(std::span<const std::span<const uint8_t>> pieces)>;

// It lives through all attempts of a repair: verified slices are kept, and the next attempt brings
// only the others. Used by one thread at a time; any thread may read byte counts.
class RepairSink : public SliceSink {
 public:
  // All of these outlive the sink.
  RepairSink(const PiecesSink* in_order, const ProgressFn& progress)
      : in_order_(in_order), progress_(progress) {}
  RepairSink(std::vector<AtomicFile>* files, const ProgressFn& progress)
      : files_(files), progress_(progress) {}

  // Begins an attempt. Its part brings bytes [offset, offset + bytes) of each of the blocks, or the
  // missing ones of these, and perhaps more around them. `block_lengths` has the length of each;
  // zeros come behind the end of a block, which a function gets and a file does not. INTERNAL: the
  // part does not fit the range, or the attempts before it.
  absl::Status Begin(const RepairPart& part, uint64_t offset, uint64_t bytes,
                     const std::vector<uint64_t>& block_lengths);

  bool Ready(Row row, uint32_t slice_index) override;
  absl::Status Write(Row row, uint32_t slice_index, std::span<const uint8_t> bytes) override;

  // The slices that the next attempt must bring, ascending. Verified slices that lie scattered
  // between them may be named again.
  std::vector<SliceRun> Missing() const;
  const SliceGrid& grid() const { return grid_; }

  // These count what comes behind the end of a block as well.
  uint64_t verified_bytes() const { return verified_bytes_; }
  uint64_t total_bytes() const { return bytes_ * blocks(); }
  // What the block has of the range.
  uint64_t bytes_of(size_t block) const;
  // What the function that takes the bytes in order has said, if it wants no more of them. No fault
  // of the repair.
  const absl::Status& refused() const { return refused_; }
  // Until the first bytes were handed on in order; none: they were not.
  std::optional<double> SecondsToFirstByte(TimePoint since) const;
  // What is missing of each block.
  uint64_t missing_bytes() const { return bytes_ - verified_bytes_ / blocks(); }

 private:
  size_t blocks() const { return block_lengths_.size(); }
  // The part of a piece of the block that was asked for.
  std::span<const uint8_t> Wanted(size_t block, uint64_t place,
                                  std::span<const uint8_t> piece) const;
  absl::Status Take(size_t block, uint32_t slice_index, uint64_t place,
                    std::span<const uint8_t> piece);
  absl::Status HandOn(std::span<const std::span<const uint8_t>> pieces);
  // What held_ has of each block.
  uint64_t HeldBytes() const;
  // Called when all rows of the slice have come.
  absl::Status Complete(uint32_t slice_index);
  void ShowProgress();

  const PiecesSink* const in_order_ = nullptr;
  std::vector<AtomicFile>* const files_ = nullptr;
  const ProgressFn& progress_;
  SliceGrid grid_;
  BlockLayout layout_;
  uint64_t offset_ = 0;
  uint64_t bytes_ = 0;
  std::vector<uint64_t> block_lengths_;
  std::vector<uint8_t> rows_left_;  // rows that each slice still needs in this attempt; 0: verified
  uint32_t next_slice_ = 0;         // for bytes in order: the next slice to hand on
  // For bytes in order of several rows: the current slice of each block, one after the other.
  std::vector<uint8_t> held_;
  std::atomic<uint64_t> verified_bytes_{0};
  absl::Status refused_;
  std::optional<TimePoint> first_handed_on_;
  TimePoint next_progress_{};
};

}  // namespace ecpipe
