// SPDX-License-Identifier: Apache-2.0
#include "pipeline/parity_check_sink.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/status.h"
#include "codec/check_rows.h"
#include "model/corrupt_block.h"

namespace ecpipe {
namespace {

bool AllZero(std::span<const uint8_t> bytes) {
  return bytes.empty() ||
         (bytes[0] == 0 && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

}  // namespace

ParityCheckSink::ParityCheckSink(const RepairPart& part, SliceSink* inner)
    : inner_(inner), check_(part.check) {
  ECPIPE_CHECK(check_.rows > 0);
  for (const HopSpec& hop : part.hops) rows_ = std::max(rows_, hop.stored_rows.size());
}

absl::Status ParityCheckSink::Write(Row row, uint32_t slice_index, std::span<const uint8_t> bytes) {
  // Every stream and sink carries the rows of a slice in ascending order.
  std::vector<uint8_t>& held = held_[slice_index];
  if (row >= rows_ || held.size() != row * bytes.size()) {
    return absl::InternalError("the rows of slice " + std::to_string(slice_index) +
                               " came out of order");
  }
  held.reserve(rows_ * bytes.size());
  held.insert(held.end(), bytes.begin(), bytes.end());
  if (row + size_t{1} < rows_) return absl::OkStatus();
  const std::vector<uint8_t> slice = std::move(held);
  held_.erase(slice_index);
  const size_t data_rows = rows_ - check_.rows;
  const std::span<const uint8_t> all(slice);
  ECPIPE_RETURN_IF_ERROR(Check(slice_index, all.subspan(data_rows * bytes.size()), bytes.size()));
  for (size_t i = 0; i < data_rows; ++i) {
    ECPIPE_RETURN_IF_ERROR(inner_->Write(static_cast<Row>(i), slice_index,
                                         all.subspan(i * bytes.size(), bytes.size())));
  }
  return absl::OkStatus();
}

absl::Status ParityCheckSink::Check(uint32_t slice_index, std::span<const uint8_t> sums,
                                    size_t bytes) {
  if (AllZero(sums)) return absl::OkStatus();
  corrupt_slice_ = slice_index;
  const std::string where = "slice " + std::to_string(slice_index);
  if (check_.rows == 1) {
    return absl::DataLossError(
        where + ": a block that was read is corrupt: the blocks do not fit their parity");
  }
  std::vector<std::vector<uint8_t>> columns;
  for (const ParityCheck::Source& source : check_.sources) columns.push_back(source.column);
  const auto found = LocateCorrupt(columns, sums.first(bytes), sums.subspan(bytes, bytes));
  if (!found) {
    return absl::DataLossError(where + ": more than one of the blocks that were read is corrupt");
  }
  const ParityCheck::Source& source = check_.sources[*found];
  return CorruptBlockError(source.block_id, where + ": block " + source.block_id + " on node " +
                                                source.node +
                                                " is corrupt: it does not fit the others");
}

}  // namespace ecpipe
