// SPDX-License-Identifier: Apache-2.0
// Finds and opens the block files of a manifest below one directory.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "requestor/files/manifest.h"

namespace ecpipe {

enum class BlockState { kOk, kMissing, kWrongLength, kWrongChecksum, kUnreadable };

// "ok", "missing", "wrong length", "wrong checksum", "unreadable".
const char* BlockStateName(BlockState state);

// The path of a block: <directory>/<node>/<id>, as a cluster on one machine has it, else
// <directory>/<id>. NOT_FOUND when there is neither; INVALID_ARGUMENT when node or id is no file
// name.
absl::StatusOr<std::string> FindBlock(const std::string& directory, const std::string& node,
                                      const std::string& block_id);

struct BlockFile {
  BlockState state = BlockState::kMissing;
  std::string detail;  // why the state is not kOk, for people
  UniqueFd fd;         // valid only in kOk

  bool ok() const { return state == BlockState::kOk; }
  // Gives the block up. Requires state != kOk.
  void Reject(BlockState why, std::string text);
};

// Opens a block and compares its length with `block_bytes`. Does not read it.
BlockFile OpenBlock(const std::string& directory, const ManifestBlock& block,
                    uint64_t block_bytes);

}  // namespace ecpipe
