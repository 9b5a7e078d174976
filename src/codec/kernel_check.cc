// SPDX-License-Identifier: Apache-2.0
#include "codec/kernel_check.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/bytes/crc32c.h"
#include "codec/gf256.h"
#include "codec/kernel.h"

namespace ecpipe {
namespace {

constexpr uint64_t kSeed = 20261123;
constexpr size_t kLongest = 300;    // beyond a kernel's widest step, with every kind of tail
constexpr size_t kRowsSampled = 7;  // one more than ISA-L's widest kernel takes at once
constexpr size_t kAlignment = 64;   // of the widest load
constexpr uint32_t kCrc32cPolynomial = 0x82f63b78;  // both reflected
constexpr uint32_t kCrc32Polynomial = 0xedb88320;

using Bytes = std::vector<uint8_t>;

// Random bytes at a chosen distance from an aligned address. Those behind the range that a kernel
// is given must stay as they are.
class Buffer {
 public:
  Buffer(size_t misalignment, std::mt19937_64* random) : start_(misalignment) {
    std::array<uint64_t, kStorageBytes / sizeof(uint64_t)> noise;
    for (uint64_t& word : noise) word = (*random)();
    std::memcpy(storage_, noise.data(), sizeof storage_);
  }
  uint8_t* data() { return storage_ + start_; }
  // The bytes and all that is behind them.
  std::span<const uint8_t> rest() const { return std::span(storage_).subspan(start_); }

 private:
  static constexpr size_t kStorageBytes = 512;
  static_assert(kStorageBytes >= kLongest + 2 * kAlignment);

  alignas(kAlignment) uint8_t storage_[kStorageBytes];
  size_t start_;
};

enum class Operation { kMultiply, kMultiplyAdd };

struct Sample {
  Operation operation;
  size_t bytes;
  std::vector<uint8_t> coefficients;
};

// What a row holds afterwards, by scalar arithmetic.
Bytes ExpectedRow(const Sample& sample, size_t row, std::span<const uint8_t> before,
                  const uint8_t* source) {
  Bytes expected(before.begin(), before.end());
  for (size_t i = 0; i < sample.bytes; ++i) {
    const uint8_t product = GfMultiply(sample.coefficients[row], source[i]);
    expected[i] = sample.operation == Operation::kMultiply ? product : expected[i] ^ product;
  }
  return expected;
}

bool KernelIsRight(const Sample& sample, std::mt19937_64* random) {
  Buffer source((*random)() % kAlignment, random);
  std::vector<Buffer> rows;
  std::vector<Bytes> expected;
  for (size_t row = 0; row < sample.coefficients.size(); ++row) {
    rows.emplace_back((*random)() % kAlignment, random);
    expected.push_back(ExpectedRow(sample, row, rows.back().rest(), source.data()));
  }
  std::vector<uint8_t*> pointers;
  for (Buffer& row : rows) pointers.push_back(row.data());
  const CoefficientColumn column(sample.coefficients);
  if (sample.operation == Operation::kMultiply) {
    column.Multiply(pointers, source.data(), sample.bytes);
  } else {
    column.MultiplyAdd(pointers, source.data(), sample.bytes);
  }
  for (size_t row = 0; row < rows.size(); ++row) {
    if (!std::ranges::equal(rows[row].rest(), expected[row])) return false;
  }
  return true;
}

std::vector<uint8_t> RandomCoefficients(size_t rows, std::mt19937_64* random) {
  std::vector<uint8_t> coefficients(rows);
  for (uint8_t& coefficient : coefficients) coefficient = static_cast<uint8_t>((*random)());
  return coefficients;
}

// The first sample for which the kernel is wrong.
std::optional<Sample> FirstWrongSample(std::mt19937_64* random) {
  for (const Operation operation : {Operation::kMultiply, Operation::kMultiplyAdd}) {
    for (size_t bytes = 0; bytes <= kLongest; ++bytes) {
      Sample sample{operation, bytes, RandomCoefficients(1 + bytes % kRowsSampled, random)};
      if (!KernelIsRight(sample, random)) return sample;
    }
    for (int coefficient = 0; coefficient < 256; ++coefficient) {
      Sample sample{operation, kAlignment + 1, {static_cast<uint8_t>(coefficient)}};
      if (!KernelIsRight(sample, random)) return sample;
    }
  }
  return std::nullopt;
}

// Bit by bit; `polynomial` is reflected.
uint32_t ExtendScalarCrc(uint32_t polynomial, uint32_t crc, uint8_t byte) {
  crc = ~crc ^ byte;
  for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? polynomial : 0);
  return ~crc;
}

bool ChecksumsAreRight(std::mt19937_64* random) {
  Buffer buffer((*random)() % kAlignment, random);
  uint32_t crc32c = 0;
  uint32_t crc32 = 0;
  for (size_t bytes = 0; bytes < kLongest; ++bytes) {
    const std::span<const uint8_t> prefix = buffer.rest().first(bytes);
    if (Crc32c(prefix) != crc32c || ExtendCrc32(0, prefix) != crc32) return false;
    crc32c = ExtendScalarCrc(kCrc32cPolynomial, crc32c, buffer.rest()[bytes]);
    crc32 = ExtendScalarCrc(kCrc32Polynomial, crc32, buffer.rest()[bytes]);
  }
  return true;
}

absl::Status Wrong(const std::string& what) {
  return absl::InternalError(
      "the library " + KernelLibrary() + " computes wrong " + what +
      " on this processor, so that repaired blocks would have wrong bytes: install another version "
      "of libisal2, or set LD_LIBRARY_PATH to one that works");
}

absl::Status RunCheck() {
  std::mt19937_64 random(kSeed);
  if (const auto sample = FirstWrongSample(&random)) {
    return Wrong("products of " + std::to_string(sample->bytes) + " bytes with " +
                 std::to_string(sample->coefficients.size()) + " coefficients");
  }
  if (!ChecksumsAreRight(&random)) return Wrong("checksums");
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckKernel() {
  static const absl::Status checked = RunCheck();
  return checked;
}

}  // namespace ecpipe
