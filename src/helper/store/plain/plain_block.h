// SPDX-License-Identifier: Apache-2.0
// Reads a block file of the plain-directory layout, checked where it has a checksum file.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "pipeline/block_reader.h"

namespace ecpipe {

// `block` is the open block file of `bytes` bytes; its checksum file, if there is one, is in the
// directory `root`. DATA_LOSS names the block (corrupt_block.h): here if the checksum file does not
// fit the block (of another block or length, a damaged header), later from the reader.
//
// The block is opened before its checksum file, and a writer renames them in the reverse order
// (block_checksums.h). So if a block is replaced meanwhile, it is read either with its own
// checksums, or as the old bytes with the new checksums, which differ only if the old bytes were
// wrong.
absl::StatusOr<std::unique_ptr<BlockReader>> OpenPlainBlock(int root, const std::string& block_id,
                                                            UniqueFd block, uint64_t bytes);

}  // namespace ecpipe
