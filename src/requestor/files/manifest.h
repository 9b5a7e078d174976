// SPDX-License-Identifier: Apache-2.0
// The manifest of an encoded file: which blocks it was cut into, where they were put, and what is
// in them. `ecpipe encode` writes it; `decode`, `verify` and `catalog load` read it. JSON:
//
//   {"format": "ecpipe-manifest-1", "name": "photo", "file_bytes": 300, "file_sha256": "9f86...",
//    "code": "rs-cauchy(3,2)", "block_bytes": 200,
//    "stripes": [{"stripe_id": "photo-s00000",
//                 "blocks": [{"block_id": "photo-s00000-b00", "node": "node-1",
//                             "sha256": "2c62..."}, ... n of them ...]}]}
//
// The data blocks of the stripes, one after the other, are the file followed by zeros.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ecpipe {

// Some 25 TB in blocks of 64 MiB. Reading a manifest takes about 1 KiB of memory a block, and a
// file that somebody else wrote must not take more than this many.
inline constexpr size_t kMaxManifestBlocks = 400'000;
// Enough for that many blocks with the longest ids.
inline constexpr uint64_t kMaxManifestBytes = uint64_t{256} << 20;

struct ManifestBlock {
  std::string block_id;
  std::string node;    // node id, or "": not placed on a node
  std::string sha256;  // of the whole block, 64 lower-case hexadecimal digits

  friend bool operator==(const ManifestBlock&, const ManifestBlock&) = default;
};

struct ManifestStripe {
  std::string stripe_id;
  std::vector<ManifestBlock> blocks;  // n; the position is the block's index in the code

  friend bool operator==(const ManifestStripe&, const ManifestStripe&) = default;
};

struct Manifest {
  std::string name;
  uint64_t file_bytes = 0;
  std::string file_sha256;
  std::string code;  // a name that CreateErasureCode takes
  uint64_t block_bytes = 0;
  std::vector<ManifestStripe> stripes;

  friend bool operator==(const Manifest&, const Manifest&) = default;
};

// Reads a manifest from its text; `source` names it in messages, usually a path. Strict:
// INVALID_ARGUMENT with `source` and the JSON pointer or line for anything but what the head of
// this file shows, such as an unknown key, a key twice, a wrong type or count, an id that is no
// file name or comes twice, an unknown code, or a file length that the stripes do not fit.
absl::StatusOr<Manifest> ParseManifest(const std::string& text, const std::string& source);

// INVALID_ARGUMENT unless ParseManifest could have returned this manifest. All that take a Manifest
// begin with it, so one that was put together by hand is as safe as one that was read.
[[nodiscard]] absl::Status ValidateManifest(const Manifest& manifest);

// The text that ParseManifest reads.
std::string ManifestText(const Manifest& manifest);

// The name under which `encode` writes the manifest of that name, beside the node directories.
std::string ManifestFileName(const std::string& name);

// ParseManifest and ManifestText from and to a file. Reading also: NOT_FOUND and other errors of
// the file system. Writing replaces a manifest of that name at once or not at all; with
// INVALID_ARGUMENT it does not write what it could not read again.
absl::StatusOr<Manifest> ReadManifest(const std::string& path);
absl::Status WriteManifest(const Manifest& manifest, const std::string& path);

}  // namespace ecpipe
