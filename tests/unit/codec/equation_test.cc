// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "codec/erasure_code.h"
#include "codec/kernel.h"
#include "codec/linear_code.h"
#include "unit/codec/scalar_oracle.h"

namespace ecpipe::equation_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Indices = std::vector<int>;

constexpr uint64_t kSeed = 20260103;

std::shared_ptr<const ErasureCode> Code(const std::string& name) {
  return CreateErasureCode(name).value();
}

oracle::Rows RowsOf(const Matrix& matrix) {
  oracle::Rows rows(matrix.rows());
  for (int i = 0; i < matrix.rows(); ++i) {
    for (int j = 0; j < matrix.columns(); ++j) rows[i].push_back(matrix.at(i, j));
  }
  return rows;
}

Indices BlocksOf(const RepairEquation& equation) {
  Indices blocks;
  for (const EquationTerm& term : equation.terms) blocks.push_back(term.block_index);
  return blocks;
}

Indices AllBut(int n, const Indices& failed) {
  Indices rest;
  for (int i = 0; i < n; ++i) {
    if (std::find(failed.begin(), failed.end(), i) == failed.end()) rest.push_back(i);
  }
  return rest;
}

// The failed blocks, as a requestor would get them: summed up by the kernel.
std::vector<oracle::Block> Repair(const RepairEquation& equation,
                                  const std::vector<oracle::Block>& stripe) {
  const size_t bytes = stripe[0].size();
  std::vector<oracle::Block> repaired(equation.failed.size(), oracle::Block(bytes, 0));
  std::vector<uint8_t*> rows;
  for (oracle::Block& block : repaired) rows.push_back(block.data());
  for (const EquationTerm& term : equation.terms) {
    CoefficientColumn(term.coefficients).MultiplyAdd(rows, stripe[term.block_index].data(), bytes);
  }
  return repaired;
}

// Asks for the equation, and checks all that is promised about one.
void ExpectRepairs(const ErasureCode& code, const std::vector<oracle::Block>& stripe,
                   const Indices& failed, const Indices& survivors) {
  const auto equation = code.Equation(failed, survivors);
  ASSERT_TRUE(equation.ok()) << equation.status();
  EXPECT_EQ(equation->failed, failed);
  auto next_survivor = survivors.begin();
  for (const EquationTerm& term : equation->terms) {
    next_survivor = std::find(next_survivor, survivors.end(), term.block_index);
    ASSERT_NE(next_survivor, survivors.end()) << "not a survivor, or not in order of preference";
    ASSERT_EQ(term.coefficients.size(), failed.size());
    EXPECT_NE(term.coefficients, std::vector<uint8_t>(failed.size(), 0)) << "a term for nothing";
  }
  const std::vector<oracle::Block> repaired = Repair(*equation, stripe);
  for (size_t r = 0; r < failed.size(); ++r) ASSERT_EQ(repaired[r], stripe[failed[r]]);
}

// The oracle, from the same survivors, finds the same data: a test of the oracle as much.
void ExpectOracleSolves(const oracle::Rows& rows, const std::vector<oracle::Block>& stripe,
                        const Indices& survivors) {
  oracle::Rows known_rows;
  std::vector<oracle::Block> known_blocks;
  for (const int index : survivors) {
    known_rows.push_back(rows[index]);
    known_blocks.push_back(stripe[index]);
  }
  const auto data = oracle::Solve(known_rows, known_blocks);
  ASSERT_TRUE(data.has_value());
  ASSERT_EQ(oracle::Encode(rows, *data), stripe);
}

class EveryErasure : public testing::TestWithParam<const char*> {};

TEST_P(EveryErasure, IsRepairedLikeTheOracle) {
  const auto code = Code(GetParam());
  const oracle::Rows rows = RowsOf(code->generator());
  std::mt19937_64 random(kSeed);
  // 70 bytes pass through ISA-L, and its odd end.
  const auto stripe = oracle::Encode(rows, oracle::RandomData(code->k(), 70, random));
  const int lost_at_most = code->n() - code->k();
  int patterns = 0;
  for (unsigned mask = 1; mask < 1u << code->n(); ++mask) {
    if (std::popcount(mask) > lost_at_most) continue;
    Indices failed;
    for (int i = 0; i < code->n(); ++i) {
      if ((mask >> i) & 1) failed.push_back(i);
    }
    Indices survivors = AllBut(code->n(), failed);
    ASSERT_NO_FATAL_FAILURE(ExpectRepairs(*code, stripe, failed, survivors)) << "mask " << mask;
    ASSERT_NO_FATAL_FAILURE(ExpectOracleSolves(rows, stripe, survivors)) << "mask " << mask;
    std::shuffle(failed.begin(), failed.end(), random);
    std::shuffle(survivors.begin(), survivors.end(), random);
    ASSERT_NO_FATAL_FAILURE(ExpectRepairs(*code, stripe, failed, survivors)) << "mask " << mask;
    ++patterns;
  }
  EXPECT_GE(patterns, code->n());
}

