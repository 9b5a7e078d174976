// SPDX-License-Identifier: Apache-2.0
#include "codec/matrix.h"

#include <utility>

#include "codec/gf256.h"

namespace ecpipe {

Matrix Matrix::Identity(int size) {
  Matrix matrix(size, size);
  for (int i = 0; i < size; ++i) matrix.at(i, i) = 1;
  return matrix;
}

namespace {

void SwapRows(Matrix* matrix, int a, int b) {
  for (int j = 0; j < matrix->columns(); ++j) std::swap(matrix->at(a, j), matrix->at(b, j));
}

void ScaleRow(Matrix* matrix, int row, uint8_t factor) {
  for (int j = 0; j < matrix->columns(); ++j) {
    matrix->at(row, j) = GfMultiply(matrix->at(row, j), factor);
  }
}

void AddRow(Matrix* matrix, int target, int source, uint8_t factor) {
  for (int j = 0; j < matrix->columns(); ++j) {
    matrix->at(target, j) ^= GfMultiply(matrix->at(source, j), factor);
  }
}

}  // namespace

std::optional<Matrix> Invert(const Matrix& matrix) {
  ECPIPE_CHECK(matrix.rows() == matrix.columns());
  const int size = matrix.rows();
  Matrix left = matrix;
  Matrix right = Matrix::Identity(size);
  for (int column = 0; column < size; ++column) {
    int pivot = column;
    while (pivot < size && left.at(pivot, column) == 0) ++pivot;
    if (pivot == size) return std::nullopt;
    if (pivot != column) {
      SwapRows(&left, pivot, column);
      SwapRows(&right, pivot, column);
    }
    const uint8_t inverse = GfInverse(left.at(column, column));
    ScaleRow(&left, column, inverse);
    ScaleRow(&right, column, inverse);
    for (int row = 0; row < size; ++row) {
      const uint8_t factor = left.at(row, column);
      if (row == column || factor == 0) continue;
      AddRow(&left, row, column, factor);
      AddRow(&right, row, column, factor);
    }
  }
  return right;
}

}  // namespace ecpipe
