// SPDX-License-Identifier: Apache-2.0
#include "codec/local_reconstruction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "codec/gf256.h"

namespace ecpipe::local_reconstruction_test {
namespace {

using ::testing::UnorderedElementsAre;

std::shared_ptr<const ErasureCode> Code(const std::string& name) {
  return CreateErasureCode(name).value();
}

std::vector<int> BlocksOf(const RepairEquation& equation) {
  std::vector<int> blocks;
  for (const EquationTerm& term : equation.terms) blocks.push_back(term.block_index);
  return blocks;
}

std::vector<int> AllBut(const ErasureCode& code, const std::vector<int>& failed) {
  std::vector<int> survivors;
  for (int i = 0; i < code.n(); ++i) {
    if (std::find(failed.begin(), failed.end(), i) == failed.end()) survivors.push_back(i);
  }
  return survivors;
}

// The equation, applied to the generator's rows, must give the failed blocks' rows.
void ExpectHolds(const ErasureCode& code, const RepairEquation& equation) {
  for (size_t r = 0; r < equation.failed.size(); ++r) {
    for (int j = 0; j < code.k(); ++j) {
      uint8_t sum = 0;
      for (const EquationTerm& term : equation.terms) {
        sum ^= GfMultiply(term.coefficients[r], code.generator().at(term.block_index, j));
      }
      ASSERT_EQ(sum, code.generator().at(equation.failed[r], j));
    }
  }
}

template <typename Visit>
void ForEachPattern(int n, int size, Visit visit) {
  std::vector<bool> chosen(static_cast<size_t>(n), false);
  std::fill(chosen.begin(), chosen.begin() + size, true);
  do {
    std::vector<int> pattern;
    for (int i = 0; i < n; ++i) {
      if (chosen[static_cast<size_t>(i)]) pattern.push_back(i);
    }
    visit(pattern);
  } while (std::prev_permutation(chosen.begin(), chosen.end()));
}

TEST(LocalReconstruction, AzuresCodeHasItsShape) {
  const auto code = Code("lrc(12,2,2)");
  EXPECT_EQ(code->n(), 16);
  EXPECT_EQ(code->k(), 12);
  EXPECT_EQ(code->name(), "lrc(12,2,2)");
  for (int j = 0; j < 12; ++j) {
    EXPECT_EQ(code->generator().at(12, j), j < 6 ? 1 : 0);
    EXPECT_EQ(code->generator().at(13, j), j < 6 ? 0 : 1);
  }
}

TEST(LocalReconstruction, SingleFailuresStayInTheGroup) {
  const auto code = Code("lrc(12,2,2)");
  for (int failed = 0; failed < 14; ++failed) {
    // The group's blocks are the last that the caller wants.
    std::vector<int> survivors = AllBut(*code, {failed});
    const bool first = failed < 6 || failed == 12;
    std::stable_partition(survivors.begin(), survivors.end(),
                          [&](int block) { return (block < 6 || block == 12) != first; });
    const auto equation = code->Equation(std::vector<int>{failed}, survivors);
    ASSERT_TRUE(equation.ok()) << equation.status();
    ExpectHolds(*code, *equation);
    std::vector<int> group =
        first ? std::vector<int>{0, 1, 2, 3, 4, 5, 12} : std::vector<int>{6, 7, 8, 9, 10, 11, 13};
    std::erase(group, failed);
    EXPECT_THAT(BlocksOf(*equation), testing::UnorderedElementsAreArray(group));
  }
}

TEST(LocalReconstruction, AGlobalParityNeedsAllData) {
  const auto code = Code("lrc(12,2,2)");
  for (const int failed : {14, 15}) {
    const auto equation = code->Equation(std::vector<int>{failed}, AllBut(*code, {failed}));
    ASSERT_TRUE(equation.ok()) << equation.status();
    ExpectHolds(*code, *equation);
    EXPECT_EQ(equation->terms.size(), 12u);
  }
}

TEST(LocalReconstruction, OneFailureInEachGroupIsRepairedInTheGroups) {
  const auto code = Code("lrc(12,2,2)");
  const auto equation = code->Equation(std::vector<int>{2, 9}, AllBut(*code, {2, 9}));
  ASSERT_TRUE(equation.ok());
  ExpectHolds(*code, *equation);
  EXPECT_THAT(BlocksOf(*equation), UnorderedElementsAre(0, 1, 3, 4, 5, 12, 6, 7, 8, 10, 11, 13));
}

TEST(LocalReconstruction, BeyondTheGroupItDecodesAllTheSame) {
  const auto code = Code("lrc(12,2,2)");
  const auto equation = code->Equation(std::vector<int>{0}, AllBut(*code, {0, 1, 12}));
  ASSERT_TRUE(equation.ok()) << equation.status();
  ExpectHolds(*code, *equation);
}

// A pattern can be decoded by no code of this shape when some group, after its local parity has
// taken one failure, and both globals leave too many.
bool CouldDecode(const std::vector<int>& pattern) {
  int in_group[2] = {0, 0};
  int globals_lost = 0;
  for (const int block : pattern) {
    if (block >= 14) {
      ++globals_lost;
    } else {
      ++in_group[block < 6 || block == 12 ? 0 : 1];
    }
  }
  const int left = std::max(0, in_group[0] - 1) + std::max(0, in_group[1] - 1);
  return left + globals_lost <= 2;
}

TEST(LocalReconstruction, AzuresCodeDecodesWhateverAnyCouldOfThreeAndFour) {
  const auto code = Code("lrc(12,2,2)");
  for (const int size : {3, 4}) {
    int decoded = 0;
    int patterns = 0;
    ForEachPattern(16, size, [&](const std::vector<int>& pattern) {
      const auto equation = code->Equation(pattern, AllBut(*code, pattern));
      EXPECT_EQ(equation.ok(), CouldDecode(pattern)) << testing::PrintToString(pattern);
      if (equation.ok()) ExpectHolds(*code, *equation);
      decoded += equation.ok() ? 1 : 0;
      ++patterns;
    });
    // The paper: all patterns of three, 86 % of four.
    EXPECT_NEAR(decoded / static_cast<double>(patterns), size == 3 ? 1 : 0.86, 0.005);
  }
}

TEST(LocalReconstruction, GeneralParametersDecodeOneMoreThanTheirGlobals) {
  const std::vector<std::pair<std::string, int>> codes = {{"lrc(12,3,2)", 3},
                                                          {"lrc(8,2,3)", 4},
                                                          {"lrc(6,1,1)", 2},
                                                          {"lrc(6,3,1)", 2},
                                                          {"lrc(4,4,2)", 3}};
  for (const auto& [name, failures] : codes) {
    const auto code = Code(name);
    for (int size = 1; size <= failures; ++size) {
      ForEachPattern(code->n(), size, [&](const std::vector<int>& pattern) {
        const auto equation = code->Equation(pattern, AllBut(*code, pattern));
        ASSERT_TRUE(equation.ok()) << name << " " << testing::PrintToString(pattern);
        ExpectHolds(*code, *equation);
      });
    }
  }
}

TEST(LocalReconstruction, WideCodesCanBeMade) {
  EXPECT_EQ(Code("lrc(200,10,4)")->n(), 214);
  EXPECT_EQ(Code("lrc(40,2,2)")->n(), 44);
}

TEST(LocalReconstruction, RefusesWhatIsNotPossible) {
  for (const char* name : {"lrc(12,5,2)", "lrc(12,0,2)", "lrc(0,1,1)", "lrc(12,2,0)",
                           "lrc(250,5,1)", "lrc(12,-2,2)", "lrc(12,2)", "lrc(2147483647,1,1)"}) {
    const auto code = CreateErasureCode(name);
    EXPECT_TRUE(absl::IsInvalidArgument(code.status())) << name;
    EXPECT_THAT(std::string(code.status().message()), testing::HasSubstr("lrc("));
  }
}

TEST(LocalReconstruction, SaysThatManySurvivorsNeedNotBeEnough) {
  const auto code = Code("lrc(4,4,1)");
  const std::vector<int> failed = {0, 4, 8};
  ASSERT_TRUE(absl::IsFailedPrecondition(
      code->Equation(failed, AllBut(*code, failed)).status()));
  EXPECT_EQ(WhyUndetermined(*code, {"b1", "b2", "b3", "b5", "b6", "b7"}),
            "the 6 survivors that can be used do not determine it, since of code lrc(4,4,1) not "
            "any k = 4 blocks do: b1, b2, b3, b5, b6, b7");
  EXPECT_EQ(WhyUndetermined(*code, {"b1", "b2"}),
            "k = 4 blocks are needed, but only 2 survivors can be used");
}

}  // namespace
}  // namespace ecpipe::local_reconstruction_test
