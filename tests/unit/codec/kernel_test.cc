// SPDX-License-Identifier: Apache-2.0
#include "codec/kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "codec/kernel_check.h"
#include "unit/codec/scalar_oracle.h"

namespace ecpipe::kernel_test {
namespace {

constexpr uint64_t kSeed = 20260102;
constexpr uint8_t kGuard = 0xa5;
constexpr size_t kGuardBytes = 64;

// Bytes at a chosen distance from a 64-byte boundary, between guards: ISA-L is not instrumented, so
// a sanitizer would not see it write past the end.
class GuardedBytes {
 public:
  GuardedBytes(const oracle::Block& content, size_t misalignment)
      : bytes_(content.size()), storage_(content.size() + 2 * kGuardBytes + 128, kGuard) {
    const auto address = reinterpret_cast<uintptr_t>(storage_.data()) + kGuardBytes;
    start_ = (address + 63) / 64 * 64 + misalignment - reinterpret_cast<uintptr_t>(storage_.data());
    std::copy(content.begin(), content.end(), data());
  }

  uint8_t* data() { return storage_.data() + start_; }
  oracle::Block content() { return {data(), data() + bytes_}; }
  bool GuardsHold() const {
    const auto begin = storage_.begin();
    const auto is_guard = [](uint8_t byte) { return byte == kGuard; };
    return std::all_of(begin, begin + static_cast<ptrdiff_t>(start_), is_guard) &&
           std::all_of(begin + static_cast<ptrdiff_t>(start_ + bytes_), storage_.end(), is_guard);
  }