INSTANTIATE_TEST_SUITE_P(Codes, EveryErasure,
                         testing::Values("rs(6,4)", "rs(9,6)", "rs(14,10)", "rs-vandermonde(6,4)",
                                         "rs-vandermonde(9,6)", "rs-vandermonde(14,10)"));

class RandomErasure : public testing::TestWithParam<const char*> {};

TEST_P(RandomErasure, IsRepairedLikeTheOracle) {
  const auto code = Code(GetParam());
  std::mt19937_64 random(kSeed);
  const auto stripe =
      oracle::Encode(RowsOf(code->generator()), oracle::RandomData(code->k(), 33, random));
  Indices all(code->n());
  std::iota(all.begin(), all.end(), 0);
  const int lost_at_most = code->n() - code->k();
  for (int round = 0; round < 12; ++round) {
    std::shuffle(all.begin(), all.end(), random);
    // The first rounds lose one and as many as possible.
    const int lost = round == 0   ? 1
                     : round == 1 ? lost_at_most
                                  : 1 + static_cast<int>(random() % lost_at_most);
    const Indices failed(all.begin(), all.begin() + lost);
    const Indices survivors(all.begin() + lost, all.end());
    ASSERT_NO_FATAL_FAILURE(ExpectRepairs(*code, stripe, failed, survivors)) << "round " << round;
  }
}

INSTANTIATE_TEST_SUITE_P(Codes, RandomErasure,
                         testing::Values("rs(255,223)", "rs(100,80)", "rs(20,1)", "rs(255,1)",
                                         "rs-vandermonde(67,64)"));

