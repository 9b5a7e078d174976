// SPDX-License-Identifier: Apache-2.0
// The two ends of an engine without a disk: a block in memory, and rows that are kept there.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "model/plan/slice_grid.h"
#include "pipeline/block_reader.h"
#include "pipeline/slice_sink.h"

namespace ecpipe {

class MemoryBlock : public BlockReader {
 public:
  struct Options {
    uint64_t fail_from = UINT64_MAX;  // reading this byte, or one behind it, is an error
    bool cached = true;               // whether a read needs no waiting
  };
  // Borrows `bytes`, which outlive it.
  MemoryBlock(std::span<const uint8_t> bytes, const Options& options)
      : bytes_(bytes), options_(options) {}

  uint64_t bytes() const override { return bytes_.size(); }
  absl::Status ReadAt(uint64_t offset, std::span<uint8_t> out) override {
    if (offset + out.size() > options_.fail_from) return absl::InternalError("bad sector");
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
    return absl::OkStatus();
  }
  absl::StatusOr<bool> TryReadAt(uint64_t offset, std::span<uint8_t> out) override {
    if (!options_.cached) return false;
    const absl::Status status = ReadAt(offset, out);
    if (!status.ok()) return status;
    return true;
  }

 private:
  const std::span<const uint8_t> bytes_;
  const Options options_;
};

// Collects rows; in order if asked to.
class MemorySink : public SliceSink {
 public:
  enum class Order { kAny, kAscending };
  MemorySink(const SliceGrid& grid, Order order) : grid_(grid), order_(order) {}

  bool Ready(Row, uint32_t slice_index) override {
    return order_ == Order::kAny || slice_index == next_;
  }
  absl::Status Write(Row row, uint32_t slice_index, std::span<const uint8_t> bytes) override {
    std::vector<uint8_t>& target = rows_[row];
    target.resize(grid_.bytes);
    std::copy(bytes.begin(), bytes.end(),
              target.begin() +
                  static_cast<std::ptrdiff_t>(grid_.SliceOffset(slice_index) - grid_.offset));
    next_ = slice_index + 1;
    return absl::OkStatus();
  }
  const std::map<Row, std::vector<uint8_t>>& rows() const { return rows_; }

 private:
  const SliceGrid grid_;
  const Order order_;
  uint32_t next_ = 0;
  std::map<Row, std::vector<uint8_t>> rows_;
};

}  // namespace ecpipe
