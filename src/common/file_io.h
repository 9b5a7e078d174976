// SPDX-License-Identifier: Apache-2.0
// Reading and writing files without surprises: short and interrupted calls are gone on with, and a
// file appears under its name whole or not at all.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/unique_fd.h"

namespace ecpipe {

// Opens a regular file for reading. NOT_FOUND, PERMISSION_DENIED, ... with the path.
// INVALID_ARGUMENT: the path is something else, such as a directory or a FIFO.
absl::StatusOr<UniqueFd> OpenForReading(const std::string& path);
absl::StatusOr<uint64_t> FileBytes(int fd);

// Fills `out` from `offset` on. OUT_OF_RANGE when the file ends before; `out` is undefined then.
absl::Status ReadFully(int fd, uint64_t offset, std::span<uint8_t> out);
// RESOURCE_EXHAUSTED when the disk is full. On error a part may have been written.
absl::Status WriteFully(int fd, uint64_t offset, std::span<const uint8_t> bytes);

// A file that is written in its target's directory and takes its name at the end. Until then it has
// no name at all (O_TMPFILE), so that a killed process leaves nothing. Where the file system does
// not have that (NFS), and between Commit()'s two steps, it has a temporary name and a lock; a
// killed process leaves it without the lock, for RemoveAbandonedFiles. Not thread-safe, except that
// threads may write ranges that do not overlap.
class AtomicFile {
 public:
  // Starts with '.', so that no half-written file is ever taken for a block (block_id.h).
  static constexpr char kTempPrefix[] = ".ecpipe-tmp-";

  // What Commit() does when the target exists already.
  enum class Existing { kReplace, kRefuse };

  // Creates the file in the target's directory, which must exist. ALREADY_EXISTS, with
  // kRefuse: so does the target (Commit() checks it again). Errors name the path.
  static absl::StatusOr<AtomicFile> Create(const std::string& path,
                                           Existing existing = Existing::kReplace);
  AtomicFile(AtomicFile&&) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  // Removes the temporary file unless it was committed.
  ~AtomicFile();

  // The name that Commit() gives.
  const std::string& path() const { return path_; }

  // After an error the file is not to be committed. Not after Commit().
  absl::Status WriteAt(uint64_t offset, std::span<const uint8_t> bytes);
  // Reads back what was written.
  absl::Status ReadAt(uint64_t offset, std::span<uint8_t> out) const;

  // fsync, rename to the target, fsync of the directory; once, after the last write. After an error
  // the target is as before, with one exception: UNKNOWN says that the file has its name, but that
  // a crash of the machine may yet undo that.
  absl::Status Commit();

 private:
  AtomicFile(std::string path, std::string temporary, Existing existing, UniqueFd fd)
      : path_(std::move(path)),
        temporary_(std::move(temporary)),
        existing_(existing),
        fd_(std::move(fd)) {}

  // An unnamed file gets a temporary name.
  absl::Status NameIt();
  absl::Status Rename() const;

  std::string path_;
  std::string temporary_;  // empty while there is nothing to remove
  Existing existing_;
  UniqueFd fd_;
};

// Removes what killed processes have left of AtomicFiles in a directory; those that somebody is
// writing stay. Returns how many were removed.
absl::StatusOr<int> RemoveAbandonedFiles(const std::string& directory);

}  // namespace ecpipe
