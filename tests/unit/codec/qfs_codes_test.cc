// SPDX-License-Identifier: Apache-2.0
#include "codec/qfs_codes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <isa-l/erasure_code.h>

#include "codec/erasure_code.h"
#include "unit/codec/scalar_oracle.h"

namespace ecpipe::qfs_codes_test {
namespace {

using Bytes = std::vector<uint8_t>;

std::shared_ptr<const ErasureCode> Code(const std::string& name) {
  const auto code = CreateErasureCode(name);
  EXPECT_TRUE(code.ok()) << code.status();
  return code.ok() ? *code : nullptr;
}

std::vector<Bytes> ParityRows(const std::string& name) {
  const auto code = Code(name);
  std::vector<Bytes> rows(3);
  for (int p = 0; p < 3; ++p) {
    for (int j = 0; j < code->k(); ++j) {
      rows[static_cast<size_t>(p)].push_back(code->generator().at(code->k() + p, j));
    }
  }
  return rows;
}

// What QFS's encoders gave for unit vectors, and what lies in chunks of a real cluster.
TEST(QfsCodes, CoefficientsAreThoseOfRealChunks) {
  EXPECT_EQ(ParityRows("qfs-rs(6,3)"),
            (std::vector<Bytes>{
                {1, 1, 1, 1, 1, 1}, {1, 2, 4, 8, 0x10, 0x20}, {1, 4, 0x10, 0x40, 0x1d, 0x74}}));
  EXPECT_EQ(ParityRows("qfs-jerasure(6,3)"),
            (std::vector<Bytes>{{1, 1, 1, 1, 1, 1},
                                {0x01, 0xe1, 0x97, 0xac, 0x52, 0xc8},
                                {0x01, 0x7b, 0xf5, 0x8f, 0xf4, 0x8e}}));
}

TEST(QfsCodes, GeneratorsAreThoseOfIsal) {
  for (int k = 1; k <= 64; ++k) {
    Bytes isal(static_cast<size_t>((k + 3) * k));
    gf_gen_rs_matrix(isal.data(), k + 3, k);
    const auto code = Code("qfs-rs(" + std::to_string(k) + ",3)");
    ASSERT_EQ(code->n(), k + 3);
    Bytes ours;
    for (int i = 0; i < k + 3; ++i) {
      for (int j = 0; j < k; ++j) ours.push_back(code->generator().at(i, j));
    }
    EXPECT_EQ(ours, isal) << k;
  }
}

// Each of these blocks from the first k others, as bytes of one column.
void ExpectDecodes(const ErasureCode& code, const std::vector<int>& lost, const Bytes& column) {
  std::vector<int> survivors;
  for (int i = 0; i < code.n(); ++i) {
    if (std::find(lost.begin(), lost.end(), i) == lost.end()) survivors.push_back(i);
  }
  const auto equation = code.Equation(lost, survivors);
  ASSERT_TRUE(equation.ok()) << equation.status();
  Bytes decoded(lost.size(), 0);
  for (const EquationTerm& term : equation->terms) {
    for (size_t row = 0; row < lost.size(); ++row) {
      decoded[row] ^=
          oracle::Multiply(term.coefficients[row], column[static_cast<size_t>(term.block_index)]);
    }
  }
  for (size_t row = 0; row < lost.size(); ++row) {
    EXPECT_EQ(decoded[row], column[static_cast<size_t>(lost[row])]) << code.name();
  }
}

Bytes ColumnOf(const ErasureCode& code) {
  Bytes column;
  for (int j = 0; j < code.k(); ++j) column.push_back(static_cast<uint8_t>(37 * j + 11));
  for (int i = code.k(); i < code.n(); ++i) {
    uint8_t parity = 0;
    for (int j = 0; j < code.k(); ++j) {
      parity ^= oracle::Multiply(code.generator().at(i, j), column[static_cast<size_t>(j)]);
    }
    column.push_back(parity);
  }
  return column;
}

TEST(QfsCodes, EveryPatternOfOneToThreeErasuresDecodes) {
  for (const char* name :
       {"qfs-rs(1,3)", "qfs-rs(2,3)", "qfs-rs(6,3)", "qfs-rs(12,3)", "qfs-jerasure(6,3)"}) {
    const auto code = Code(name);
    const Bytes column = ColumnOf(*code);
    for (int a = 0; a < code->n(); ++a) {
      ExpectDecodes(*code, {a}, column);
      for (int b = a + 1; b < code->n(); ++b) {
        ExpectDecodes(*code, {a, b}, column);
        for (int c = b + 1; c < code->n(); ++c) ExpectDecodes(*code, {a, b, c}, column);
      }
    }
  }
}

TEST(QfsCodes, TheLargestIsMds) {
  const auto code = Code("qfs-rs(64,3)");
  const Bytes column = ColumnOf(*code);
  for (int a = 0; a < code->n(); a += 3) {
    for (int b = a + 1; b < code->n(); b += 5) {
      for (int c = b + 1; c < code->n(); c += 7) ExpectDecodes(*code, {a, b, c}, column);
    }
  }
}

TEST(QfsCodes, WhatQfsDoesNotHaveIsRefused) {
  for (const char* name : {"qfs-rs(0,3)", "qfs-rs(65,3)", "qfs-rs(6,2)", "qfs-rs(6,4)", "qfs-rs(6)",
                           "qfs-jerasure(5,3)", "qfs-jerasure(6,2)"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(CreateErasureCode(name).status())) << name;
  }
  EXPECT_EQ(Code("qfs-rs(6, 3)")->name(), "qfs-rs(6,3)");
  EXPECT_EQ(Code("qfs-jerasure(6,3)")->name(), "qfs-jerasure(6,3)");
}

}  // namespace
}  // namespace ecpipe::qfs_codes_test
