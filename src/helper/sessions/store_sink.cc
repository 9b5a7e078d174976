// SPDX-License-Identifier: Apache-2.0
#include "helper/sessions/store_sink.h"

#include <algorithm>
#include <utility>

#include "base/bytes/sha256.h"
#include "base/status.h"
#include "model/plan/slice_runs.h"

namespace ecpipe {
namespace {

// At most kMaxRows, so it fits.
uint8_t RowsOf(const RepairPart& part) {
  return static_cast<uint8_t>(part.stores.size() * part.layout.sub_blocks);
}

}  // namespace

uint64_t StoreSink::TallyBytes(const RepairPart& part) {
  return part.stores.empty() ? 0 : part.grid.slice_count();
}

absl::StatusOr<std::unique_ptr<StoreSink>> StoreSink::Create(const RepairPart& part,
                                                             BlockStore* store) {
  std::unique_ptr<StoreSink> sink(new StoreSink(part.grid, part.layout));
  for (const StoredBlock& stored : part.stores) {
    ECPIPE_ASSIGN_OR_RETURN(std::unique_ptr<BlockWriter> writer,
                            store->Create(stored.block_id, stored.bytes));
    sink->blocks_[stored.row] = {std::move(writer), stored.block_id, stored.bytes,
                                 part.Sha256Of(stored.row)};
  }
  sink->rows_left_.assign(part.grid.slice_count(), RowsOf(part));
  sink->slices_left_ = part.grid.slice_count();
  return sink;
}

absl::Status StoreSink::Resume(const RepairPart& part) {
  if (part.grid != grid_ || part.layout != layout_ || part.stores.size() != blocks_.size()) {
    return absl::FailedPreconditionError(
        "the attempt cuts its blocks into other slices than the attempt before it");
  }
  std::map<Row, Row> first_rows;  // now, by before
  for (const StoredBlock& stored : part.stores) {
    const auto same = [&](const auto& entry) {
      return entry.second.block_id == stored.block_id && entry.second.bytes == stored.bytes;
    };
    const auto found = std::find_if(blocks_.begin(), blocks_.end(), same);
    if (found == blocks_.end() || !first_rows.emplace(found->first, stored.row).second) {
      return absl::FailedPreconditionError(
          "the attempt stores other blocks than the attempt before it");
    }
  }
  std::map<Row, Block> blocks;
  for (auto& [row, block] : blocks_) {
    const Row now = first_rows.at(row);
    block.sha256 = part.Sha256Of(now);
    blocks[now] = std::move(block);
  }
  blocks_ = std::move(blocks);
  for (uint8_t& left : rows_left_) {
    if (left != 0) left = RowsOf(part);
  }
  return absl::OkStatus();
}

absl::Status StoreSink::Write(Row row, uint32_t slice_index, std::span<const uint8_t> bytes) {
  if (rows_left_[slice_index] == 0) return absl::OkStatus();
  const absl::Status written = WriteRow(row, slice_index, bytes);
  broken_ |= !written.ok();
  if (written.ok() && --rows_left_[slice_index] == 0) --slices_left_;
  return written;
}

absl::Status StoreSink::WriteRow(Row row, uint32_t slice_index, std::span<const uint8_t> bytes) {
  const uint32_t sub_block = row % layout_.sub_blocks;
  Block& block = blocks_.at(static_cast<Row>(row - sub_block));
  absl::Status written;
  layout_.ForEachPiece(sub_block, grid_.SliceOffset(slice_index), bytes.size(),
                       [&](uint64_t offset, uint64_t at, uint64_t piece_bytes) {
                         written = block.writer->WriteAt(offset, bytes.subspan(at, piece_bytes));
                         return written.ok();
                       });
  return Annotate(written, "store block " + block.block_id);
}

absl::Status StoreSink::End(const absl::Status& outcome) {
  if (!outcome.ok()) {
    if (broken_) Discard();
    return outcome;
  }
  const absl::Status status = Commit();
  Discard();
  return status;
}

absl::Status StoreSink::Commit() {
  const auto missing =
      std::count_if(rows_left_.begin(), rows_left_.end(), [](uint8_t rows) { return rows != 0; });
  if (missing > 0) {
    return absl::DataLossError("block " + blocks_.begin()->second.block_id + " lacks " +
                               std::to_string(missing) + " slices");
  }
  for (const auto& [row, block] : blocks_) ECPIPE_RETURN_IF_ERROR(CheckSha256(block));
  for (auto& [row, block] : blocks_) {
    if (!block.sha256.empty()) block.writer->NoteSha256(block.sha256);
    ECPIPE_RETURN_IF_ERROR(Annotate(block.writer->Commit(), "store block " + block.block_id));
  }
  return absl::OkStatus();
}

absl::Status StoreSink::CheckSha256(const Block& block) {
  if (block.sha256.empty()) return absl::OkStatus();
  const auto read_back = [&](uint64_t offset, std::span<uint8_t> out) {
    return block.writer->ReadAt(offset, out);
  };
  ECPIPE_ASSIGN_OR_RETURN(const std::string got, Sha256Of(read_back, block.bytes));
  return CompareRebuilt(block.block_id, got, block.sha256);
}

std::vector<SliceRun> StoreSink::Missing() const { return MissingRuns(rows_left_); }

}  // namespace ecpipe
