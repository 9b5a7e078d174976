// SPDX-License-Identifier: Apache-2.0
#include "shim/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace ecpipe_qfs {
namespace {

constexpr uint32_t kReversedPolynomial = 0x82f63b78;
constexpr size_t kTables = 8;
using Tables = std::array<std::array<uint32_t, 256>, kTables>;

// Table t has the checksum of a byte that t zero bytes follow, so that eight bytes are eight
// independent look-ups.
constexpr Tables MakeTables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kReversedPolynomial : 0);
    tables[0][byte] = crc;
  }
  for (size_t t = 1; t < kTables; ++t) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = tables[t - 1][byte];
      tables[t][byte] = (before >> 8) ^ tables[0][before & 0xff];
    }
  }
  return tables;
}

constexpr Tables kTable = MakeTables();

}  // namespace

uint32_t Crc32cByTable(const uint8_t* bytes, size_t count) {
  uint32_t crc = ~uint32_t{0};
  for (; count >= kTables; bytes += kTables, count -= kTables) {
    uint32_t next = 0;
    for (size_t i = 0; i < 4; ++i) next ^= kTable[7 - i][((crc >> (8 * i)) & 0xff) ^ bytes[i]];
    for (size_t i = 4; i < kTables; ++i) next ^= kTable[7 - i][bytes[i]];
    crc = next;
  }
  for (; count > 0; ++bytes, --count) crc = (crc >> 8) ^ kTable[0][(crc & 0xff) ^ *bytes];
  return ~crc;
}

#if defined(__x86_64__)

bool Crc32cInstruction() { return __builtin_cpu_supports("sse4.2") != 0; }

__attribute__((target("sse4.2"))) uint32_t Crc32cByInstruction(const uint8_t* bytes, size_t count) {
  uint64_t crc = ~uint32_t{0};
  for (; count >= sizeof(uint64_t); bytes += sizeof(uint64_t), count -= sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes, sizeof word);
    crc = _mm_crc32_u64(crc, word);
  }
  for (; count > 0; ++bytes, --count) crc = _mm_crc32_u8(static_cast<uint32_t>(crc), *bytes);
  return ~static_cast<uint32_t>(crc);
}

#else

bool Crc32cInstruction() { return false; }
uint32_t Crc32cByInstruction(const uint8_t* bytes, size_t count) {
  return Crc32cByTable(bytes, count);
}

#endif

uint32_t Crc32c(const uint8_t* bytes, size_t count) {
  static const bool instruction = Crc32cInstruction();
  return instruction ? Crc32cByInstruction(bytes, count) : Crc32cByTable(bytes, count);
}

}  // namespace ecpipe_qfs