TEST(Equation, ParityFromDataIsTheGeneratorsRow) {
  const auto code = Code("rs(14,10)");
  const Indices data{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  const auto equation = code->Equation(Indices{12}, data).value();
  ASSERT_EQ(BlocksOf(equation), data);
  for (int j = 0; j < 10; ++j) {
    EXPECT_EQ(equation.terms[j].coefficients[0], code->generator().at(12, j));
  }
}

TEST(Equation, TakesTheEarliestSurvivors) {
  const auto code = Code("rs(14,10)");
  const auto equation =
      code->Equation(Indices{3}, Indices{13, 2, 12, 0, 1, 11, 10, 9, 8, 7, 6, 5, 4}).value();
  EXPECT_THAT(BlocksOf(equation), ElementsAre(13, 2, 12, 0, 1, 11, 10, 9, 8, 7));
}

TEST(Equation, KeepsTheOrderOfTheFailedBlocks) {
  const auto code = Code("rs(9,6)");
  const Indices survivors{1, 2, 3, 4, 5, 6, 8};
  const auto forward = code->Equation(Indices{0, 7}, survivors).value();
  const auto backward = code->Equation(Indices{7, 0}, survivors).value();
  EXPECT_THAT(backward.failed, ElementsAre(7, 0));
  ASSERT_EQ(BlocksOf(forward), BlocksOf(backward));
  for (size_t t = 0; t < forward.terms.size(); ++t) {
    EXPECT_EQ(forward.terms[t].coefficients[0], backward.terms[t].coefficients[1]);
    EXPECT_EQ(forward.terms[t].coefficients[1], backward.terms[t].coefficients[0]);
  }
}

TEST(Equation, RefusesABadQuestion) {
  const auto code = Code("rs(6,4)");
  const Indices good{1, 2, 3, 4, 5};
  const auto error = [&](const Indices& failed, const Indices& survivors) {
    const auto equation = code->Equation(failed, survivors);
    EXPECT_EQ(equation.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(equation.status().message());
  };
  EXPECT_THAT(error({}, good), HasSubstr("no failed block"));
  EXPECT_THAT(error({6}, good), HasSubstr("block index 6 is not in the range 0 to 5"));
  EXPECT_THAT(error({-1}, good), HasSubstr("block index -1"));
  EXPECT_THAT(error({0}, {1, 2, 3, 6}), HasSubstr("block index 6"));
  EXPECT_THAT(error({0}, {1, 2, 3, -4}), HasSubstr("block index -4"));
  EXPECT_THAT(error({0, 0}, good), HasSubstr("block index 0 is named twice"));
  EXPECT_THAT(error({0}, {1, 2, 3, 1}), HasSubstr("block index 1 is named twice"));
  EXPECT_THAT(error({1}, good), HasSubstr("block index 1 is named twice"));
}

TEST(Equation, SaysWhenTooFewSurvive) {
  const auto code = Code("rs(6,4)");
  for (const Indices& survivors : {Indices{}, Indices{1}, Indices{1, 4, 5}}) {
    const auto equation = code->Equation(Indices{0}, survivors);
    ASSERT_EQ(equation.status().code(), absl::StatusCode::kFailedPrecondition);
    const std::string message(equation.status().message());
    EXPECT_THAT(message, HasSubstr(std::to_string(survivors.size()) +
                                   " survivors are not enough to rebuild 1 failed block;"));
    EXPECT_THAT(message, HasSubstr("rs-cauchy(6,4) needs up to 4"));
  }
}

// Four data blocks; block 4 = d0 + d1, block 5 = d2 + d3, block 6 a sum of all with weights.
LinearCode LocalGroups() {
  Matrix generator(7, 4);
  for (int j = 0; j < 4; ++j) {
    generator.at(j, j) = 1;
    generator.at(j < 2 ? 4 : 5, j) = 1;
    generator.at(6, j) = static_cast<uint8_t>(j + 1);
  }
  return LinearCode("local-groups", generator);
}

TEST(Equation, DropsSurvivorsThatContributeNothing) {
  const LinearCode code = LocalGroups();
  const auto equation = code.Equation(Indices{0}, Indices{2, 3, 1, 5, 6, 4}).value();
  // Among the earliest that work are 2, 3, 1 and 6; block 5 says nothing new after 2 and 3.
  EXPECT_THAT(BlocksOf(equation), ElementsAre(2, 3, 1, 6));
  const auto local = code.Equation(Indices{0}, Indices{2, 3, 1, 4, 5, 6}).value();
  EXPECT_THAT(local.terms, ElementsAre(EquationTerm{1, {1}}, EquationTerm{4, {1}}));
}

TEST(Equation, NeedsFewerThanKSurvivorsOfALocalGroup) {
  const LinearCode code = LocalGroups();
  const auto equation = code.Equation(Indices{3}, Indices{2, 5}).value();
  EXPECT_THAT(equation.terms, ElementsAre(EquationTerm{2, {1}}, EquationTerm{5, {1}}));
  EXPECT_FALSE(code.Equation(Indices{3}, Indices{0, 1, 4, 2}).ok());
}

TEST(Equation, KeepsTermsThatServeOnlyOneOfTheFailedBlocks) {
  const LinearCode code = LocalGroups();
  const auto equation = code.Equation(Indices{0, 3}, Indices{1, 2, 4, 5, 6}).value();
  EXPECT_THAT(equation.terms, ElementsAre(EquationTerm{1, {1, 0}}, EquationTerm{2, {0, 1}},
                                          EquationTerm{4, {1, 0}}, EquationTerm{5, {0, 1}}));
}

TEST(Equation, AFailedBlockMayBeZero) {
  Matrix generator(3, 1);
  generator.at(0, 0) = generator.at(1, 0) = 1;
  const LinearCode code("zero", generator);
  const auto equation = code.Equation(Indices{2}, Indices{0}).value();
  EXPECT_TRUE(equation.terms.empty());
}

TEST(Equation, EveryErasureOfLocalGroupsIsRepairedIfItCanBe) {
  const LinearCode code = LocalGroups();
  std::mt19937_64 random(kSeed);
  const oracle::Rows rows = RowsOf(code.generator());
  const auto stripe = oracle::Encode(rows, oracle::RandomData(4, 20, random));
  for (unsigned mask = 1; mask < 1u << 7; ++mask) {
    Indices failed;
    oracle::Rows known;
    for (int i = 0; i < 7; ++i) {
      if ((mask >> i) & 1) failed.push_back(i);
    }
    const Indices survivors = AllBut(7, failed);
    for (const int index : survivors) known.push_back(rows[index]);
    const bool determined =
        oracle::Solve(known, std::vector<oracle::Block>(known.size())).has_value();
    // A block may be determined even where the data as a whole is lost.
    if (determined || code.Equation(failed, survivors).ok()) {
      ASSERT_NO_FATAL_FAILURE(ExpectRepairs(code, stripe, failed, survivors)) << mask;
    }
  }
}

}  // namespace
}  // namespace ecpipe::equation_test
