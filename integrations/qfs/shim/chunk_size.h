// SPDX-License-Identifier: Apache-2.0
// How long a chunk of a striped QFS file is, by its place in the file.
#pragma once

#include <cstdint>

#include "shim/ecpipe_qfs.h"
#include "shim/failure.h"

namespace ecpipe_qfs {

inline constexpr int64_t kMaxChunkBytes = int64_t{64} << 20;  // fixed when QFS is compiled
inline constexpr int kMaxDataStripes = 64;
inline constexpr int kRecoveryStripes = 3;

// INVALID_ARGUMENT: no chunk that QFS can have, or not one that ECPipe can repair.
Failure CheckChunk(const ecpipe_qfs_chunk& chunk);

// The chunk's length, for a chunk that CheckChunk() takes. 0: no such chunk exists.
int64_t ChunkBytes(const ecpipe_qfs_chunk& chunk);

// The length of the range that the chunk names. FAILED_PRECONDITION: it is empty, since the chunk
// has no bytes. INVALID_ARGUMENT: as above, or the range is not within the chunk.
Failure RangeBytes(const ecpipe_qfs_chunk& chunk, int64_t* bytes);

}  // namespace ecpipe_qfs
