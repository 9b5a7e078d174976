// SPDX-License-Identifier: Apache-2.0
#include "helper/store_sink.h"

#include "common/status.h"

namespace ecpipe {

absl::StatusOr<std::unique_ptr<StoreSink>> StoreSink::Create(const RepairPart& part,
                                                             BlockStore* store) {
  std::unique_ptr<StoreSink> sink(new StoreSink(part.grid, part.layout));
  for (const StoredBlock& stored : part.stores) {
    ECPIPE_ASSIGN_OR_RETURN(std::unique_ptr<BlockWriter> writer,
                            store->Create(stored.block_id, stored.bytes));
    sink->blocks_[stored.row] = {std::move(writer), stored.block_id, stored.bytes};
  }
  return sink;
}

absl::Status StoreSink::Write(Row row, uint32_t slice_index, std::span<const uint8_t> bytes) {
  const uint32_t sub_block = row % layout_.sub_blocks;
  Block& block = blocks_.at(static_cast<Row>(row - sub_block));
  absl::Status written;
  layout_.ForEachPiece(sub_block, grid_.SliceOffset(slice_index), bytes.size(),
                       [&](uint64_t offset, uint64_t at, uint64_t piece_bytes) {
                         written = block.writer->WriteAt(offset, bytes.subspan(at, piece_bytes));
                         return written.ok();
                       });
  ECPIPE_RETURN_IF_ERROR(Annotate(written, "store block " + block.block_id));
  block.missing_bytes -= bytes.size();
  return absl::OkStatus();
}

absl::Status StoreSink::End(const absl::Status& outcome) {
  const absl::Status status = outcome.ok() ? Commit() : outcome;
  blocks_.clear();
  return status;
}

absl::Status StoreSink::Commit() {
  for (const auto& [row, block] : blocks_) {
    if (block.missing_bytes == 0) continue;
    return absl::DataLossError("block " + block.block_id + " lacks " +
                               std::to_string(block.missing_bytes) + " bytes");
  }
  for (auto& [row, block] : blocks_) {
    ECPIPE_RETURN_IF_ERROR(Annotate(block.writer->Commit(), "store block " + block.block_id));
  }
  return absl::OkStatus();
}

}  // namespace ecpipe
