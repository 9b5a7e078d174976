// SPDX-License-Identifier: Apache-2.0
#include "base/bytes/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>

namespace ecpipe {

uint32_t ExtendCrc32c(uint32_t crc_of_prefix, std::span<const uint8_t> bytes) {
  // ISA-L takes an int length and a pointer that it does not write through.
  constexpr size_t kLargestCall = size_t{1} << 30;
  uint32_t state = ~crc_of_prefix;
  while (!bytes.empty()) {
    const size_t step = std::min(bytes.size(), kLargestCall);
    state = crc32_iscsi(const_cast<unsigned char*>(bytes.data()), static_cast<int>(step), state);
    bytes = bytes.subspan(step);
  }
  return ~state;
}

uint32_t ExtendCrc32(uint32_t crc_of_prefix, std::span<const uint8_t> bytes) {
  return crc32_gzip_refl(crc_of_prefix, bytes.data(), bytes.size());
}

uint32_t Crc32c(std::span<const uint8_t> bytes) { return ExtendCrc32c(0, bytes); }

}  // namespace ecpipe
