// SPDX-License-Identifier: Apache-2.0
// Check rows against stripes that the plain oracle has encoded: zero as long as all is well, and
// whatever single block is damaged, they say so, and two of them say which.
#include "codec/check_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "unit/codec/scalar_oracle.h"

namespace ecpipe::check_rows_test {
namespace {

using oracle::Block;
using ::testing::HasSubstr;

constexpr size_t kBytes = 5;

std::shared_ptr<const ErasureCode> Code(const std::string& name) {
  return CreateErasureCode(name).value();
}

std::vector<Block> Stripe(const ErasureCode& code, std::mt19937_64& random) {
  oracle::Rows rows;
  for (int i = 0; i < code.n(); ++i) {
    rows.emplace_back();
    for (int j = 0; j < code.k(); ++j) rows.back().push_back(code.generator().at(i, j));
  }
  return oracle::Encode(rows, oracle::RandomData(code.k(), kBytes, random));
}

Block RowOf(const RepairEquation& equation, size_t row, const std::vector<Block>& stripe) {
  Block sum(kBytes, 0);
  for (const EquationTerm& term : equation.terms) {
    for (size_t at = 0; at < kBytes; ++at) {
      sum[at] ^= oracle::Multiply(term.coefficients[row],
                                  stripe[static_cast<size_t>(term.block_index)][at]);
    }
  }
  return sum;
}

std::vector<int> Without(int n, const std::vector<int>& failed) {
  std::vector<int> survivors;
  for (int i = 0; i < n; ++i) {
    if (std::find(failed.begin(), failed.end(), i) == failed.end()) survivors.push_back(i);
  }
  return survivors;
}

struct Case {
  std::string code;
  std::vector<int> failed;
  uint32_t count;
};

void Damage(const RepairEquation& equation, size_t term_index, uint32_t count,
            std::vector<Block> stripe, std::mt19937_64& random) {
  const EquationTerm& term = equation.terms[term_index];
  const size_t at = random() % kBytes;
  stripe[static_cast<size_t>(term.block_index)][at] ^= static_cast<uint8_t>(random() % 255 + 1);
  const size_t rows = equation.failed.size();
  const Block first = RowOf(equation, rows, stripe);
  if (count == 1) {
    EXPECT_NE(first, Block(kBytes, 0)) << "block " << term.block_index;
    return;
  }
  std::vector<std::vector<uint8_t>> columns;
  for (const EquationTerm& each : equation.terms) {
    columns.emplace_back(each.coefficients.end() - 2, each.coefficients.end());
  }
  const Block second = RowOf(equation, rows + 1, stripe);
  EXPECT_EQ(LocateCorrupt(columns, first, second), term_index) << "block " << term.block_index;
}

void Expect(const Case& tried, std::mt19937_64& random) {
  SCOPED_TRACE(tried.code + " failed " + testing::PrintToString(tried.failed) + " rows " +
               std::to_string(tried.count));
  const auto code = Code(tried.code);
  std::vector<int> survivors = Without(code->n(), tried.failed);
  std::shuffle(survivors.begin(), survivors.end(), random);
  RepairEquation equation = code->Equation(tried.failed, survivors).value();
  const absl::Status added = AddCheckRows(*code, survivors, tried.count, &equation);
  ASSERT_TRUE(added.ok()) << added;
  ASSERT_EQ(equation.rows(), tried.failed.size() + tried.count);
  const std::vector<Block> stripe = Stripe(*code, random);
  for (size_t i = 0; i < tried.failed.size(); ++i) {
    EXPECT_EQ(RowOf(equation, i, stripe), stripe[static_cast<size_t>(tried.failed[i])]);
  }
  for (uint32_t i = 0; i < tried.count; ++i) {
    EXPECT_EQ(RowOf(equation, tried.failed.size() + i, stripe), Block(kBytes, 0));
  }
  for (size_t i = 0; i < equation.terms.size(); ++i) {
    Damage(equation, i, tried.count, stripe, random);
  }
}

TEST(CheckRows, FindEverySingleCorruptBlockWhateverWasLost) {
  std::mt19937_64 random(20261121);
  for (const std::string name : {"rs(6,4)", "rs(14,10)", "rs-vandermonde(9,6)", "rs(5,1)"}) {
    const auto code = Code(name);
    for (int lost = 0; lost < code->n(); ++lost) {
      Expect({name, {lost}, 1}, random);
      if (code->n() - code->k() >= 3) Expect({name, {lost}, 2}, random);
    }
  }
  Expect({"rs(14,10)", {0, 13}, 1}, random);
  Expect({"rs(14,10)", {3, 7}, 2}, random);
}

// A local group cannot verify itself; a global parity ties it to the other group.
TEST(CheckRows, LrcVerifiesARepairFromAGroupByAGlobalParity) {
  std::mt19937_64 random(7);
  const auto code = Code("lrc(12,2,2)");
  for (int lost = 0; lost < 12; ++lost) {
    RepairEquation equation = code->Equation({{lost}}, Without(16, {lost})).value();
    EXPECT_EQ(equation.terms.size(), 6u);
    Expect({"lrc(12,2,2)", {lost}, 1}, random);
    Expect({"lrc(12,2,2)", {lost}, 2}, random);
  }
}

TEST(CheckRows, TooFewSurvivorsAreAFailedPrecondition) {
  const auto code = Code("rs(6,4)");
  const std::vector<int> survivors{1, 2, 3, 4, 5};
  RepairEquation equation = code->Equation({{0}}, survivors).value();
  const RepairEquation before = equation;
  const absl::Status two = AddCheckRows(*code, survivors, 2, &equation);
  EXPECT_TRUE(absl::IsFailedPrecondition(two)) << two;
  EXPECT_THAT(std::string(two.message()), HasSubstr("needs 6 survivors, but only 5 can be used"));
  EXPECT_EQ(equation, before);
  EXPECT_TRUE(AddCheckRows(*code, survivors, 1, &equation).ok());
}

TEST(CheckRows, SubBlocksAreRefused) {
  const auto code = Code("rotated-rs(6,4)");
  const std::vector<int> survivors{1, 2, 3, 4, 5};
  RepairEquation equation = code->Equation({{0}}, survivors).value();
  const absl::Status status = AddCheckRows(*code, survivors, 1, &equation);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("sub-blocks"));
}

TEST(CheckRows, TwoCorruptBlocksAreNotTakenForOne) {
  std::mt19937_64 random(11);
  const auto code = Code("rs(14,10)");
  const std::vector<int> survivors = Without(14, {0});
  RepairEquation equation = code->Equation({{0}}, survivors).value();
  ASSERT_TRUE(AddCheckRows(*code, survivors, 2, &equation).ok());
  std::vector<std::vector<uint8_t>> columns;
  for (const EquationTerm& term : equation.terms) {
    columns.emplace_back(term.coefficients.end() - 2, term.coefficients.end());
  }
  std::vector<Block> stripe = Stripe(*code, random);
  stripe[static_cast<size_t>(equation.terms[2].block_index)][0] ^= 0x40;
  stripe[static_cast<size_t>(equation.terms[5].block_index)][3] ^= 0x02;
  EXPECT_EQ(LocateCorrupt(columns, RowOf(equation, 1, stripe), RowOf(equation, 2, stripe)),
            std::nullopt);
}

}  // namespace
}  // namespace ecpipe::check_rows_test
