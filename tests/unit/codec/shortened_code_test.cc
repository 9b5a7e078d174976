// SPDX-License-Identifier: Apache-2.0
#include "codec/shortened_code.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "codec/check_rows.h"
#include "codec/kernel.h"
#include "unit/codec/scalar_oracle.h"

namespace ecpipe::shortened_code_test {
namespace {

using Indices = std::vector<int>;

std::shared_ptr<const ErasureCode> Whole(const std::string& name) {
  return CreateErasureCode(name).value();
}

oracle::Rows RowsOf(const Matrix& matrix) {
  oracle::Rows rows(matrix.rows());
  for (int i = 0; i < matrix.rows(); ++i) {
    for (int j = 0; j < matrix.columns(); ++j) rows[i].push_back(matrix.at(i, j));
  }
  return rows;
}

oracle::Block Sum(const RepairEquation& equation, size_t row,
                  const std::vector<oracle::Block>& stripe) {
  oracle::Block sum(stripe[0].size(), 0);
  for (const EquationTerm& term : equation.terms) {
    for (size_t at = 0; at < sum.size(); ++at) {
      sum[at] ^= oracle::Multiply(term.coefficients[row], stripe[term.block_index][at]);
    }
  }
  return sum;
}

// A stripe whose data blocks from `real` on are zero.
std::vector<oracle::Block> StripeOf(const ErasureCode& code, int real, std::mt19937_64& random) {
  std::vector<oracle::Block> data = oracle::RandomData(code.k(), 37, random);
  for (int j = real; j < code.k(); ++j) data[j].assign(data[j].size(), 0);
  return oracle::Encode(RowsOf(code.generator()), data);
}

Indices ZeroBlocks(int real, int k) {
  Indices zero;
  for (int j = real; j < k; ++j) zero.push_back(j);
  return zero;
}

// Each policy of HDFS, each count of data blocks that a short group has, each block lost, and as
// few survivors as may be, in several orders.
TEST(ShortenedCode, RebuildsEachBlockFromFewer) {
  std::mt19937_64 random(20261122);
  for (const char* name : {"hdfs:RS-6-3", "hdfs:RS-3-2", "hdfs:RS-10-4", "hdfs:RS-12-4",
                           "hdfs:RS-8-4", "hdfs:RS-LEGACY-6-3", "hdfs:XOR-2-1"}) {
    const auto whole = Whole(name);
    for (int real = 1; real < whole->k(); ++real) {
      const auto code = ShortenedCode::Create(whole, ZeroBlocks(real, whole->k())).value();
      EXPECT_EQ(code->k(), real);
      EXPECT_EQ(code->n(), whole->n());
      const std::vector<oracle::Block> stripe = StripeOf(*whole, real, random);
      for (int lost = 0; lost < whole->n(); ++lost) {
        if (real <= lost && lost < whole->k()) continue;
        Indices others;
        for (int i = 0; i < whole->n(); ++i) {
          if (i != lost && (i < real || i >= whole->k())) others.push_back(i);
        }
        for (int order = 0; order < 5; ++order) {
          std::shuffle(others.begin(), others.end(), random);
          const Indices survivors(others.begin(), others.begin() + real);
          const auto equation = code->Equation(Indices{lost}, survivors);
          ASSERT_TRUE(equation.ok()) << name << " " << real << ": " << equation.status();
          EXPECT_LE(equation->terms.size(), static_cast<size_t>(real));
          ASSERT_EQ(Sum(*equation, 0, stripe), stripe[lost]) << name << " " << real << " " << lost;
        }
      }
    }
  }
}

TEST(ShortenedCode, RebuildsSeveralBlocks) {
  std::mt19937_64 random(7);
  const auto whole = Whole("rs(9,6)");
  const auto code = ShortenedCode::Create(whole, Indices{3, 4, 5}).value();
  const std::vector<oracle::Block> stripe = StripeOf(*whole, 3, random);
  const auto equation = code->Equation(Indices{0, 7}, Indices{8, 2, 1, 6});
  ASSERT_TRUE(equation.ok());
  EXPECT_EQ(Sum(*equation, 0, stripe), stripe[0]);
  EXPECT_EQ(Sum(*equation, 1, stripe), stripe[7]);
}

TEST(ShortenedCode, SaysWhenTooFewAreLeft) {
  const auto code = ShortenedCode::Create(Whole("rs(9,6)"), Indices{3, 4, 5}).value();
  EXPECT_TRUE(code->Equation(Indices{0}, Indices{1, 2, 6}).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(code->Equation(Indices{0}, Indices{1, 2}).status()));
}

TEST(ShortenedCode, ItsGeneratorMakesTheBlocks) {
  std::mt19937_64 random(11);
  const auto whole = Whole("hdfs:RS-LEGACY-6-3");
  const auto code = ShortenedCode::Create(whole, Indices{1, 4}).value();
  std::vector<oracle::Block> data = oracle::RandomData(6, 20, random);
  for (const int zero : {1, 4}) data[zero].assign(20, 0);
  const std::vector<oracle::Block> real = {data[0], data[2], data[3], data[5]};
  EXPECT_EQ(oracle::Encode(RowsOf(code->generator()), real),
            oracle::Encode(RowsOf(whole->generator()), data));
}

TEST(ShortenedCode, CheckRowsHold) {
  std::mt19937_64 random(13);
  const auto whole = Whole("rs(9,6)");
  const auto code = ShortenedCode::Create(whole, Indices{4, 5}).value();
  const std::vector<oracle::Block> stripe = StripeOf(*whole, 4, random);
  const Indices survivors = {1, 2, 3, 6, 7, 8};
  for (const uint32_t count : {1u, 2u}) {
    RepairEquation equation = code->Equation(Indices{0}, survivors).value();
    ASSERT_TRUE(AddCheckRows(*code, survivors, count, &equation).ok());
    EXPECT_EQ(Sum(equation, 0, stripe), stripe[0]);
    for (uint32_t i = 0; i < count; ++i) {
      EXPECT_EQ(Sum(equation, 1 + i, stripe), oracle::Block(37, 0)) << i;
    }
  }
}

TEST(ShortenedCode, RefusesBlocksThatCannotBeZero) {
  const auto whole = Whole("rs(5,3)");
  for (const Indices& zero : {Indices{3}, {-1}, {1, 1}, {0, 1, 2}, {5}}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ShortenedCode::Create(whole, zero).status()));
  }
  const auto code = ShortenedCode::Create(whole, Indices{2}).value();
  EXPECT_TRUE(absl::IsInvalidArgument(code->Equation(Indices{2}, Indices{0, 1}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(code->Equation(Indices{0}, Indices{1, 2}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(code->Equation(Indices{0}, Indices{0, 1}).status()));
}

}  // namespace
}  // namespace ecpipe::shortened_code_test
