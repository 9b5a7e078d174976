// SPDX-License-Identifier: Apache-2.0
#include "codec/qfs_codes.h"

#include <array>
#include <string>

#include "codec/reed_solomon.h"

namespace ecpipe {
namespace {

constexpr int kMostData = 64;
constexpr int kParities = 3;

absl::Status Bad(const std::string& family, int k, int m, const std::string& needs) {
  return absl::InvalidArgumentError(family + "(" + std::to_string(k) + "," + std::to_string(m) +
                                    ") is not a code of QFS: it needs " + needs);
}

}  // namespace

absl::StatusOr<Matrix> QfsRsGenerator(int k, int m) {
  if (k < 1 || k > kMostData || m != kParities) {
    return Bad("qfs-rs", k, m, "1 to 64 data chunks and 3 recovery chunks");
  }
  return VandermondeGenerator(k + m, k);
}

absl::StatusOr<Matrix> QfsJerasureGenerator(int k, int m) {
  constexpr std::array<std::array<uint8_t, 6>, kParities> kRows = {{
      {0x01, 0x01, 0x01, 0x01, 0x01, 0x01},
      {0x01, 0xe1, 0x97, 0xac, 0x52, 0xc8},
      {0x01, 0x7b, 0xf5, 0x8f, 0xf4, 0x8e},
  }};
  if (k != 6 || m != kParities) return Bad("qfs-jerasure", k, m, "6 data and 3 recovery chunks");
  Matrix generator(k + m, k);
  for (int j = 0; j < k; ++j) {
    generator.at(j, j) = 1;
    for (int p = 0; p < m; ++p) {
      generator.at(k + p, j) = kRows[static_cast<size_t>(p)][static_cast<size_t>(j)];
    }
  }
  return generator;
}

}  // namespace ecpipe
