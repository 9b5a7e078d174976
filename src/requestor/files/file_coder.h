// SPDX-License-Identifier: Apache-2.0
// Encodes a file into blocks, and decodes it again. Memory is bounded (some 64 MiB), whatever the
// sizes of file and blocks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/progress_fn.h"
#include "requestor/files/manifest.h"

namespace ecpipe {

// Whether each block gets a checksum file (model/block_checksums.h), by which helpers check what
// they read of it.
enum class ChecksumFiles { kWrite, kOmit };

struct EncodeOptions {
  std::string input_path;
  std::string output_dir;  // created when it is missing; its parent must exist
  std::string code;        // a name that CreateErasureCode takes
  uint64_t block_bytes = 0;
  std::string name;  // of the file in the manifest; block ids begin with it
  // Empty, or at least n different node ids.
  std::vector<std::string> nodes;
  ChecksumFiles checksum_files = ChecksumFiles::kWrite;
  ProgressFn progress = nullptr;  // of the whole work, as bytes of the file; may be null
};

// Stripe s takes the next k · block_bytes of the file, data block by data block; the last one is
// filled up with zeros. Its block i has the id <name>-s00000-b00 (s and i) and is written to
// <output_dir>/<node>/<id> with node = nodes[(i + s) % nodes.size()], or to <output_dir>/<id> when
// there are no nodes; the checksum file lies beside it. At the end comes
// <output_dir>/<name>.manifest.json, which is also returned.
//
// All or nothing: on an error no file of this call remains. A block file is never replaced;
// a checksum file that was left over is, or is removed.
// INVALID_ARGUMENT: an option is wrong, or the input has more bytes than its size says. NOT_FOUND:
// no such input. ALREADY_EXISTS: so does a block file. ABORTED: the input changed meanwhile.
// RESOURCE_EXHAUSTED: the disk is full.
absl::StatusOr<Manifest> EncodeFile(const EncodeOptions& options);

// The manifest that EncodeFile would write, without checksums. Reads no byte of the input and
// writes nothing. The same errors, but for those of reading and writing.
absl::StatusOr<Manifest> PlanEncoding(const EncodeOptions& options);

// Whether blocks are compared with the manifest before use. The file as a whole always is.
enum class BlockChecksums { kVerify, kTrust };

struct DecodeOptions {
  std::string blocks_dir;  // as FindBlock (block_files.h) takes it
  std::string output_path;
  BlockChecksums checksums = BlockChecksums::kVerify;
  ProgressFn progress = nullptr;  // as in EncodeOptions
};

// Writes the manifest's file from its data blocks, rebuilding those that are missing or damaged
// from the others. The output appears complete or not at all; a file of that name is replaced.
//
// FAILED_PRECONDITION: a stripe has too few good blocks; the message says what is wrong with which.
// DATA_LOSS: the result is not the file that was encoded.
absl::Status DecodeFile(const Manifest& manifest, const DecodeOptions& options);

}  // namespace ecpipe
