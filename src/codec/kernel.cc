// SPDX-License-Identifier: Apache-2.0
#include "codec/kernel.h"

#include <dlfcn.h>
#include <isa-l/erasure_code.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "codec/gf256.h"

namespace ecpipe {
namespace {

// ISA-L takes an int length.
constexpr size_t kLargestCall = size_t{1} << 30;
// Its SIMD kernels handle any length from here on; shorter ones go byte by byte, here.
constexpr size_t kShortestCall = 64;
// A stripe has at most 255 blocks, so no more can be lost at once.
constexpr size_t kMostRows = 255;

void MultiplyAddShort(uint8_t* row, uint8_t coefficient, const uint8_t* source, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) row[i] ^= GfMultiply(coefficient, source[i]);
}

}  // namespace

CoefficientColumn::CoefficientColumn(std::span<const uint8_t> coefficients)
    : coefficients_(coefficients.begin(), coefficients.end()), tables_(coefficients.size()) {
  ECPIPE_CHECK(coefficients_.size() <= kMostRows);
  if (coefficients_.empty()) return;
  ec_init_tables(1, static_cast<int>(coefficients_.size()), coefficients_.data(),
                 reinterpret_cast<uint8_t*>(tables_.data()));
}

void CoefficientColumn::MultiplyAdd(std::span<uint8_t* const> rows, const uint8_t* source,
                                    size_t bytes) const {
  ECPIPE_CHECK(rows.size() == coefficients_.size());
  if (bytes < kShortestCall) {
    for (size_t r = 0; r < rows.size(); ++r) {
      MultiplyAddShort(rows[r], coefficients_[r], source, bytes);
    }
    return;
  }
  // ISA-L only reads tables and source, though its signatures do not say so.
  auto* tables = const_cast<uint8_t*>(reinterpret_cast<const uint8_t*>(tables_.data()));
  for (size_t at = 0; at < bytes; at += kLargestCall) {
    const size_t rest = bytes - at;
    // The last call must not be a short one: it takes all of up to 1 GiB + 63 bytes.
    const size_t step = rest < kLargestCall + kShortestCall ? rest : kLargestCall;
    std::array<uint8_t*, kMostRows> targets;
    for (size_t r = 0; r < rows.size(); ++r) targets[r] = rows[r] + at;
    ec_encode_data_update(static_cast<int>(step), 1, static_cast<int>(rows.size()), 0, tables,
                          const_cast<uint8_t*>(source) + at, targets.data());
    if (step == rest) break;
  }
}

void CoefficientColumn::Multiply(std::span<uint8_t* const> rows, const uint8_t* source,
                                 size_t bytes) const {
  ECPIPE_CHECK(rows.size() == coefficients_.size());
  if (bytes < kShortestCall || bytes > kLargestCall) {
    for (uint8_t* row : rows) std::fill_n(row, bytes, uint8_t{0});
    MultiplyAdd(rows, source, bytes);
    return;
  }
  std::array<uint8_t*, kMostRows> targets;
  std::copy(rows.begin(), rows.end(), targets.begin());
  auto* one_source = const_cast<uint8_t*>(source);
  ec_encode_data(static_cast<int>(bytes), 1, static_cast<int>(rows.size()),
                 const_cast<uint8_t*>(reinterpret_cast<const uint8_t*>(tables_.data())),
                 &one_source, targets.data());
}

void Xor(uint8_t* __restrict target, const uint8_t* __restrict source, size_t bytes) {
  // At -O2 gcc 12 does not vectorise a loop of unknown length by itself. 16 bytes are what every
  // x86-64 and arm64 has; memcpy stands for unaligned loads and stores.
  using Vector [[gnu::vector_size(16)]] = uint64_t;
  size_t i = 0;
  for (; i + sizeof(Vector) <= bytes; i += sizeof(Vector)) {
    Vector a;
    Vector b;
    std::memcpy(&a, target + i, sizeof a);
    std::memcpy(&b, source + i, sizeof b);
    a ^= b;
    std::memcpy(target + i, &a, sizeof a);
  }
  for (; i < bytes; ++i) target[i] ^= source[i];
}

std::string KernelLibrary() {
  Dl_info info{};
  const bool known = ::dladdr(reinterpret_cast<void*>(&ec_encode_data_update), &info) != 0;
  return known && info.dli_fname != nullptr ? info.dli_fname : "libisal";
}

}  // namespace ecpipe
