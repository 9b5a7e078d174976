// SPDX-License-Identifier: Apache-2.0
#include "codec/matrix.h"

#include <gtest/gtest.h>

#include "base/check.h"
#include "codec/gf256.h"
#include "unit/codec/scalar_oracle.h"

namespace ecpipe::matrix_test {
namespace {

constexpr uint64_t kSeed = 20260101;

Matrix RandomMatrix(int rows, int columns, std::mt19937_64& random) {
  Matrix matrix(rows, columns);
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) matrix.at(i, j) = static_cast<uint8_t>(random());
  }
  return matrix;
}

Matrix Multiply(const Matrix& a, const Matrix& b) {
  ECPIPE_CHECK(a.columns() == b.rows());
  Matrix product(a.rows(), b.columns());
  for (int i = 0; i < a.rows(); ++i) {
    for (int j = 0; j < b.columns(); ++j) {
      uint8_t sum = 0;
      for (int l = 0; l < a.columns(); ++l) sum ^= GfMultiply(a.at(i, l), b.at(l, j));
      product.at(i, j) = sum;
    }
  }
  return product;
}

TEST(Gf256, MultipliesLikeTheOracle) {
  for (int a = 0; a < 256; ++a) {
    for (int b = 0; b < 256; ++b) {
      ASSERT_EQ(GfMultiply(a, b), oracle::Multiply(a, b)) << a << " * " << b;
    }
  }
}

TEST(Gf256, InvertsAllButZero) {
  for (int a = 1; a < 256; ++a) {
    ASSERT_EQ(GfInverse(a), oracle::Inverse(a)) << a;
    ASSERT_EQ(GfMultiply(a, GfInverse(a)), 1) << a;
  }
}

TEST(Gf256DeathTest, ZeroHasNoInverse) { EXPECT_DEATH(GfInverse(0), "broken invariant"); }

TEST(Matrix, IsZeroAtFirst) {
  const Matrix matrix(2, 3);
  EXPECT_EQ(matrix.rows(), 2);
  EXPECT_EQ(matrix.columns(), 3);
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) EXPECT_EQ(matrix.at(i, j), 0);
  }
}

TEST(MatrixDeathTest, RefusesCellsOutside) {
  const Matrix matrix(2, 3);
  EXPECT_DEATH(matrix.at(2, 0), "broken invariant");
  EXPECT_DEATH(matrix.at(0, 3), "broken invariant");
  EXPECT_DEATH(matrix.at(-1, 0), "broken invariant");
}

TEST(Matrix, IdentityIsNeutral) {
  std::mt19937_64 random(kSeed);
  const Matrix matrix = RandomMatrix(3, 5, random);
  EXPECT_EQ(Multiply(Matrix::Identity(3), matrix), matrix);
  EXPECT_EQ(Multiply(matrix, Matrix::Identity(5)), matrix);
}

TEST(Matrix, MultipliesLikeTheOracle) {
  std::mt19937_64 random(kSeed);
  const Matrix a = RandomMatrix(4, 6, random);
  const Matrix b = RandomMatrix(6, 5, random);
  const Matrix product = Multiply(a, b);
  ASSERT_EQ(product.rows(), 4);
  ASSERT_EQ(product.columns(), 5);
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 5; ++j) {
      uint8_t sum = 0;
      for (int l = 0; l < 6; ++l) sum ^= oracle::Multiply(a.at(i, l), b.at(l, j));
      EXPECT_EQ(product.at(i, j), sum);
    }
  }
}

TEST(Invert, UndoesRandomMatrices) {
  std::mt19937_64 random(kSeed);
  int inverted = 0;
  for (int size = 1; size <= 40; ++size) {
    const Matrix matrix = RandomMatrix(size, size, random);
    const std::optional<Matrix> inverse = Invert(matrix);
    if (!inverse) continue;  // one random matrix in 256 is singular
    ++inverted;
    EXPECT_EQ(Multiply(matrix, *inverse), Matrix::Identity(size));
    EXPECT_EQ(Multiply(*inverse, matrix), Matrix::Identity(size));
  }
  EXPECT_GT(inverted, 35);
}

TEST(Invert, SwapsRowsForAPivot) {
  Matrix matrix(2, 2);
  matrix.at(0, 1) = 3;
  matrix.at(1, 0) = 7;
  const std::optional<Matrix> inverse = Invert(matrix);
  ASSERT_TRUE(inverse.has_value());
  EXPECT_EQ(Multiply(matrix, *inverse), Matrix::Identity(2));
}

TEST(Invert, SeesSingularMatrices) {
  EXPECT_FALSE(Invert(Matrix(3, 3)).has_value());
  std::mt19937_64 random(kSeed);
  Matrix matrix = RandomMatrix(5, 5, random);
  for (int j = 0; j < 5; ++j) {  // row 4 = 9 · row 0 + row 2
    matrix.at(4, j) = oracle::Multiply(9, matrix.at(0, j)) ^ matrix.at(2, j);
  }
  EXPECT_FALSE(Invert(matrix).has_value());
}

}  // namespace
}  // namespace ecpipe::matrix_test
