// SPDX-License-Identifier: Apache-2.0
// How a helper reads and stores the blocks of the storage system on its host. Implementations: the
// plain-directory layout (plain_store.h), HDFS (hdfs_store.h) and QFS (qfs/qfs_store.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "helper/store/block_listing.h"
#include "model/block_file.h"
#include "pipeline/block_reader.h"

namespace ecpipe {

struct StoreInventory {
  uint64_t block_count = 0;
  uint64_t block_bytes = 0;
  std::vector<std::string> failed_roots;  // that cannot be used at present: "PATH: reason"
  bool counting = false;                  // a root was not counted yet, so there may be more
  // On the disks of the roots that answer; none: the store takes no new blocks, or does not know.
  std::optional<uint64_t> free_bytes = std::nullopt;
  std::optional<uint64_t> disk_bytes = std::nullopt;  // that these disks hold in all
};

// A block that is being stored. Unless Commit() succeeds it leaves nothing behind. Used by one
// thread.
class BlockWriter {
 public:
  virtual ~BlockWriter() = default;

  // Writes a range; ranges may come in any order. RESOURCE_EXHAUSTED: the disk is full.
  virtual absl::Status WriteAt(uint64_t offset, std::span<const uint8_t> bytes) = 0;
  // Reads back what was written.
  virtual absl::Status ReadAt(uint64_t offset, std::span<uint8_t> out) const = 0;
  // The SHA-256 of all bytes, if the caller has computed it: 64 lower-case hexadecimal digits. A
  // store that keeps it of its blocks need not compute it then. Before Commit().
  virtual void NoteSha256(const std::string& sha256) { (void)sha256; }
  // Makes the block durable and then known under its id; it replaces an older one. Call it once,
  // after all bytes were written.
  virtual absl::Status Commit() = 0;
};

// Thread-safe.
class BlockStore {
 public:
  virtual ~BlockStore() = default;

  // Opens a block by its id. INVALID_ARGUMENT: a bad id. NOT_FOUND: no root has the block. Any
  // other error: the block exists and cannot be read. UNAVAILABLE: a root does not answer, and no
  // other one has the block. Waits a second or two at most. The reader stays usable if the block is
  // renamed or removed meanwhile.
  virtual absl::StatusOr<std::unique_ptr<BlockReader>> Open(const std::string& block_id) = 0;

  // Begins a block of this length. RESOURCE_EXHAUSTED: no root has room for it.
  virtual absl::StatusOr<std::unique_ptr<BlockWriter>> Create(const std::string& block_id,
                                                              uint64_t bytes) = 0;

  // Counts the blocks. May take long on large stores; called from a background thread.
  virtual absl::StatusOr<StoreInventory> TakeInventory() = 0;

  // The files of the first `most` or so blocks with an id after `after`, in the order of ids: all
  // files of a block, or none. Waits a few seconds at most. UNAVAILABLE: a root does not answer.
  // UNIMPLEMENTED: the storage system alone removes its blocks.
  virtual absl::StatusOr<std::vector<BlockFile>> ListFiles(const std::string& after, size_t most) {
    (void)after, (void)most;
    return absl::UnimplementedError("the storage system of this store removes its blocks itself");
  }
  // Removes a file that was listed; readers that are open go on. NOT_FOUND: it is another file by
  // now, or gone. FAILED_PRECONDITION: the block is being stored or removed, or another process
  // uses its directory. UNAVAILABLE: the directory does not answer; after a few seconds it is not
  // removed any more.
  virtual absl::Status Remove(const BlockFile& file) {
    (void)file;
    return absl::UnimplementedError("the storage system of this store removes its blocks itself");
  }

  // What is wrong with a root of the store that only its use has shown: its reads hang, its disk
  // has gone. Waits for no disk.
  virtual absl::Status TroubleOf(const std::string& root) {
    (void)root;
    return absl::OkStatus();
  }

  // The list of all blocks, for stores whose blocks are reported to the coordinator one by one.
  // Returns at once.
  virtual TakenListing Listing() { return {}; }

  // Whether what a block lacks of the length that its stripe gives it counts as zeros. If not, a
  // block of another length is another block.
  virtual bool missing_ends_are_zeros() const { return false; }

  // The storage system's own name for the node; empty: none.
  virtual std::string storage_id() const { return ""; }
};

}  // namespace ecpipe
