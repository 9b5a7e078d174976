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
#include <set>
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

// Thread-safe. All calls block on its disk. Each call looks whether the path still leads to the
// directory that is open, and opens the other one if not: its disk was unmounted or exchanged. One
// that had a file system of its own and lies on that of a directory above it by now is not used:
// the disk has gone, and what would be stored there would vanish below the next one. UNAVAILABLE
// from the calls that use it: it cannot be opened, so what it has is unknown. What is open has a
// shared lock (flock).
class PlainRoot {
 public:
  // The directory as it was opened. Shared: calls and writers go on with it when it is exchanged.
  struct Opened {
    UniqueFd fd;
    dev_t device = 0;
    ino_t inode = 0;
  };

  PlainRoot(std::string the_path, size_t the_number)
      : path(std::move(the_path)), number(the_number) {}

  absl::StatusOr<std::shared_ptr<const Opened>> Use() const;
  // The error of the system. INVALID_ARGUMENT: the path leads to something else than a directory.
  absl::Status Open() const;
  // UNAVAILABLE: the path leads to another directory by now, or to none.
  absl::Status CheckStill(const Opened& opened) const;
  // That it cannot be opened. Logs it if that is news.
  void TellFailed(const absl::Status& why) const;
  // Why it could not be opened when that was tried last. Waits for no disk.
  absl::Status trouble() const;
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
    dev_t device = 0;
    uint64_t free_bytes = 0;
  };
  absl::StatusOr<RoomForBlock> RoomFor(const std::string& block_id) const;

  // Only the counts.
  absl::StatusOr<StoreInventory> Count() const;

  // The first `most` blocks with an id after `after`, in the order of ids. The pages of one listing
  // share readings of the directory, which are for kNamesAtOnce names each: a block that comes
  // meanwhile may not be in a later page.
  static constexpr size_t kNamesAtOnce = 100'000;  // some 7 MB, until the last page
  absl::StatusOr<std::vector<BlockFile>> List(const std::string& after, size_t most) const;
  // Removes the block, and its checksum file after it. NOT_FOUND: it has no such block, or another
  // file of it than this. FAILED_PRECONDITION: another process uses the directory, or nobody can
  // say. UNAVAILABLE: this comes to it only after `deadline`.
  absl::Status Remove(const BlockFile& file, TimePoint deadline) const;

  const std::string path;
  const size_t number;

 private:
  // Names as they were read for the pages of a listing.
  struct Names {
    std::weak_ptr<const Opened> of;  // a listing that nobody ends keeps no disk busy
    std::string after;               // all of them are above it
    std::vector<std::string> names;  // in order
    bool to_the_end = false;         // there were no more
  };
  // Those above `after`: what is kept, if it goes on from there, or what is read now.
  absl::StatusOr<Names> NamesAfter(const std::string& after,
                                   const std::shared_ptr<const Opened>& opened) const;
  BlockFile FileOf(const std::string& block_id, const struct stat& info) const;

  // What the path leads to. INVALID_ARGUMENT as of Open().
  absl::StatusOr<std::shared_ptr<const Opened>> OpenNow() const;
  // Whether it may take the place of what was open before.
  absl::Status CheckDisk(const Opened& opened) const;
  // Takes it, unless another call has taken the same. Returns which.
  std::shared_ptr<const Opened> Take(std::shared_ptr<const Opened> opened) const;

  mutable Mutex mutex_;
  mutable std::shared_ptr<const Opened> opened_ ABSL_GUARDED_BY(mutex_);  // null: it cannot be used
  mutable std::set<dev_t> disks_above_ ABSL_GUARDED_BY(mutex_);  // of directories above its mount
  mutable absl::Status trouble_ ABSL_GUARDED_BY(mutex_);
  mutable bool was_open_ ABSL_GUARDED_BY(mutex_) = false;
  mutable Names names_ ABSL_GUARDED_BY(mutex_);  // for the next page
  mutable std::atomic<bool> cleaned_{false};
};

}  // namespace ecpipe
