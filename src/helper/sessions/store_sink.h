// SPDX-License-Identifier: Apache-2.0
// The sink of a part that stores its rows as blocks of the helper's own store.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "helper/store/block_store.h"
#include "model/plan/repair_plan.h"
#include "pipeline/slice_sink.h"

namespace ecpipe {

// A sink may live through several attempts of a repair, one after the other: it keeps verified
// slices, and the next attempt brings at least the others. Used by one thread at a time. If it is
// destroyed before its blocks are stored, it leaves nothing behind.
class StoreSink : public SliceSink {
 public:
  // The memory that a part's slices take, beside the blocks on disk.
  static uint64_t TallyBytes(const RepairPart& part);

  // Begins every block that the part stores.
  static absl::StatusOr<std::unique_ptr<StoreSink>> Create(const RepairPart& part,
                                                           BlockStore* store);

  // Begins another attempt. FAILED_PRECONDITION: it stores other blocks, or cuts them into other
  // slices; the sink is unchanged then.
  absl::Status Resume(const RepairPart& part);

  bool Ready(Row, uint32_t) override { return true; }
  absl::Status Write(Row row, uint32_t slice_index, std::span<const uint8_t> bytes) override;

  // If `outcome` is OK: stores the blocks. DATA_LOSS: slices are missing, or a block has another
  // SHA-256 than its manifest says; no block is stored then, and the slices are discarded. If
  // `outcome` is an error: returns it and keeps the slices.
  absl::Status End(const absl::Status& outcome);
  // Discards all slices.
  void Discard() { blocks_.clear(); }

  bool HasBlocks() const { return !blocks_.empty(); }
  // As MissingRuns (model/plan/slice_runs.h).
  std::vector<SliceRun> Missing() const;
  // What each block lacks, in whole slices. Any thread.
  uint64_t missing_bytes() const {
    return uint64_t{slices_left_} * grid_.slice_bytes * layout_.sub_blocks;
  }

 private:
  struct Block {
    std::unique_ptr<BlockWriter> writer;
    std::string block_id;
    uint64_t bytes = 0;
    std::string sha256;  // the SHA-256 that the block must have; empty: not known
  };

  StoreSink(const SliceGrid& grid, const BlockLayout& layout) : grid_(grid), layout_(layout) {}
  absl::Status WriteRow(Row row, uint32_t slice_index, std::span<const uint8_t> bytes);
  absl::Status Commit();
  static absl::Status CheckSha256(const Block& block);

  const SliceGrid grid_;
  const BlockLayout layout_;
  std::map<Row, Block> blocks_;     // by first row of this attempt
  std::vector<uint8_t> rows_left_;  // of each slice, in this attempt; 0: verified
  std::atomic<uint32_t> slices_left_ = 0;
  bool broken_ = false;  // a write failed, so the bytes on disk are not known
};

}  // namespace ecpipe
