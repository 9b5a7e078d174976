// SPDX-License-Identifier: Apache-2.0
// Whole stripes are coded in columns. A column is the same byte range of all blocks, small enough
// for memory whatever the block size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes/aligned_buffer.h"
#include "codec/erasure_code.h"
#include "codec/kernel.h"

namespace ecpipe {

// One buffer that blocks are read into, and `rows` buffers that sums are made in.
class ColumnBuffers {
 public:
  // Columns are up to 1 MiB wide, where a disk reads at full speed; narrower when there are so many
  // rows that this would take more than 64 MiB.
  static constexpr size_t kWidest = size_t{1} << 20;
  static constexpr size_t kMostMemory = size_t{64} << 20;

  // Columns are whole groups of the layout, which fits the blocks; at least one group wide.
  ColumnBuffers(size_t rows, uint64_t block_bytes, const BlockLayout& layout = {});

  // The width of the column that begins at `offset` of `end` bytes.
  size_t WidthAt(uint64_t offset, uint64_t end) const;

  std::span<uint8_t> source(size_t bytes) { return source_.span().first(bytes); }
  std::span<uint8_t> row(size_t row, size_t bytes) { return {rows_[row], bytes}; }
  std::span<uint8_t* const> rows() const { return rows_; }
  void ClearRows(size_t bytes);

 private:
  size_t column_bytes_;
  AlignedBuffer source_;
  AlignedBuffer sums_;
  std::vector<uint8_t*> rows_;  // into sums_
};

// What the columns of one block add to the columns of other blocks.
class BlockColumn {
 public:
  BlockColumn() = default;
  // As in EquationTerm; `rows` is of all sub-blocks of the others.
  BlockColumn(const std::vector<uint32_t>& sub_blocks, std::span<const uint8_t> coefficients,
              size_t rows, const BlockLayout& layout);

  bool empty() const { return columns_.empty(); }
  // `blocks` points to a column of each other block, `source` to the same column of this block.
  void MultiplyAdd(std::span<uint8_t* const> blocks, const uint8_t* source, size_t bytes) const;

 private:
  std::vector<uint32_t> sub_blocks_;
  std::vector<CoefficientColumn> columns_;  // one for each of sub_blocks_
  BlockLayout layout_;
};

// For each data block, what it adds to the n - k parity blocks.
std::vector<BlockColumn> ParityColumns(const ErasureCode& code);

}  // namespace ecpipe
