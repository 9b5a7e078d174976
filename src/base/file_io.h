// SPDX-License-Identifier: Apache-2.0
// Reading and writing files without surprises: short and interrupted calls are continued, and a
// file appears under its name whole or not at all.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace ecpipe {

// Opens a regular file for reading. NOT_FOUND, PERMISSION_DENIED, ... with the path.
// INVALID_ARGUMENT: the path is something else, such as a directory or a FIFO.
absl::StatusOr<UniqueFd> OpenForReading(const std::string& path);
absl::StatusOr<uint64_t> FileBytes(int fd);

// Fills `out` from `offset` on. OUT_OF_RANGE when the file ends before; `out` is undefined then.
absl::Status ReadFully(int fd, uint64_t offset, std::span<uint8_t> out);
// RESOURCE_EXHAUSTED when the disk is full. On error a part may have been written.
absl::Status WriteFully(int fd, uint64_t offset, std::span<const uint8_t> bytes);

// A file that is written in its target's directory and gets the target's name at the end. Until
// then it has no name at all (O_TMPFILE), so that a killed process leaves nothing behind. On file
// systems without O_TMPFILE (NFS), and between the two steps of Commit(), it has a temporary name
// and a lock; a killed process loses the lock, and RemoveAbandonedFiles then removes the file. Not
// thread-safe, except that threads may write ranges that do not overlap.
class AtomicFile {
 public:
  // Starts with '.', so that no half-written file is ever taken for a block (block_id.h).
  static constexpr char kTempPrefix[] = ".ecpipe-tmp-";

  // What Commit() does when the target exists already.
  enum class Existing { kReplace, kRefuse };

  // Creates the file in the target's directory, which must exist. ALREADY_EXISTS: with kRefuse, and
  // the target exists (Commit() checks it again). Errors name the path.
  static absl::StatusOr<AtomicFile> Create(const std::string& path,
                                           Existing existing = Existing::kReplace);
  AtomicFile(AtomicFile&&) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  // Removes the temporary file unless it was committed.
  ~AtomicFile();

  // The name that the file has after Commit().
  const std::string& path() const { return path_; }

  // After an error the file is not to be committed. Not after Commit().
  absl::Status WriteAt(uint64_t offset, std::span<const uint8_t> bytes);
  // Reads back what was written.
  absl::Status ReadAt(uint64_t offset, std::span<uint8_t> out) const;

  // Makes the file durable under its name: fsync, rename to the target, fsync of the directory.
  // Call it once, after the last write. After an error the target is as before, with one exception:
  // UNKNOWN says that the file has its name, but a crash of the machine may still undo that.
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

// Removes temporary files that killed processes have left in a directory; files that a process is
// still writing stay. Returns how many were removed.
absl::StatusOr<int> RemoveAbandonedFiles(const std::string& directory);

}  // namespace ecpipe
