// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/unique_fd.h"
#include "pipeline/block_reader.h"

namespace ecpipe {

// Reads a finalized replica of a DataNode; every chunk of which a byte is used is compared with its
// checksum. `data` and `meta` are its open files, regular ones.
//
// The DataNode may move, remove or append to the replica at any time. What is open stays readable,
// so a replica that is removed, or moves to another volume, is read to its end. One that has
// changed its length is no longer the block that was asked for: FAILED_PRECONDITION, here or as it
// is read. DATA_LOSS, here or as it is read, names the block (corrupt_block.h).
absl::StatusOr<std::unique_ptr<BlockReader>> OpenHdfsReplica(const std::string& block_id,
                                                             UniqueFd data, UniqueFd meta);

}  // namespace ecpipe
