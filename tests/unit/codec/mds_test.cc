// SPDX-License-Identifier: Apache-2.0
// Vandermonde codes are made only where they are MDS.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdio>
#include <string>

#include "codec/erasure_code.h"
#include "unit/codec/scalar_oracle.h"

namespace ecpipe::mds_test {
namespace {

absl::Status Created(int n, int k) {
  return CreateErasureCode("rs-vandermonde(" + std::to_string(n) + "," + std::to_string(k) + ")")
      .status();
}

// "0,1,3" → {0, 1, 3}
std::vector<int> Numbers(const std::string& text) {
  std::vector<int> numbers;
  for (size_t at = 0; at < text.size();) {
    size_t length = 0;
    numbers.push_back(std::stoi(text.substr(at), &length));
    at += length + 1;
  }
  return numbers;
}

std::string Between(const std::string& text, const std::string& before, const std::string& after) {
  const size_t start = text.find(before) + before.size();
  return text.substr(start, text.find(after, start) - start);
}

oracle::Rows Submatrix(const oracle::Rows& rows, int first_row, const std::vector<int>& chosen,
                       const std::vector<int>& columns) {
  oracle::Rows result;
  for (const int row : chosen) {
    std::vector<uint8_t> cells;
    for (const int column : columns) cells.push_back(rows[first_row + row][column]);
    result.push_back(cells);
  }
  return result;
}

std::vector<int> BitsOf(unsigned mask) {
  std::vector<int> bits;
  for (int bit = 0; mask >> bit != 0; ++bit) {
    if ((mask >> bit) & 1) bits.push_back(bit);
  }
  return bits;
}

// By looking at every square submatrix, without any of the shortcuts that the code takes.
bool IsMds(int n, int k) {
  const oracle::Rows rows = oracle::VandermondeRows(n, k);
  for (unsigned row_mask = 1; row_mask < 1u << (n - k); ++row_mask) {
    for (unsigned column_mask = 1; column_mask < 1u << k; ++column_mask) {
      if (std::popcount(row_mask) != std::popcount(column_mask)) continue;
      if (oracle::IsSingular(Submatrix(rows, k, BitsOf(row_mask), BitsOf(column_mask)))) {
        return false;
      }
    }
  }
  return true;
}

TEST(Mds, AgreesWithTheOracleOnSmallCodes) {
  for (int n = 2; n <= 13; ++n) {
    for (int k = 1; k < n; ++k) {
      EXPECT_EQ(Created(n, k).ok(), IsMds(n, k)) << "(" << n << "," << k << ")";
    }
  }
}

TEST(Mds, NamesASubmatrixThatIsSingular) {
  for (const auto& [n, k] : {std::pair(13, 8),
                             {12, 6},
                             {15, 10},
                             {26, 22},
                             {100, 80},
                             {26, 4},
                             {255, 223},
                             {255, 4},
                             {255, 128}}) {
    const absl::Status status = Created(n, k);
    ASSERT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << n << "," << k;
    const std::string message(status.message());
    EXPECT_THAT(message, testing::HasSubstr("use rs-cauchy"));
    const auto rows = Numbers(Between(message, "parity rows ", " and"));
    const auto columns = Numbers(Between(message, "data columns ", " is"));
    ASSERT_EQ(rows.size(), columns.size()) << message;
    ASSERT_LT(rows.back(), n - k) << message;
    ASSERT_LT(columns.back(), k) << message;
    EXPECT_TRUE(oracle::IsSingular(Submatrix(oracle::VandermondeRows(n, k), k, rows, columns)))
        << message;
  }
}

TEST(Mds, HoldsUpToWhereItEnds) {
  for (const auto& [n, k] : {std::pair(255, 254),
                             {255, 253},
                             {255, 252},
                             {25, 21},
                             {10, 5},
                             {25, 4},
                             {255, 3},
                             {255, 2},
                             {255, 1}}) {
    EXPECT_TRUE(Created(n, k).ok()) << n << "," << k;
  }
  for (const auto& [n, k] : {std::pair(26, 22), {11, 6}, {26, 4}}) {
    EXPECT_FALSE(Created(n, k).ok()) << n << "," << k;
  }
}

// The check ends the process if it ever looks at more submatrices than its comment says.
TEST(Mds, StaysWithinItsBoundForAllCodes) {
  for (int n = 2; n <= 255; ++n) {
    for (int k = 1; k < n; ++k) {
      const bool extreme = k <= 6 || n - k <= 6;
      if (extreme || (n % 16 == 15 && k % 8 == 0)) (void)Created(n, k);
    }
  }
}

}  // namespace
}  // namespace ecpipe::mds_test
