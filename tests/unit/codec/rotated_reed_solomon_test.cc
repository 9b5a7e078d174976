// SPDX-License-Identifier: Apache-2.0
#include "codec/rotated_reed_solomon.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "codec/kernel.h"
#include "unit/codec/scalar_oracle.h"

namespace ecpipe::rotated_reed_solomon_test {
namespace {

using ::testing::HasSubstr;
using Indices = std::vector<int>;

std::shared_ptr<const ErasureCode> Code(const std::string& name) {
  return CreateErasureCode(name).value();
}

std::string ErrorOf(const std::string& name) {
  const auto code = CreateErasureCode(name);
  return code.ok() ? "" : std::string(code.status().message());
}

// Sub-block a of block i is at i * sub_blocks + a.
std::vector<oracle::Block> EncodedBy(const ErasureCode& code, std::mt19937_64* random) {
  const Matrix& generator = code.generator();
  oracle::Rows rows(static_cast<size_t>(generator.rows()));
  for (int i = 0; i < generator.rows(); ++i) {
    for (int j = 0; j < generator.columns(); ++j) rows[i].push_back(generator.at(i, j));
  }
  return oracle::Encode(rows, oracle::RandomData(generator.columns(), 33, *random));
}

size_t SubBlocksRead(const RepairEquation& equation) {
  size_t count = 0;
  for (const EquationTerm& term : equation.terms) count += term.sub_blocks.size();
  return count;
}

void ExpectRepairs(const ErasureCode& code, const std::vector<oracle::Block>& stripe,
                   const Indices& failed, const Indices& survivors) {
  const auto equation = code.Equation(failed, survivors);
  ASSERT_TRUE(equation.ok()) << equation.status();
  ASSERT_EQ(equation->failed, failed);
  ASSERT_EQ(equation->layout, code.layout());
  const size_t subs = code.layout().sub_blocks;
  std::vector<oracle::Block> repaired(equation->rows(), oracle::Block(33, 0));
  std::vector<uint8_t*> rows;
  for (oracle::Block& row : repaired) rows.push_back(row.data());
  auto next_survivor = survivors.begin();
  for (const EquationTerm& term : equation->terms) {
    next_survivor = std::find(next_survivor, survivors.end(), term.block_index);
    ASSERT_NE(next_survivor, survivors.end()) << "not a survivor, or not in order of preference";
    ASSERT_EQ(term.coefficients.size(), term.sub_blocks.size() * rows.size());
    for (size_t s = 0; s < term.sub_blocks.size(); ++s) {
      const std::span<const uint8_t> column(term.coefficients.data() + s * rows.size(),
                                            rows.size());
      ASSERT_NE(std::count(column.begin(), column.end(), 0), column.size()) << "read for nothing";
      CoefficientColumn(column).MultiplyAdd(
          rows, stripe[term.block_index * subs + term.sub_blocks[s]].data(), 33);
    }
  }
  for (size_t r = 0; r < repaired.size(); ++r) {
    ASSERT_EQ(repaired[r], stripe[failed[r / subs] * subs + r % subs]);
  }
}

class RotatedErasure : public testing::TestWithParam<const char*> {};

TEST_P(RotatedErasure, IsRepaired) {
  const auto code = Code(GetParam());
  std::mt19937_64 random(20261121);
  const auto stripe = EncodedBy(*code, &random);
  for (unsigned mask = 1; mask < 1u << code->n(); ++mask) {
    if (std::popcount(mask) > code->n() - code->k()) continue;
    Indices failed;
    Indices survivors;
    for (int i = 0; i < code->n(); ++i) ((mask >> i) & 1 ? failed : survivors).push_back(i);
    std::shuffle(survivors.begin(), survivors.end(), random);
    ASSERT_NO_FATAL_FAILURE(ExpectRepairs(*code, stripe, failed, survivors)) << "mask " << mask;
    // Any k will do.
    survivors.resize(static_cast<size_t>(code->k()));
    ASSERT_NO_FATAL_FAILURE(ExpectRepairs(*code, stripe, failed, survivors)) << "mask " << mask;
  }
}

INSTANTIATE_TEST_SUITE_P(Codes, RotatedErasure,
                         testing::Values("rotated-rs(6,4)", "rotated-rs(9,6,4,512)",
                                         "rotated-rs(14,10)", "rotated-rs(16,12)"));

TEST(RotatedReedSolomon, ReadsWhatThePaperSays) {
  const auto code = Code("rotated-rs(16,12)");
  double blocks = 0;
  for (int failed = 0; failed < 16; ++failed) {
    Indices survivors;
    for (int i = 0; i < 16; ++i) {
      if (i != failed) survivors.push_back(i);
    }
    const auto equation = code->Equation(Indices{failed}, survivors).value();
    const double reads = static_cast<double>(SubBlocksRead(equation)) / 2;
    const bool outer = failed < 3 || (failed >= 9 && failed < 12);
    EXPECT_EQ(reads, failed >= 12 ? 12 : outer ? 7.5 : 9) << "block " << failed;
    blocks += reads;
  }
  EXPECT_NEAR(blocks / 16, 9.19, 0.01) << "nine on average";
}

TEST(RotatedReedSolomon, TheSavingIsTheSameWithMoreRows) {
  const auto code = Code("rotated-rs(16,12,4,4096)");
  const Indices survivors = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  EXPECT_EQ(SubBlocksRead(code->Equation(Indices{0}, survivors).value()), 30u);
}

TEST(RotatedReedSolomon, WithoutTheParitiesThatItLikesItReadsWholeBlocks) {
  const auto code = Code("rotated-rs(6,4)");
  for (const Indices& survivors : {Indices{1, 2, 3, 4}, Indices{1, 2, 3, 5}, Indices{1, 2, 4, 5}}) {
    const auto equation = code->Equation(Indices{0}, survivors).value();
    EXPECT_EQ(SubBlocksRead(equation), 8u);
  }
  EXPECT_FALSE(code->Equation(Indices{0}, Indices{1, 2, 3}).ok());
}

TEST(RotatedReedSolomon, ItsNameMakesItAgain) {
  EXPECT_EQ(Code("rotated-rs(16,12)")->name(), "rotated-rs(16,12,2,32768)");
  EXPECT_EQ(Code("rotated-rs(16,12,2,32768)")->generator(), Code("rotated-rs(16,12)")->generator());
  EXPECT_EQ(Code("rotated-rs(16,12)")->n(), 16);
  EXPECT_EQ(Code("rotated-rs(16,12)")->k(), 12);
}

TEST(RotatedReedSolomon, RefusesWhatIsNotPossible) {
  for (const char* name :
       {"rotated-rs(5,4)", "rotated-rs(9,4)", "rotated-rs(3,1)", "rotated-rs(6,4,3,512)",
        "rotated-rs(34,30)", "rotated-rs(16,12,6,512)", "rotated-rs(2,-1)"}) {
    EXPECT_THAT(ErrorOf(name), HasSubstr("2 to 4 parity blocks")) << name;
  }
  for (const char* name : {"rotated-rs(6,4,2,0)", "rotated-rs(6,4,1,512)", "rotated-rs(6,4,0,0)",
                           "rotated-rs(6,4,18,512)", "rotated-rs(6,4,2,2000000)"}) {
    EXPECT_THAT(ErrorOf(name), HasSubstr("sub-blocks")) << name;
  }
  EXPECT_THAT(ErrorOf("rotated-rs(6,4,2)"),
              HasSubstr("rotated-rs(n,k) or rotated-rs(n,k,rows,unit)"));
  EXPECT_THAT(ErrorOf("rotated-rs(6,4,-2,512)"), HasSubstr("negative"));
}

}  // namespace
}  // namespace ecpipe::rotated_reed_solomon_test
