// SPDX-License-Identifier: Apache-2.0
// The sink of a part with check rows. It holds each slice until its check rows have come and are
// zero, and then hands the rows of the failed blocks on to the inner sink.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "model/plan/repair_plan.h"
#include "pipeline/slice_sink.h"

namespace ecpipe {

// Used by the thread of the part. For each lane it holds at most the rows of one slice.
class ParityCheckSink : public SliceSink {
 public:
  // `part` has passed ValidatePart and has check rows. `inner` outlives the sink.
  ParityCheckSink(const RepairPart& part, SliceSink* inner);

  bool Ready(Row row, uint32_t slice_index) override { return inner_->Ready(row, slice_index); }

  // DATA_LOSS if the check rows are not zero: a source is corrupt. With two check rows and one
  // corrupt source the status names its block (corrupt_block.h).
  absl::Status Write(Row row, uint32_t slice_index, std::span<const uint8_t> bytes) override;

  // The slice in which a source is corrupt, after Write has failed for that reason. Any thread,
  // after the part has ended.
  std::optional<uint32_t> corrupt_slice() const { return corrupt_slice_; }

 private:
  absl::Status Check(uint32_t slice_index, std::span<const uint8_t> sums, size_t bytes);

  SliceSink* const inner_;
  const ParityCheck check_;
  size_t rows_ = 0;                                // check rows included
  std::map<uint32_t, std::vector<uint8_t>> held_;  // rows of a slice, one after the other
  std::optional<uint32_t> corrupt_slice_;
};

}  // namespace ecpipe
