// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/checksum_kind.h"

namespace ecpipe {

// An open block: what a hop reads from. Used by one thread at a time.
class BlockReader {
 public:
  virtual ~BlockReader() = default;

  // Length of the block's data, without what the store adds to it.
  virtual uint64_t bytes() const = 0;

  // The kind of checksums that the storage system keeps of the block, if it does. A program that
  // writes the rebuilt block wants to know.
  virtual std::optional<ChecksumKind> checksum() const { return std::nullopt; }
  // Whether all that is read is compared with checksums that the store keeps of the block.
  virtual bool has_checksums() const { return false; }

  // The SHA-256 that the block had as a whole when it was stored, 64 lower-case hexadecimal digits:
  // it tells blocks apart that had the same name in turn. Empty: the store does not keep it.
  virtual std::string stored_sha256() const { return ""; }

  // Fills `out` from `offset` on; the caller asks only for bytes below bytes(). May block on a
  // disk. DATA_LOSS: the store's own checksums say that the bytes are damaged, or the block has
  // become shorter. Any other error: it could not be read; `out` is undefined then.
  virtual absl::Status ReadAt(uint64_t offset, std::span<uint8_t> out) = 0;

  // The same, but only if the bytes are in memory. False if the read would have to wait for a disk,
  // or if that cannot be told; `out` is undefined then.
  virtual absl::StatusOr<bool> TryReadAt(uint64_t /*offset*/, std::span<uint8_t> /*out*/) {
    return false;
  }
};

}  // namespace ecpipe
