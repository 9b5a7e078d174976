// SPDX-License-Identifier: Apache-2.0
#include "helper/store_sink.h"

#include "common/status.h"

namespace ecpipe {

absl::StatusOr<std::unique_ptr<StoreSink>> StoreSink::Create(const RepairPart& part,
                                                             BlockStore* store) {
  std::unique_ptr<StoreSink> sink(new StoreSink(part.grid));
  for (const StoredBlock& stored : part.stores) {
    ECPIPE_ASSIGN_OR_RETURN(std::unique_ptr<BlockWriter> writer,
                            store->Create(stored.block_id, stored.bytes));
    sink->blocks_[stored.row] = {std::move(writer), stored.block_id, stored.bytes};
  }
  return sink;
}

absl::Status StoreSink::Write(Row row, uint32_t slice_index, std::span<const uint8_t> bytes) {
  Block& block = blocks_.at(row);
  ECPIPE_RETURN_IF_ERROR(Annotate(block.writer->WriteAt(grid_.SliceOffset(slice_index), bytes),
                                  "store block " + block.block_id));
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
