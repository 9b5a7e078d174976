// SPDX-License-Identifier: Apache-2.0
#include "unit/codec/scalar_oracle.h"

#include <utility>

namespace ecpipe::oracle {

uint8_t Multiply(uint8_t a, uint8_t b) {
  unsigned product = 0;
  for (int bit = 0; bit < 8; ++bit) {
    if ((b >> bit) & 1) product ^= static_cast<unsigned>(a) << bit;
  }
  for (int bit = 14; bit >= 8; --bit) {
    if ((product >> bit) & 1) product ^= 0x11du << (bit - 8);
  }
  return static_cast<uint8_t>(product);
}

uint8_t Inverse(uint8_t a) {
  unsigned candidate = 1;
  while (Multiply(a, static_cast<uint8_t>(candidate)) != 1) ++candidate;
  return static_cast<uint8_t>(candidate);
}

uint8_t Power(uint8_t base, unsigned exponent) {
  uint8_t power = 1;
  for (unsigned i = 0; i < exponent; ++i) power = Multiply(power, base);
  return power;
}

namespace {

Rows IdentityRows(int k) {
  Rows rows(k, std::vector<uint8_t>(k, 0));
  for (int i = 0; i < k; ++i) rows[i][i] = 1;
  return rows;
}

void AddScaled(Block& target, const Block& source, uint8_t factor) {
  for (size_t i = 0; i < target.size(); ++i) target[i] ^= Multiply(source[i], factor);
}

void Scale(Block& block, uint8_t factor) {
  for (uint8_t& byte : block) byte = Multiply(byte, factor);
}

}  // namespace

Rows CauchyRows(int n, int k) {
  Rows rows = IdentityRows(k);
  for (int i = k; i < n; ++i) {
    std::vector<uint8_t> row;
    for (int j = 0; j < k; ++j) row.push_back(Inverse(static_cast<uint8_t>(i ^ j)));
    rows.push_back(row);
  }
  return rows;
}

Rows VandermondeRows(int n, int k) {
  Rows rows = IdentityRows(k);
  for (int p = 0; p < n - k; ++p) {
    std::vector<uint8_t> row;
    for (int j = 0; j < k; ++j) row.push_back(Power(Power(2, p), j));
    rows.push_back(row);
  }
  return rows;
}

Block RandomBlock(size_t bytes, std::mt19937_64& random) {
  Block block(bytes);
  for (uint8_t& byte : block) byte = static_cast<uint8_t>(random());
  return block;
}

std::vector<Block> RandomData(int k, size_t bytes, std::mt19937_64& random) {
  std::vector<Block> data;
  for (int j = 0; j < k; ++j) data.push_back(RandomBlock(bytes, random));
  return data;
}

std::vector<Block> Encode(const Rows& rows, const std::vector<Block>& data) {
  std::vector<Block> blocks;
  for (const std::vector<uint8_t>& row : rows) {
    Block block(data[0].size(), 0);
    for (size_t j = 0; j < data.size(); ++j) AddScaled(block, data[j], row[j]);
    blocks.push_back(block);
  }
  return blocks;
}

std::optional<std::vector<Block>> Solve(Rows rows, std::vector<Block> blocks) {
  if (rows.empty()) return std::nullopt;
  const size_t k = rows[0].size();
  for (size_t column = 0; column < k; ++column) {
    size_t pivot = column;
    while (pivot < rows.size() && rows[pivot][column] == 0) ++pivot;
    if (pivot >= rows.size()) return std::nullopt;
    std::swap(rows[pivot], rows[column]);
    std::swap(blocks[pivot], blocks[column]);
    const uint8_t inverse = Inverse(rows[column][column]);
    Scale(rows[column], inverse);
    Scale(blocks[column], inverse);
    for (size_t other = 0; other < rows.size(); ++other) {
      const uint8_t factor = rows[other][column];
      if (other == column || factor == 0) continue;
      AddScaled(rows[other], rows[column], factor);
      AddScaled(blocks[other], blocks[column], factor);
    }
  }
  blocks.resize(k);
  return blocks;
}

bool IsSingular(const Rows& matrix) {
  return !Solve(matrix, std::vector<Block>(matrix.size())).has_value();
}

}  // namespace ecpipe::oracle
