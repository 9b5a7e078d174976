// SPDX-License-Identifier: Apache-2.0
// Blocks on disks stay as they are: every code gives the parities that it gave ever since. These
// are in golden_parities.txt, which golden_parities.py has written by another library.
#include <gtest/gtest.h>

#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "codec/erasure_code.h"
#include "codec/kernel.h"

namespace ecpipe::golden_parities_test {
namespace {

using Bytes = std::vector<uint8_t>;

struct Golden {
  std::string code;
  size_t block_bytes = 0;
  std::vector<Bytes> parities;
};

Bytes FromHex(const std::string& hex) {
  Bytes bytes;
  for (size_t i = 0; i < hex.size(); i += 2) {
    bytes.push_back(static_cast<uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

std::vector<Golden> ReadAll() {
  std::ifstream file(GOLDEN_PARITIES);
  std::vector<Golden> all;
  for (std::string word; file >> word;) {
    if (word == "code") {
      file >> all.emplace_back().code >> all.back().block_bytes;
    } else if (word == "parity") {
      all.back().parities.emplace_back();
    } else {
      Bytes& parity = all.back().parities.back();
      const Bytes more = FromHex(word);
      parity.insert(parity.end(), more.begin(), more.end());
    }
  }
  return all;
}

// The same in golden_parities.py.
Bytes DataBlock(uint32_t block, size_t bytes) {
  Bytes data(bytes);
  for (uint32_t i = 0; i < bytes; ++i) {
    uint32_t mixed = (block + 1) * 2654435761u + (i + 1) * 40503u;
    mixed ^= mixed >> 15;
    data[i] = static_cast<uint8_t>((mixed * 2246822519u) >> 24);
  }
  return data;
}

Bytes SubBlock(const BlockLayout& layout, const Bytes& block, uint32_t sub_block) {
  Bytes bytes(block.size() / layout.sub_blocks);
  layout.ForEachPiece(sub_block, 0, bytes.size(), [&](uint64_t from, uint64_t at, uint64_t piece) {
    std::copy_n(&block[from], piece, &bytes[at]);
    return true;
  });
  return bytes;
}

void SetSubBlock(const BlockLayout& layout, const Bytes& bytes, uint32_t sub_block, Bytes* block) {
  layout.ForEachPiece(sub_block, 0, bytes.size(), [&](uint64_t to, uint64_t at, uint64_t piece) {
    std::copy_n(&bytes[at], piece, &(*block)[to]);
    return true;
  });
}

// The blocks `wanted` from `stripe`, by the equation that a repair would use.
std::vector<Bytes> Computed(const ErasureCode& code, const std::vector<int>& wanted,
                            const std::vector<int>& survivors, const std::vector<Bytes>& stripe) {
  const auto equation = code.Equation(wanted, survivors);
  EXPECT_TRUE(equation.ok()) << equation.status();
  const BlockLayout layout = code.layout();
  const size_t block_bytes = stripe[survivors[0]].size();
  std::vector<Bytes> rows(equation->rows(), Bytes(block_bytes / layout.sub_blocks));
  std::vector<uint8_t*> into;
  for (Bytes& row : rows) into.push_back(row.data());
  for (const EquationTerm& term : equation->terms) {
    const size_t height = rows.size();
    for (size_t s = 0; s < term.sub_blocks.size(); ++s) {
      const CoefficientColumn column(std::span(term.coefficients).subspan(s * height, height));
      const Bytes source = SubBlock(layout, stripe[term.block_index], term.sub_blocks[s]);
      column.MultiplyAdd(into, source.data(), source.size());
    }
  }
  std::vector<Bytes> blocks(wanted.size(), Bytes(block_bytes));
  for (size_t row = 0; row < rows.size(); ++row) {
    SetSubBlock(layout, rows[row], row % layout.sub_blocks, &blocks[row / layout.sub_blocks]);
  }
  return blocks;
}

std::vector<int> Range(int from, int to) {
  std::vector<int> range(to - from);
  std::iota(range.begin(), range.end(), from);
  return range;
}

class GoldenParities : public ::testing::TestWithParam<Golden> {
 protected:
  // The stripe as the file has it.
  std::vector<Bytes> Stripe(int k) const {
    std::vector<Bytes> stripe;
    for (int i = 0; i < k; ++i) stripe.push_back(DataBlock(i, GetParam().block_bytes));
    for (const Bytes& parity : GetParam().parities) stripe.push_back(parity);
    return stripe;
  }
};

TEST_P(GoldenParities, AreThoseOfTheCode) {
  const auto code = CreateErasureCode(GetParam().code);
  ASSERT_TRUE(code.ok()) << code.status();
  const int k = (*code)->k();
  const int n = (*code)->n();
  ASSERT_EQ(GetParam().parities.size(), n - k);
  EXPECT_EQ(Computed(**code, Range(k, n), Range(0, k), Stripe(k)), GetParam().parities);
}

TEST_P(GoldenParities, GiveEachDataBlockBack) {
  const auto code = CreateErasureCode(GetParam().code);
  ASSERT_TRUE(code.ok()) << code.status();
  const std::vector<Bytes> stripe = Stripe((*code)->k());
  for (int lost = 0; lost < (*code)->k(); ++lost) {
    std::vector<int> survivors = Range(0, (*code)->n());
    std::erase(survivors, lost);
    std::reverse(survivors.begin(), survivors.end());  // parities before data
    EXPECT_EQ(Computed(**code, {lost}, survivors, stripe)[0], stripe[lost]) << "block " << lost;
  }
}

INSTANTIATE_TEST_SUITE_P(EachCode, GoldenParities, ::testing::ValuesIn(ReadAll()),
                         [](const ::testing::TestParamInfo<Golden>& golden) {
                           std::string name = golden.param.code;
                           for (char& c : name) c = std::isalnum(c) ? c : '_';
                           return name;
                         });

// An empty file would make no test at all.
TEST(GoldenParitiesFile, HasEveryFamily) {
  std::string names;
  for (const Golden& golden : ReadAll()) names += golden.code + " ";
  for (const char* family : {"rs(", "rs-vandermonde(", "rs-legacy(", "xor(", "lrc(", "rotated-rs(",
                             "qfs-rs(", "qfs-jerasure(", "hdfs:"}) {
    EXPECT_NE(names.find(family), std::string::npos) << family;
  }
}

}  // namespace
}  // namespace ecpipe::golden_parities_test
