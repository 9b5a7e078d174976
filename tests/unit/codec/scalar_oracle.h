// SPDX-License-Identifier: Apache-2.0
// Erasure coding once more, as slow and plain as it gets, for tests to compare with. It shares no
// code with src/codec: no tables, no ISA-L, no Matrix.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <vector>

namespace ecpipe::oracle {

using Block = std::vector<uint8_t>;
using Rows = std::vector<std::vector<uint8_t>>;

// In GF(2^8) with polynomial 0x11d: shift and add, bit by bit.
uint8_t Multiply(uint8_t a, uint8_t b);
// By trying all. Requires a != 0.
uint8_t Inverse(uint8_t a);
uint8_t Power(uint8_t base, unsigned exponent);

// The n rows of the systematic generators.
Rows CauchyRows(int n, int k);
Rows VandermondeRows(int n, int k);

Block RandomBlock(size_t bytes, std::mt19937_64& random);
std::vector<Block> RandomData(int k, size_t bytes, std::mt19937_64& random);

// Block i = Σ_j rows[i][j] · data[j], for each row.
std::vector<Block> Encode(const Rows& rows, const std::vector<Block>& data);

// The data blocks, from blocks that are encoded with `rows`; nothing if they do not determine them.
std::optional<std::vector<Block>> Solve(Rows rows, std::vector<Block> blocks);

// Whether a square matrix is singular.
bool IsSingular(const Rows& matrix);

}  // namespace ecpipe::oracle
