// SPDX-License-Identifier: Apache-2.0
// Where the rows of a hosted requestor end: blocks of the helper's own store.
#pragma once

#include <map>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/repair_plan.h"
#include "helper/block_store.h"
#include "helper/part_sink.h"

namespace ecpipe {

class StoreSink : public PartSink {
 public:
  // Begins every block that the part stores.
  static absl::StatusOr<std::unique_ptr<StoreSink>> Create(const RepairPart& part,
                                                           BlockStore* store);

  absl::Status Write(Row row, uint32_t slice_index, std::span<const uint8_t> bytes) override;

  // Stores the blocks after a success, and discards them after anything else. DATA_LOSS when bytes
  // are missing.
  absl::Status End(const absl::Status& outcome) override;

 private:
  struct Block {
    std::unique_ptr<BlockWriter> writer;
    std::string block_id;
    uint64_t missing_bytes = 0;
  };

  StoreSink(const SliceGrid& grid, const BlockLayout& layout) : grid_(grid), layout_(layout) {}
  absl::Status Commit();

  const SliceGrid grid_;
  const BlockLayout layout_;
  std::map<Row, Block> blocks_;  // by first row
};

}  // namespace ecpipe
