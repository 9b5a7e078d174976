// SPDX-License-Identifier: Apache-2.0
// Cuts a file into erasure-coded blocks, puts it together again, and checks the blocks: what
// `ecpipe encode`, `decode` and `verify` do. All of it on local directories; for one thread each.
//
// A block of the manifest is the file <directory>/<node>/<block id>, or <directory>/<block id> when
// it has no node. Readers look in the second place too when there is nothing in the first, so that
// blocks gathered from several nodes into one directory serve as well.
//
// Memory: up to about 100 MiB for the widest code, 5 MiB for (14,10); independent of block and file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "requestor/manifest.h"

namespace ecpipe {

struct EncodeOptions {
  std::string input;
  std::string output_directory;    // created when missing
  std::string name;                // begins every block id
  std::string code;                // a name that CreateErasureCode takes
  uint64_t block_bytes = 0;        // 1 to kMaxBlockBytes
  std::vector<std::string> nodes;  // none, or at least n: block i of stripe j is on (i + j) mod size
};

// <output directory>/<name>.manifest.json
std::string ManifestPath(const EncodeOptions& options);

// Writes the blocks of `input`, the last stripe filled up with zeros, and at the end the manifest,
// which it also returns. Each block appears whole or not at all, and those of a stripe only when
// the whole stripe is written. Blocks that a failed run left behind are replaced by the next.
//
// INVALID_ARGUMENT: a bad option, or an empty file. ALREADY_EXISTS: there is a manifest of that
// name, so its blocks are in use; nothing was written. FAILED_PRECONDITION: the input changed while
// it was read. Otherwise errors of the file system, such as NOT_FOUND and RESOURCE_EXHAUSTED.
// After an error there is no manifest, and what blocks there are may be deleted; with UNKNOWN, see
// AtomicFile::Commit().
absl::StatusOr<Manifest> EncodeFile(const EncodeOptions& options);

// Writes the file of `manifest` (as LoadManifest returns it) to `output_path`, replacing what is
// there at once or not at all. Blocks that are absent, unreadable or not what the manifest says are
// rebuilt from the others.
//
// NOT_FOUND: no such directory of blocks. FAILED_PRECONDITION: too few good blocks; the message
// names the stripe and each bad block. DATA_LOSS: the blocks are good, but the file is not the one
// that was encoded, so the manifest is wrong. Otherwise errors of the file system.
absl::Status DecodeFile(const Manifest& manifest, const std::string& blocks_directory,
                        const std::string& output_path);

enum class BlockState { kOk, kMissing, kUnreadable, kWrongLength, kWrongChecksum };
// kNotChecked: not all blocks of the stripe are there in full length.
enum class ParityState { kNotChecked, kMatches, kDiffers };

// "ok", "missing", "unreadable", "wrong length", "wrong checksum"
const char* BlockStateName(BlockState state);
// "not checked", "matches", "differs"
const char* ParityStateName(ParityState state);

struct BlockCheck {
  std::string block_id;
  std::string node;
  BlockState state = BlockState::kMissing;
  std::string detail;  // for people: the lengths, or why it cannot be read; often empty
};

struct StripeCheck {
  std::string stripe_id;
  ParityState parity = ParityState::kNotChecked;
};

struct VerifyReport {
  std::vector<BlockCheck> blocks;    // in the manifest's order
  std::vector<StripeCheck> stripes;  // in the manifest's order

  // Every block is as the manifest says and every parity block follows from the data blocks.
  bool ok() const;
};

// Reads every block once. That blocks are bad is in the report, not in the status. NOT_FOUND: no
// such directory of blocks.
absl::StatusOr<VerifyReport> VerifyBlocks(const Manifest& manifest,
                                          const std::string& blocks_directory);

}  // namespace ecpipe
