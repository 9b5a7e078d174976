// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "model/systems/qfs_chunk.h"
#include "pipeline/block_reader.h"

namespace ecpipe {

// Opens a stable chunk of a chunkserver, whose file is `file`. Its reader compares every 64 KiB of
// which a byte is used with its checksum. Its length is that of the header: a recovered file is
// longer. It reads data only behind the header.
//
// The chunkserver may move, remove or rewrite the chunk at any time. An open file stays readable,
// so one that is removed or moved can be read to its end. FAILED_PRECONDITION: the chunk has been
// changed meanwhile, and is no longer the wanted block. DATA_LOSS names the corrupt block
// (corrupt_block.h). Both errors can come here, and later from the reader.
absl::StatusOr<std::unique_ptr<BlockReader>> OpenQfsChunk(const QfsChunkId& chunk, UniqueFd file);

}  // namespace ecpipe
