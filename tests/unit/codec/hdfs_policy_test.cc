// SPDX-License-Identifier: Apache-2.0
#include "model/systems/hdfs_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "codec/erasure_code.h"
#include "unit/codec/scalar_oracle.h"

namespace ecpipe::hdfs_policy_test {
namespace {

using Bytes = std::vector<uint8_t>;

std::shared_ptr<const ErasureCode> Code(const std::string& name) {
  const auto code = CreateErasureCode(name);
  EXPECT_TRUE(code.ok()) << code.status();
  return code.ok() ? *code : nullptr;
}

Bytes FirstParityRow(const std::string& name) {
  const auto code = Code(name);
  Bytes row;
  for (int j = 0; j < code->k(); ++j) row.push_back(code->generator().at(code->k(), j));
  return row;
}

// Found by comparing with the files that Hadoop's own encoders wrote.
TEST(HdfsNames, TheCodesHaveTheRowsOfHadoop) {
  EXPECT_EQ(FirstParityRow("hdfs:RS-6-3-1024k"), (Bytes{0x7a, 0xba, 0x47, 0xa7, 0x8e, 0xf4}));
  EXPECT_EQ(FirstParityRow("hdfs:RS-10-4"),
            (Bytes{0xdd, 0x98, 0xad, 0x9d, 0x5d, 0x96, 0x3d, 0xaa, 0x8e, 0xf4}));
  EXPECT_EQ(FirstParityRow("hdfs:RS-3-2-1024k"), (Bytes{0xf4, 0x8e, 0x01}));
  EXPECT_EQ(FirstParityRow("hdfs:RS-12-4-64k"),
            (Bytes{0x3d, 0xaa, 0x5d, 0x96, 0xad, 0x9d, 0xdd, 0x98, 0x47, 0xa7, 0x7a, 0xba}));
  EXPECT_EQ(FirstParityRow("hdfs:RS-LEGACY-6-3-1024k"),
            (Bytes{0x08, 0x38, 0xd8, 0x3f, 0x04, 0xf5}));
  EXPECT_EQ(FirstParityRow("hdfs:XOR-2-1-1024k"), (Bytes{0x01, 0x01}));
}

TEST(HdfsNames, AreAliases) {
  for (const auto& [alias, name] : {std::pair("hdfs:RS-6-3", "rs-cauchy(9,6)"),
                                    {"hdfs:RS-6-3-4k", "rs-cauchy(9,6)"},
                                    {"hdfs:RS-LEGACY-6-3", "rs-legacy(9,6)"},
                                    {"hdfs:XOR-2-1", "xor(3,2)"},
                                    {"hdfs:XOR-4-1-1024k", "xor(5,4)"}}) {
    EXPECT_EQ(Code(alias)->name(), name) << alias;
  }
  EXPECT_EQ(NameOfHdfsPolicy("rs(9,6)").value(), "rs(9,6)") << "our own names stay";
}

TEST(HdfsNames, RefuseWhatIsNoPolicy) {
  for (const char* name : {"hdfs:",
                           "hdfs:RS",
                           "hdfs:RS-6",
                           "hdfs:RS-6-",
                           "hdfs:RS--6-3",
                           "hdfs:rs-6-3",
                           "hdfs:RS-6-3-1024",
                           "hdfs:RS-6-3-k",
                           "hdfs:RS-6-3-1024k-1",
                           "hdfs:RS-06-3",
                           "hdfs:RS-6-0",
                           "hdfs:RS-+6-3",
                           "hdfs:RS-6-3k",
                           "hdfs:RS-300-3",
                           "hdfs:RS-LEGACY-6",
                           "hdfs:LEGACY-6-3",
                           "hdfs:RS-LEGACY-99999999999-3",
                           "hdfs:XOR-2-2",
                           "hdfs:RS-250-6",
                           "HDFS:RS-6-3"}) {
    EXPECT_EQ(CreateErasureCode(name).status().code(), absl::StatusCode::kInvalidArgument) << name;
  }
  EXPECT_EQ(NameOfHdfsCodec("dummy", 6, 3).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(NameOfHdfsCodec("rs", 6, 3).value(), "rs-cauchy(9,6)");
}

// The parities are the rest of a division of polynomials, done here step by step.
TEST(Legacy, ParitiesAreTheRestOfTheDivision) {
  std::mt19937_64 random(20261122);
  for (const auto& [n, k] : {std::pair(9, 6), {3, 2}, {14, 10}, {16, 12}, {20, 1}, {255, 251}}) {
    const auto code = Code("rs-legacy(" + std::to_string(n) + "," + std::to_string(k) + ")");
    const int m = n - k;
    oracle::Block divisor = {1};  // the highest power first
    for (int i = 0; i < m; ++i) {
      divisor.push_back(0);
      for (size_t at = divisor.size() - 1; at > 0; --at) {
        divisor[at] ^= oracle::Multiply(divisor[at - 1], oracle::Power(2, i));
      }
    }
    const oracle::Block data = oracle::RandomBlock(static_cast<size_t>(k), random);
    oracle::Block rest(data.rbegin(), data.rend());
    rest.resize(static_cast<size_t>(n), 0);
    for (int step = 0; step < k; ++step) {
      const uint8_t factor = rest[step];
      for (int i = 0; i <= m; ++i) rest[step + i] ^= oracle::Multiply(divisor[i], factor);
    }
    for (int p = 0; p < m; ++p) {
      uint8_t parity = 0;
      for (int j = 0; j < k; ++j) {
        parity ^= oracle::Multiply(code->generator().at(k + p, j), data[j]);
      }
      EXPECT_EQ(parity, rest[n - 1 - p]) << n << "," << k << " parity " << p;
    }
  }
}

TEST(HdfsPolicies, AreReadWithTheirCells) {
  EXPECT_EQ(ParseHdfsPolicy("RS-6-3-1024k").value(), (HdfsPolicy{"rs", 6, 3, 1 << 20}));
  EXPECT_EQ(ParseHdfsPolicy("RS-LEGACY-6-3-64k").value(), (HdfsPolicy{"rs-legacy", 6, 3, 65536}));
  EXPECT_EQ(ParseHdfsPolicy("XOR-2-1").value(), (HdfsPolicy{"xor", 2, 1, 0}));
  for (const char* bad : {"", "RS", "RS-6", "rs-6-3", "hdfs:RS-6-3", "RS-6-3-1024", "RS-6-3-0k",
                          "RS-6-3-1024k-1", "RS-0-3-1024k", "CLAY-6-3-1024k"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseHdfsPolicy(bad).status())) << bad;
  }
}

// Every choice of k of the n rows is regular.
TEST(Legacy, IsMds) {
  for (const auto& [n, k] : {std::pair(9, 6), {5, 3}, {3, 2}, {14, 10}, {16, 12}, {12, 4}}) {
    const auto code = Code("rs-legacy(" + std::to_string(n) + "," + std::to_string(k) + ")");
    std::vector<bool> chosen(static_cast<size_t>(n), false);
    std::fill(chosen.begin(), chosen.begin() + k, true);
    do {
      oracle::Rows rows;
      for (int i = 0; i < n; ++i) {
        if (!chosen[i]) continue;
        rows.emplace_back();
        for (int j = 0; j < k; ++j) rows.back().push_back(code->generator().at(i, j));
      }
      ASSERT_FALSE(oracle::IsSingular(rows)) << n << "," << k;
    } while (std::prev_permutation(chosen.begin(), chosen.end()));
  }
}

}  // namespace
}  // namespace ecpipe::hdfs_policy_test
