// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ecpipe::sim {

// SplitMix64: the same numbers from the same seed on every machine and library.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15 + 1) {}

  uint64_t Next() {
    uint64_t value = state_ += 0x9e3779b97f4a7c15;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
    value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
    return value ^ (value >> 31);
  }
  // From 0 to below - 1.
  uint64_t Below(uint64_t below) { return Next() % below; }
  uint64_t Between(uint64_t least, uint64_t most) { return least + Below(most - least + 1); }
  double Fraction() { return static_cast<double>(Next() >> 11) / static_cast<double>(1ull << 53); }
  bool Chance(double probability) { return Fraction() < probability; }
  template <typename T>
  const T& Pick(const std::vector<T>& from) {
    return from[Below(from.size())];
  }
  void Fill(std::span<uint8_t> out) {
    for (uint8_t& byte : out) byte = static_cast<uint8_t>(Next());
  }

 private:
  uint64_t state_;
};

}  // namespace ecpipe::sim
