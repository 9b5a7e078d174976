// SPDX-License-Identifier: Apache-2.0
// One directory of blocks in the plain layout (plain_store.h).
#pragma once

#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/unique_fd.h"
#include "helper/store/block_store.h"
#include "model/block_file.h"
#include "pipeline/block_reader.h"

namespace ecpipe {

// Thread-safe. All calls block on its disk. All that is read, stored or removed lies below one
// descriptor, wherever the path leads by then; it is opened by the first call that can. UNAVAILABLE
// from the calls that use it: it cannot be opened, so what it has is unknown. The descriptor has a
// shared lock (flock) as long as it is open.
class PlainRoot {
 public:
  PlainRoot(std::string the_path, size_t the_number)
      : path(std::move(the_path)), number(the_number) {}

  absl::StatusOr<int> Fd() const;
  // The error of the system. INVALID_ARGUMENT: the path leads to something else than a directory.
  absl::Status Open() const;
  // That it could not be opened at the start.
  void TellFailed(const absl::Status& why) const;
  // Removes, once, what helpers that were killed have left there.
  void Clean() const;

  struct FoundBlock {
    std::unique_ptr<BlockReader> reader;
    timespec modified;
  };
  // NOT_FOUND: it is not here.
  absl::StatusOr<FoundBlock> OpenBlock(const std::string& block_id) const;

  struct DiskRoom {
    dev_t device = 0;
    uint64_t free_bytes = 0;
    uint64_t all_bytes = 0;
  };
  // Of the disk that it is on.
  absl::StatusOr<DiskRoom> Disk() const;

  struct RoomForBlock {
    bool has_block = false;
    uint64_t free_bytes = 0;
  };
  absl::StatusOr<RoomForBlock> RoomFor(const std::string& block_id) const;

  // Only the counts.
  absl::StatusOr<StoreInventory> Count() const;

  // The first `most` blocks with an id after `after`, in the order of ids.
  absl::StatusOr<std::vector<BlockFile>> List(const std::string& after, size_t most) const;
  // Removes the block, and its checksum file after it. NOT_FOUND: it has no such block, or another
  // file of it than this. FAILED_PRECONDITION: another process uses the directory, or nobody can
  // say. UNAVAILABLE: this comes to it only after `deadline`.
  absl::Status Remove(const BlockFile& file, TimePoint deadline) const;

  const std::string path;
  const size_t number;

 private:
  BlockFile FileOf(const std::string& block_id, const struct stat& info) const;

  mutable Mutex mutex_;
  mutable UniqueFd fd_ ABSL_GUARDED_BY(mutex_);  // stays, once it is valid
  mutable bool told_ ABSL_GUARDED_BY(mutex_) = false;
  mutable std::atomic<bool> cleaned_{false};
};

}  // namespace ecpipe
