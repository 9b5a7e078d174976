// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/check.h"

namespace ecpipe {

// A dense matrix over GF(2^8), row-major. A plain value; not for the data path.
class Matrix {
 public:
  Matrix() = default;
  Matrix(int rows, int columns)
      : rows_(rows), columns_(columns), cells_(static_cast<size_t>(rows) * columns) {}
  static Matrix Identity(int size);

  int rows() const { return rows_; }
  int columns() const { return columns_; }
  uint8_t at(int row, int column) const { return cells_[Index(row, column)]; }
  uint8_t& at(int row, int column) { return cells_[Index(row, column)]; }

  friend bool operator==(const Matrix&, const Matrix&) = default;

 private:
  size_t Index(int row, int column) const {
    ECPIPE_CHECK(row >= 0 && row < rows_ && column >= 0 && column < columns_);
    return static_cast<size_t>(row) * columns_ + column;
  }

  int rows_ = 0;
  int columns_ = 0;
  std::vector<uint8_t> cells_;
};

// The inverse of a square matrix, or nothing when it is singular.
std::optional<Matrix> Invert(const Matrix& matrix);

}  // namespace ecpipe
