// SPDX-License-Identifier: Apache-2.0
// The plain-directory layout: block X is the regular file X directly under one of the roots. Beside
// it there may be a checksum file (block_checksums.h); what is read of X is then checked. Whoever
// replaces the bytes of X by other means replaces or removes that file first.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "helper/block_store.h"

namespace ecpipe {

// Whether blocks that are stored get a checksum file. Those that have one keep it, and it is always
// used.
enum class StoredChecksums { kWrite, kOmit };

// Opens the roots, and removes the half-written blocks that killed helpers have left there; an
// error names the root that is not a readable directory. Symbolic links are not followed below a
// root, so nothing outside the roots can be read.
absl::StatusOr<std::unique_ptr<BlockStore>> OpenPlainStore(
    const std::vector<std::string>& roots, StoredChecksums checksums = StoredChecksums::kWrite);

}  // namespace ecpipe
