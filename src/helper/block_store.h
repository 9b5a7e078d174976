// SPDX-License-Identifier: Apache-2.0
// How a helper finds the blocks that the storage system keeps beside it. The plain-directory layout
// is the first implementation (plain_store.h); HDFS and QFS layouts implement the same.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "helper/block_listing.h"
#include "pipeline/block_reader.h"

namespace ecpipe {

struct StoreInventory {
  uint64_t block_count = 0;
  uint64_t block_bytes = 0;
};

// A block on its way into the store. Destroyed without a Commit() that succeeded, it leaves
// nothing. Used by one thread.
class BlockWriter {
 public:
  virtual ~BlockWriter() = default;

  // Ranges in any order. RESOURCE_EXHAUSTED: the disk is full.
  virtual absl::Status WriteAt(uint64_t offset, std::span<const uint8_t> bytes) = 0;
  // Reads back what was written.
  virtual absl::Status ReadAt(uint64_t offset, std::span<uint8_t> out) const = 0;
  // Makes the block durable and then known under its id, in the place of an older one. Once, after
  // all bytes were written.
  virtual absl::Status Commit() = 0;
};

// Thread-safe.
class BlockStore {
 public:
  virtual ~BlockStore() = default;

  // Opens a block by its id. INVALID_ARGUMENT for an id that cannot be one, NOT_FOUND when no root
  // has it; another error when it is there and cannot be read. The reader stays usable if the block
  // is renamed or removed meanwhile.
  virtual absl::StatusOr<std::unique_ptr<BlockReader>> Open(const std::string& block_id) = 0;

  // Begins a block of this length. RESOURCE_EXHAUSTED: no root has room for it.
  virtual absl::StatusOr<std::unique_ptr<BlockWriter>> Create(const std::string& block_id,
                                                              uint64_t bytes) = 0;

  // Counts what is there. May take long on large stores; called from a background thread.
  virtual absl::StatusOr<StoreInventory> TakeInventory() = 0;

  // The blocks of groups, where the coordinator is to be told of each. Returns at once.
  virtual TakenListing Listing() { return {}; }

  // The storage system's own name of the node; empty: it has none.
  virtual std::string storage_id() const { return ""; }
};

}  // namespace ecpipe
