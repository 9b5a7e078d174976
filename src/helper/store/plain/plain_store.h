// SPDX-License-Identifier: Apache-2.0
// The plain-directory layout: block X is the regular file X directly under one of the roots. If a
// checksum file (block_checksums.h) is beside it, the bytes read of X are checked. A program that
// changes the bytes of X by other means must replace or remove the checksum file first.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "helper/store/block_store.h"

namespace ecpipe {

// Whether blocks that are stored get a checksum file. Checksum files that exist are always used.
enum class StoredChecksums { kWrite, kOmit };

// Opens the roots, and removes the half-written blocks that killed helpers have left there.
// Symbolic links below a root are not followed, so nothing outside the roots can be read.
//
// A root that fails or hangs, now or later, costs only its own blocks: it is looked in beside the
// others, for RootCalls::kPatience at most, and TakeInventory() names it. New blocks go to other
// roots meanwhile. One that cannot be opened now, or whose disk is exchanged, is opened by the
// first call that can (plain_root.h), also if that is so of all of them. Where none can, one that
// hangs is waited for longer (RootCalls::AwaitFirst). If several roots have a block, the one that
// was written last counts. A block that is begun has its room on the disk.
//
// INVALID_ARGUMENT: a path leads to something else than a directory, which is a mistake in the
// configuration and mends itself never.
absl::StatusOr<std::unique_ptr<BlockStore>> OpenPlainStore(
    const std::vector<std::string>& roots, StoredChecksums checksums = StoredChecksums::kWrite);

}  // namespace ecpipe
