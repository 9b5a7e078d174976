// SPDX-License-Identifier: Apache-2.0
// A fuzzer's bytes as a row of values, for targets whose input has several parts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

namespace ecpipe {

class FuzzInput {
 public:
  FuzzInput(const uint8_t* data, size_t size) : rest_(data, size) {}

  bool empty() const { return rest_.empty(); }

  // Little-endian; bytes that are not there count as 0.
  template <typename Integer>
  Integer Take() {
    uint64_t value = 0;
    const std::span<const uint8_t> bytes = Bytes(sizeof(Integer));
    for (size_t i = 0; i < bytes.size(); ++i) value |= uint64_t{bytes[i]} << (8 * i);
    return static_cast<Integer>(value);
  }

  // At most `most` bytes: as many as there are.
  std::span<const uint8_t> Bytes(size_t most) {
    const std::span<const uint8_t> taken = rest_.first(std::min(most, rest_.size()));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }

  // A length in 2 bytes, then as many bytes.
  std::string Text() {
    const std::span<const uint8_t> bytes = Bytes(Take<uint16_t>());
    return {bytes.begin(), bytes.end()};
  }

  std::string Rest() {
    const std::span<const uint8_t> bytes = Bytes(rest_.size());
    return {bytes.begin(), bytes.end()};
  }

 private:
  std::span<const uint8_t> rest_;
};

}  // namespace ecpipe
