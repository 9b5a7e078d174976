// SPDX-License-Identifier: Apache-2.0
// Integers in the formats of our files and streams, which are little-endian everywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ecpipe {

// Requires at + sizeof(Integer) <= out.size().
template <typename Integer>
void PutLittleEndian(std::span<uint8_t> out, size_t at, Integer value) {
  for (size_t i = 0; i < sizeof(Integer); ++i) out[at + i] = static_cast<uint8_t>(value >> (8 * i));
}

// Requires at + sizeof(Integer) <= bytes.size().
template <typename Integer>
Integer GetLittleEndian(std::span<const uint8_t> bytes, size_t at) {
  Integer value = 0;
  for (size_t i = 0; i < sizeof(Integer); ++i) {
    value = static_cast<Integer>(value | Integer{bytes[at + i]} << (8 * i));
  }
  return value;
}

}  // namespace ecpipe
