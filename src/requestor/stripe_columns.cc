// SPDX-License-Identifier: Apache-2.0
#include "requestor/stripe_columns.h"

#include <algorithm>

namespace ecpipe {
namespace {

size_t ColumnBytes(size_t buffers, uint64_t block_bytes) {
  const size_t share = ColumnBuffers::kMostMemory / buffers / AlignedBuffer::kAlignment *
                       AlignedBuffer::kAlignment;
  const size_t widest = std::min(share, ColumnBuffers::kWidest);
  return static_cast<size_t>(std::min<uint64_t>(widest, block_bytes));
}

}  // namespace

ColumnBuffers::ColumnBuffers(size_t rows, uint64_t block_bytes)
    : column_bytes_(ColumnBytes(rows + 1, block_bytes)), source_(column_bytes_) {
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

std::vector<CoefficientColumn> ParityColumns(const ErasureCode& code) {
  std::vector<CoefficientColumn> columns;
  for (int j = 0; j < code.k(); ++j) {
    std::vector<uint8_t> coefficients;
    for (int i = code.k(); i < code.n(); ++i) coefficients.push_back(code.generator().at(i, j));
    columns.emplace_back(coefficients);
  }
  return columns;
}

}  // namespace ecpipe
