// SPDX-License-Identifier: Apache-2.0
#include "codec/erasure_code.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/codec/scalar_oracle.h"

namespace ecpipe::erasure_code_test {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<const ErasureCode> Code(const std::string& name) {
  const auto code = CreateErasureCode(name);
  EXPECT_TRUE(code.ok()) << code.status();
  return code.ok() ? *code : nullptr;
}

oracle::Rows RowsOf(const Matrix& matrix) {
  oracle::Rows rows(matrix.rows());
  for (int i = 0; i < matrix.rows(); ++i) {
    for (int j = 0; j < matrix.columns(); ++j) rows[i].push_back(matrix.at(i, j));
  }
  return rows;
}

// Row `row` of the generator.
std::vector<uint8_t> Row(const std::string& name, int row) {
  return RowsOf(Code(name)->generator())[row];
}

std::string ErrorOf(const std::string& name) {
  const auto code = CreateErasureCode(name);
  EXPECT_EQ(code.status().code(), absl::StatusCode::kInvalidArgument) << name;
  return std::string(code.status().message());
}

TEST(CreateErasureCode, KnowsItsNames) {
  for (const char* name : {"rs(14,10)", "rs(14, 10)", "rs-cauchy(14,10)"}) {
    const auto code = Code(name);
    EXPECT_EQ(code->n(), 14);
    EXPECT_EQ(code->k(), 10);
    EXPECT_EQ(code->name(), "rs-cauchy(14,10)");
  }
  EXPECT_EQ(Code("rs-vandermonde(9,6)")->name(), "rs-vandermonde(9,6)");
}

TEST(CreateErasureCode, ANameMakesTheSameCodeAgain) {
  for (const char* name : {"rs(6,4)", "rs-vandermonde(9,6)"}) {
    const auto code = Code(name);
    EXPECT_EQ(Code(code->name())->generator(), code->generator());
  }
}

TEST(CreateErasureCode, XorIsTheSumOfTheData) {
  const auto code = Code("xor(3,2)");
  EXPECT_EQ(code->name(), "xor(3,2)");
  EXPECT_EQ(Row("xor(3,2)", 2), (std::vector<uint8_t>{1, 1}));
  for (int failed = 0; failed < 3; ++failed) {
    const auto equation = code->Equation(std::vector<int>{failed},
                                         std::vector<int>{(failed + 1) % 3, (failed + 2) % 3});
    ASSERT_TRUE(equation.ok());
    for (const EquationTerm& term : equation->terms) {
      EXPECT_EQ(term.coefficients, std::vector<uint8_t>{1});
    }
  }
  EXPECT_THAT(ErrorOf("xor(4,2)"), HasSubstr("n = k + 1"));
}

TEST(CreateErasureCode, RefusesWhatIsNotAName) {
  for (const char* name : {"",
                           "rs",
                           "rs(",
                           "rs)",
                           "rs()",
                           "(14,10)",
                           "rs(14,10",
                           "rs(14,10)x",
                           "rs(14,10))",
                           "rs(14;10)",
                           "rs(14,)",
                           "rs(,10)",
                           "rs(14,10,)",
                           "rs(1e1,2)",
                           "rs(0x10,2)",
                           "rs(14.0,10)",
                           "rs(99999999999,2)",
                           "14,10",
                           "rs(a,b)",
                           "rs 14 10"}) {
    EXPECT_THAT(ErrorOf(name), HasSubstr("write for example rs(14,10)")) << name;
  }
}

TEST(CreateErasureCode, ListsTheFamiliesForAnUnknownOne) {
  for (const char* name : {"msr(16,12)", "RS(14,10)", "rs-(14,10)", " rs(14,10)"}) {
    EXPECT_THAT(
        ErrorOf(name),
        HasSubstr(
            "rs, rs-cauchy, rs-vandermonde, rs-legacy, xor, lrc, rotated-rs, qfs-rs, qfs-jerasure"))
        << name;
  }
}

TEST(CreateErasureCode, RefusesAWrongCountOfParameters) {
  EXPECT_THAT(ErrorOf("rs(14)"), HasSubstr("the form is rs(n,k)"));
  EXPECT_THAT(ErrorOf("rs-vandermonde(14,10,2)"), HasSubstr("the form is rs-vandermonde(n,k)"));
  EXPECT_THAT(ErrorOf("lrc(12,2)"), HasSubstr("the form is lrc(k,groups,global)"));
}

TEST(CreateErasureCode, RefusesParametersOutsideTheField) {
  for (const char* family : {"rs", "rs-cauchy", "rs-vandermonde"}) {
    for (const char* parameters : {"(10,10)", "(10,14)", "(0,0)", "(5,0)", "(1,1)", "(256,200)",
                                   "(-5,2)", "(5,-2)", "(1000,1)"}) {
      EXPECT_THAT(ErrorOf(std::string(family) + parameters), HasSubstr("1 <= k < n <= 255"))
          << family << parameters;
    }
  }
}

TEST(CreateErasureCode, ReachesItsLimits) {
  for (const char* name : {"rs(2,1)", "rs(255,1)", "rs(255,254)", "rs(255,128)",
                           "rs-vandermonde(2,1)", "rs-vandermonde(255,254)"}) {
    EXPECT_NE(Code(name), nullptr) << name;
  }
}

// The rows that HDFS-3 writes (its codec "rs"), found by comparing with its encoder.
TEST(Cauchy, HasTheRowsOfHdfs) {
  using Bytes = std::vector<uint8_t>;
  EXPECT_EQ(Row("rs(9,6)", 6), (Bytes{0x7a, 0xba, 0x47, 0xa7, 0x8e, 0xf4}));
  EXPECT_EQ(Row("rs(14,10)", 10),
            (Bytes{0xdd, 0x98, 0xad, 0x9d, 0x5d, 0x96, 0x3d, 0xaa, 0x8e, 0xf4}));
  EXPECT_EQ(Row("rs(5,3)", 3), (Bytes{0xf4, 0x8e, 0x01}));
  EXPECT_EQ(Row("rs(16,12)", 12),
            (Bytes{0x3d, 0xaa, 0x5d, 0x96, 0xad, 0x9d, 0xdd, 0x98, 0x47, 0xa7, 0x7a, 0xba}));
}

// The rows that QFS writes (its striper "qcrs").
TEST(Vandermonde, HasTheRowsOfQfs) {
  using Bytes = std::vector<uint8_t>;
  EXPECT_EQ(Row("rs-vandermonde(9,6)", 6), (Bytes{0x01, 0x01, 0x01, 0x01, 0x01, 0x01}));
  EXPECT_EQ(Row("rs-vandermonde(9,6)", 7), (Bytes{0x01, 0x02, 0x04, 0x08, 0x10, 0x20}));
  EXPECT_EQ(Row("rs-vandermonde(9,6)", 8), (Bytes{0x01, 0x04, 0x10, 0x40, 0x1d, 0x74}));
}

TEST(Generator, IsTheOracles) {
  for (const auto& [n, k] : {std::pair(6, 4), {14, 10}, {20, 1}, {100, 80}, {255, 223}, {255, 1}}) {
    const std::string name = "(" + std::to_string(n) + "," + std::to_string(k) + ")";
    EXPECT_EQ(RowsOf(Code("rs" + name)->generator()), oracle::CauchyRows(n, k)) << name;
  }
  for (const auto& [n, k] : {std::pair(6, 4), {9, 6}, {25, 21}, {67, 64}, {255, 252}, {255, 3}}) {
    const std::string name = "(" + std::to_string(n) + "," + std::to_string(k) + ")";
    EXPECT_EQ(RowsOf(Code("rs-vandermonde" + name)->generator()), oracle::VandermondeRows(n, k))
        << name;
  }
}

}  // namespace
}  // namespace ecpipe::erasure_code_test
