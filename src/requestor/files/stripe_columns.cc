// SPDX-License-Identifier: Apache-2.0
#include "requestor/files/stripe_columns.h"

#include <algorithm>
#include <numeric>

namespace ecpipe {
namespace {

size_t ColumnBytes(size_t buffers, uint64_t block_bytes, uint64_t group_bytes) {
  const size_t share =
      ColumnBuffers::kMostMemory / buffers / AlignedBuffer::kAlignment * AlignedBuffer::kAlignment;
  const uint64_t widest = std::min<uint64_t>({share, ColumnBuffers::kWidest, block_bytes});
  return static_cast<size_t>(std::max(widest / group_bytes, uint64_t{1}) * group_bytes);
}

}  // namespace

ColumnBuffers::ColumnBuffers(size_t rows, uint64_t block_bytes, const BlockLayout& layout)
    : column_bytes_(ColumnBytes(rows + 1, block_bytes, layout.group_bytes())),
      source_(column_bytes_) {
  const size_t stride = (column_bytes_ + AlignedBuffer::kAlignment - 1) /
                        AlignedBuffer::kAlignment * AlignedBuffer::kAlignment;
  sums_ = AlignedBuffer(rows * stride);
  for (size_t row = 0; row < rows; ++row) rows_.push_back(sums_.data() + row * stride);
}

size_t ColumnBuffers::WidthAt(uint64_t offset, uint64_t end) const {
  return static_cast<size_t>(std::min<uint64_t>(column_bytes_, end - offset));
}

void ColumnBuffers::ClearRows(size_t bytes) {
  for (uint8_t* row : rows_) std::fill_n(row, bytes, uint8_t{0});
}

BlockColumn::BlockColumn(const std::vector<uint32_t>& sub_blocks,
                         std::span<const uint8_t> coefficients, size_t rows,
                         const BlockLayout& layout)
    : sub_blocks_(sub_blocks), layout_(layout) {
  for (size_t i = 0; i < sub_blocks.size(); ++i) {
    columns_.emplace_back(coefficients.subspan(i * rows, rows));
  }
}

void BlockColumn::MultiplyAdd(std::span<uint8_t* const> blocks, const uint8_t* source,
                              size_t bytes) const {
  if (layout_.sub_blocks == 1) return columns_[0].MultiplyAdd(blocks, source, bytes);
  const size_t unit = layout_.unit_bytes;
  std::vector<uint8_t*> rows(blocks.size() * layout_.sub_blocks);
  for (size_t at = 0; at < bytes; at += layout_.group_bytes()) {
    for (size_t row = 0; row < rows.size(); ++row) {
      rows[row] = blocks[row / layout_.sub_blocks] + at + row % layout_.sub_blocks * unit;
    }
    for (size_t i = 0; i < columns_.size(); ++i) {
      columns_[i].MultiplyAdd(rows, source + at + sub_blocks_[i] * unit, unit);
    }
  }
}

std::vector<BlockColumn> ParityColumns(const ErasureCode& code) {
  const BlockLayout layout = code.layout();
  const Matrix& generator = code.generator();
  const int subs = static_cast<int>(layout.sub_blocks);
  const int first_parity = code.k() * subs;
  std::vector<uint32_t> sub_blocks(layout.sub_blocks);
  std::iota(sub_blocks.begin(), sub_blocks.end(), 0u);
  std::vector<BlockColumn> columns;
  for (int j = 0; j < code.k(); ++j) {
    std::vector<uint8_t> coefficients;
    for (int a = 0; a < subs; ++a) {
      for (int row = first_parity; row < generator.rows(); ++row) {
        coefficients.push_back(generator.at(row, j * subs + a));
      }
    }
    const auto rows = static_cast<size_t>(generator.rows() - first_parity);
    columns.emplace_back(sub_blocks, coefficients, rows, layout);
  }
  return columns;
}

}  // namespace ecpipe
