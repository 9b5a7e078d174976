// SPDX-License-Identifier: Apache-2.0
// Checks the block files of a manifest: `ecpipe verify`.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/progress_fn.h"
#include "requestor/files/block_files.h"
#include "requestor/files/manifest.h"

namespace ecpipe {

struct VerifiedBlock {
  std::string block_id;
  std::string node;
  BlockState state = BlockState::kMissing;
  std::string detail;  // why the state is not kOk
};

// Whether the parity blocks match the data blocks; they are computed anew, without the checksums of
// the manifest. kUnknown: a data block, or all parity blocks, could not be read.
enum class ParityState { kMatches, kDiffers, kUnknown };

// "matches", "differs", "unknown".
const char* ParityStateName(ParityState state);

struct VerifiedStripe {
  std::string stripe_id;
  std::vector<VerifiedBlock> blocks;  // n, in the order of their indices
  ParityState parity = ParityState::kUnknown;
};

struct VerifyReport {
  std::vector<VerifiedStripe> stripes;

  // All blocks are ok and all parity matches.
  bool ok() const;
};

// Reads each block of the manifest below `blocks_dir` once. The report says what is wrong with
// blocks; an error is returned only for a bad manifest. `progress` is told of the bytes of all
// blocks and may be null.
absl::StatusOr<VerifyReport> VerifyBlocks(const Manifest& manifest, const std::string& blocks_dir,
                                          const ProgressFn& progress = nullptr);

}  // namespace ecpipe
