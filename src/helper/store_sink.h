// SPDX-License-Identifier: Apache-2.0
// Where the rows of a hosted requestor end: blocks of the helper's own store.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/repair_plan.h"
#include "helper/block_store.h"
#include "pipeline/slice_sink.h"

namespace ecpipe {

// May live through several attempts of a repair, one after the other: a slice that is verified is
// kept, and the next attempt brings the others, or more. Used by one thread at a time. Destroyed
// before its blocks are stored it leaves nothing.
class StoreSink : public SliceSink {
 public:
  // What it remembers of a part's slices, beside the blocks on disk.
  static uint64_t TallyBytes(const RepairPart& part);

  // Begins every block that the part stores.
  static absl::StatusOr<std::unique_ptr<StoreSink>> Create(const RepairPart& part,
                                                           BlockStore* store);

  // Another attempt begins. FAILED_PRECONDITION: it stores other blocks, or cuts them in another
  // way; the sink is as before.
  absl::Status Resume(const RepairPart& part);

  bool Ready(Row, uint32_t) override { return true; }
  absl::Status Write(Row row, uint32_t slice_index, std::span<const uint8_t> bytes) override;

  // After a success: stores the blocks; DATA_LOSS when slices are missing, or when a block is not
  // the one that its manifest knows, and then none is stored. After an error it
  // returns that one, and has what it had; after one of its own it has nothing any more.
  absl::Status End(const absl::Status& outcome);
  // Leaves nothing.
  void Discard() { blocks_.clear(); }

  bool HasBlocks() const { return !blocks_.empty(); }
  // As MissingRuns (common/slice_runs.h).
  std::vector<SliceRun> Missing() const;
  // Of each block, in whole slices. From any thread.
  uint64_t missing_bytes() const {
    return uint64_t{slices_left_} * grid_.slice_bytes * layout_.sub_blocks;
  }

 private:
  struct Block {
    std::unique_ptr<BlockWriter> writer;
    std::string block_id;
    uint64_t bytes = 0;
    std::string sha256;  // that it must have; empty: not known
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
  bool broken_ = false;  // a write failed: what it left on disk is not known
};

}  // namespace ecpipe
