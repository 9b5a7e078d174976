// SPDX-License-Identifier: Apache-2.0
// Reads a block file of the plain-directory layout, checked where it has a checksum file.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/unique_fd.h"
#include "pipeline/block_reader.h"

namespace ecpipe {

// `block` is the open block file, `bytes` long; a checksum file is looked for in the directory
// `root`. The reader's DATA_LOSS errors name the block (corrupt_block.h), and so does the one that
// this returns when the checksum file does not fit the block: another length, a damaged header.
//
// The block is opened before its checksum file, and a writer puts them into place the other way
// round (block_checksums.h). So a block that is replaced meanwhile is read either with its own
// checksums, or the old bytes with the new ones, which differ only if the old bytes were wrong.
absl::StatusOr<std::unique_ptr<BlockReader>> OpenPlainBlock(int root, const std::string& block_id,
                                                            UniqueFd block, uint64_t bytes);

}  // namespace ecpipe
