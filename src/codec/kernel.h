// SPDX-License-Identifier: Apache-2.0
// The arithmetic of the data path: GF(2^8) multiply and multiply-add over whole buffers, by ISA-L.
// This and kernel.cc are the only place that knows ISA-L's erasure-code interface.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"

namespace ecpipe {

// A column of coefficients, one for each output row, expanded once into the lookup tables that the
// SIMD kernels use (32 bytes each). Immutable after construction; safe to share between threads.
class CoefficientColumn {
 public:
  CoefficientColumn() = default;
  explicit CoefficientColumn(std::span<const uint8_t> coefficients);

  size_t rows() const { return coefficients_.size(); }

  // rows[r][0..bytes) ^= coefficient[r] · source[0..bytes), for all r, reading the source once.
  // `rows` has rows() pointers; none overlaps the source or another. Any length and alignment.
  void MultiplyAdd(std::span<uint8_t* const> rows, const uint8_t* source, size_t bytes) const;

  // rows[r][0..bytes) = coefficient[r] · source[0..bytes). Same requirements.
  void Multiply(std::span<uint8_t* const> rows, const uint8_t* source, size_t bytes) const;

 private:
  // Calls that are too short for ISA-L use these. What ISA-L writes into a table is its own affair
  // and differs between its releases and between processors, so nothing is ever read out of one.
  // Few blocks of a stripe are lost at once, so these rarely take an allocation of their own.
  absl::InlinedVector<uint8_t, 16> coefficients_;
  // Aligned, because a kernel that reads tables in its innermost loop pays for those that lie
  // across two cache lines.
  struct alignas(32) Table {
    uint8_t bytes[32];
  };
  std::vector<Table> tables_;  // one a row
};

// target[0..bytes) ^= source[0..bytes). Any length and alignment; the two do not overlap.
void Xor(uint8_t* target, const uint8_t* source, size_t bytes);

// The file from which this process has loaded ISA-L, for messages.
std::string KernelLibrary();

}  // namespace ecpipe
