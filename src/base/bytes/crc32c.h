// SPDX-License-Identifier: Apache-2.0
// CRC32C (Castagnoli, RFC 3720 appendix B.4), and CRC32 (that of gzip, RFC 1952), computed by
// ISA-L.
#pragma once

#include <cstdint>
#include <span>

namespace ecpipe {

// The checksum of `bytes`; Crc32c("123456789") == 0xe3069283. Thread-safe.
uint32_t Crc32c(std::span<const uint8_t> bytes);

// The checksum of A followed by B, given Crc32c(A) and the bytes of B.
uint32_t ExtendCrc32c(uint32_t crc_of_prefix, std::span<const uint8_t> bytes);

// The same of CRC32, which is 0 of nothing; of "123456789" it is 0xcbf43926.
uint32_t ExtendCrc32(uint32_t crc_of_prefix, std::span<const uint8_t> bytes);

}  // namespace ecpipe
