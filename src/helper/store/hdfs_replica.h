// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "pipeline/block_reader.h"

namespace ecpipe {

// Opens a finalized replica of a DataNode. Its reader compares every chunk of which a byte is used
// with its checksum. `data` and `meta` are the open files, which must be regular files.
//
// The DataNode may move, remove or append to the replica at any time. Open files stay readable, so
// a replica that is removed or moved to another volume can be read to its end. FAILED_PRECONDITION:
// the replica has changed its length and is no longer the wanted block. DATA_LOSS names the corrupt
// block (corrupt_block.h). Both errors can come here, and later from the reader.
absl::StatusOr<std::unique_ptr<BlockReader>> OpenHdfsReplica(const std::string& block_id,
                                                             UniqueFd data, UniqueFd meta);

}  // namespace ecpipe
