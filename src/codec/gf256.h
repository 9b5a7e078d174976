// SPDX-License-Identifier: Apache-2.0
// Scalar arithmetic in GF(2^8), polynomial 0x11d (x^8 + x^4 + x^3 + x^2 + 1), generator 2: the
// field of ISA-L, HDFS-3 and QFS. For matrices; whole buffers go through kernel.h.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/check.h"

namespace ecpipe {

namespace gf256_internal {

struct Tables {
  std::array<uint8_t, 512> exp{};  // 2^i, twice over, so that sums of logarithms need no modulo
  std::array<uint8_t, 256> log{};
};

constexpr Tables MakeTables() {
  Tables tables;
  unsigned value = 1;
  for (unsigned i = 0; i < 255; ++i) {
    tables.exp[i] = tables.exp[i + 255] = static_cast<uint8_t>(value);
    tables.log[value] = static_cast<uint8_t>(i);
    value <<= 1;
    if (value & 0x100) value ^= 0x11d;
  }
  return tables;
}

inline constexpr Tables kTables = MakeTables();

}  // namespace gf256_internal

// Addition and subtraction are both XOR.
constexpr uint8_t GfMultiply(uint8_t a, uint8_t b) {
  if (a == 0 || b == 0) return 0;
  const auto& tables = gf256_internal::kTables;
  return tables.exp[static_cast<size_t>(tables.log[a]) + tables.log[b]];
}

// Requires a != 0.
inline uint8_t GfInverse(uint8_t a) {
  ECPIPE_CHECK(a != 0);
  const auto& tables = gf256_internal::kTables;
  return tables.exp[255u - tables.log[a]];
}

}  // namespace ecpipe