 private:
  size_t bytes_;
  size_t start_;
  std::vector<uint8_t> storage_;
};

oracle::Block Product(uint8_t coefficient, const oracle::Block& source) {
  std::array<uint8_t, 256> products;
  for (int i = 0; i < 256; ++i) products[i] = oracle::Multiply(coefficient, i);
  oracle::Block result;
  for (const uint8_t byte : source) result.push_back(products[byte]);
  return result;
}

oracle::Block Sum(oracle::Block a, const oracle::Block& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] ^= b[i];
  return a;
}

enum class Operation { kMultiply, kMultiplyAdd };

struct Case {
  Operation operation;
  size_t bytes;
  size_t misalignment;
};

void ExpectLikeOracle(const Case& test, const std::vector<uint8_t>& coefficients,
                      std::mt19937_64& random) {
  const oracle::Block source = oracle::RandomBlock(test.bytes, random);
  GuardedBytes guarded_source(source, test.misalignment);
  std::vector<GuardedBytes> rows;
  std::vector<oracle::Block> expected;
  for (size_t r = 0; r < coefficients.size(); ++r) {
    const oracle::Block before = oracle::RandomBlock(test.bytes, random);
    rows.emplace_back(before, (test.misalignment * (r + 2)) % 64);
    const oracle::Block product = Product(coefficients[r], source);
    expected.push_back(test.operation == Operation::kMultiply ? product : Sum(before, product));
  }
  std::vector<uint8_t*> pointers;
  for (GuardedBytes& row : rows) pointers.push_back(row.data());

  const CoefficientColumn column(coefficients);
  if (test.operation == Operation::kMultiply) {
    column.Multiply(pointers, guarded_source.data(), test.bytes);
  } else {
    column.MultiplyAdd(pointers, guarded_source.data(), test.bytes);
  }
  ASSERT_EQ(guarded_source.content(), source);
  ASSERT_TRUE(guarded_source.GuardsHold());
  for (size_t r = 0; r < rows.size(); ++r) {
    ASSERT_EQ(rows[r].content(), expected[r]) << "row " << r;
    ASSERT_TRUE(rows[r].GuardsHold()) << "row " << r;
  }
}

std::vector<uint8_t> RandomCoefficients(size_t rows, std::mt19937_64& random) {
  std::vector<uint8_t> coefficients;
  for (size_t r = 0; r < rows; ++r) coefficients.push_back(static_cast<uint8_t>(random()));
  return coefficients;
}

TEST(Kernel, AllLengthsAlignmentsAndRowCounts) {
  std::mt19937_64 random(kSeed);
  for (const Operation operation : {Operation::kMultiply, Operation::kMultiplyAdd}) {
    for (size_t bytes = 0; bytes <= 300; ++bytes) {
      for (size_t rows = 1; rows <= 10; ++rows) {
        const size_t misalignment = (bytes * 7 + rows * 13) % 64;
        ASSERT_NO_FATAL_FAILURE(ExpectLikeOracle({operation, bytes, misalignment},
                                                 RandomCoefficients(rows, random), random))
            << bytes << " bytes, " << rows << " rows, misaligned by " << misalignment;
      }
    }
  }
}

TEST(Kernel, EachMisalignment) {
  std::mt19937_64 random(kSeed);
  for (size_t misalignment = 0; misalignment < 64; ++misalignment) {
    for (const size_t bytes : {1u, 63u, 64u, 65u, 100u, 4097u}) {
      for (const size_t rows : {1u, 4u, 7u}) {
        ASSERT_NO_FATAL_FAILURE(ExpectLikeOracle({Operation::kMultiplyAdd, bytes, misalignment},
                                                 RandomCoefficients(rows, random), random))
            << bytes << " bytes, " << rows << " rows, misaligned by " << misalignment;
      }
    }
  }
}

TEST(Kernel, LongAndOddLengths) {
  std::mt19937_64 random(kSeed);
  for (const size_t bytes : {511u, 1023u, 4095u, 4096u, 32768u, 65537u, 1048576u + 13u}) {
    for (const Operation operation : {Operation::kMultiply, Operation::kMultiplyAdd}) {
      ASSERT_NO_FATAL_FAILURE(
          ExpectLikeOracle({operation, bytes, 5}, RandomCoefficients(4, random), random))
          << bytes;
    }
  }
}

TEST(Kernel, EachCoefficient) {
  std::mt19937_64 random(kSeed);
  for (int coefficient = 0; coefficient < 256; ++coefficient) {
    for (const size_t bytes : {17u, 256u}) {
      ASSERT_NO_FATAL_FAILURE(ExpectLikeOracle({Operation::kMultiplyAdd, bytes, 0},
                                               {static_cast<uint8_t>(coefficient)}, random))
          << coefficient;
    }
  }
}

TEST(Kernel, AsManyRowsAsAStripeCanLose) {
  std::mt19937_64 random(kSeed);
  for (const size_t bytes : {20u, 333u}) {
    ASSERT_NO_FATAL_FAILURE(ExpectLikeOracle({Operation::kMultiplyAdd, bytes, 1},
                                             RandomCoefficients(255, random), random));
  }
}

TEST(Kernel, NoRowsAndNoBytesDoNothing) {
  const CoefficientColumn none;
  EXPECT_EQ(none.rows(), 0u);
  const uint8_t source[100] = {};
  none.MultiplyAdd({}, source, sizeof source);
  none.Multiply({}, source, sizeof source);
  const CoefficientColumn one(std::vector<uint8_t>{3});
  uint8_t row = 7;
  uint8_t* rows[] = {&row};
  one.MultiplyAdd(rows, source, 0);
  one.Multiply(rows, source, 0);
  EXPECT_EQ(row, 7);
}

TEST(KernelDeathTest, CountsRows) {
  const CoefficientColumn column(std::vector<uint8_t>{1, 2});
  uint8_t byte = 0;
  uint8_t* one_row[] = {&byte};
  EXPECT_DEATH(column.MultiplyAdd(one_row, &byte, 1), "broken invariant");
  EXPECT_DEATH(CoefficientColumn(std::vector<uint8_t>(256, 1)), "broken invariant");
}

TEST(Kernel, PassesTheCheckAtStart) {
  EXPECT_TRUE(CheckKernel().ok()) << CheckKernel();
  EXPECT_NE(KernelLibrary().find("libisal"), std::string::npos) << KernelLibrary();
}

TEST(Kernel, XorsAllLengthsAndAlignments) {
  std::mt19937_64 random(kSeed);
  for (size_t bytes = 0; bytes <= 300; ++bytes) {
    for (const size_t misalignment : {0u, 1u, 8u, 31u}) {
      const oracle::Block source = oracle::RandomBlock(bytes, random);
      const oracle::Block before = oracle::RandomBlock(bytes, random);
      GuardedBytes guarded_source(source, (misalignment * 3) % 64);
      GuardedBytes target(before, misalignment);
      Xor(target.data(), guarded_source.data(), bytes);
      ASSERT_EQ(target.content(), Sum(before, source)) << bytes << " at " << misalignment;
      ASSERT_TRUE(target.GuardsHold());
    }
  }
}

}  // namespace
}  // namespace ecpipe::kernel_test
