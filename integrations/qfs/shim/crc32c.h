// SPDX-License-Identifier: Apache-2.0
// CRC32C (Castagnoli, RFC 3720 appendix B.4) without a library: ISA-L, which the rest of ECPipe
// takes it from, would be one more dependency of the chunkserver.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ecpipe_qfs {

// Crc32c("123456789") == 0xe3069283. By the processor's instruction where it has one. Thread-safe.
uint32_t Crc32c(const uint8_t* bytes, size_t count);

// The two ways, for tests. The second needs a processor with SSE 4.2: `Crc32cInstruction()` says.
uint32_t Crc32cByTable(const uint8_t* bytes, size_t count);
bool Crc32cInstruction();
uint32_t Crc32cByInstruction(const uint8_t* bytes, size_t count);

}  // namespace ecpipe_qfs
