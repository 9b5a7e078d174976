// SPDX-License-Identifier: Apache-2.0
// Reading and writing files without surprises: short and interrupted calls are continued, and a
// file appears under its name whole or not at all.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/output_path.h"
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

// Of what a daemon keeps: its group may look, nobody else.
inline constexpr mode_t kServiceFileMode = 0640;
inline constexpr mode_t kServiceDirectoryMode = 0750;

// A file that is written in its target's directory and gets the target's name at the end. Until
// then it has no name at all (O_TMPFILE), so that a killed process leaves nothing behind. On file
// systems without O_TMPFILE (NFS), and between the two steps of Commit(), it has a temporary name
// and a lock; a killed process loses the lock, and RemoveAbandonedFiles then removes the file. Not
// thread-safe, except that threads may write ranges that do not overlap.
//
// Links are followed: the file that they lead to is replaced; a daemon's file (kService) replaces
// a link to a file. What is no file, such as a device, a FIFO or /dev/stdout, stays: its bytes are
// kept in the directory for temporary files (TMPDIR), and are written to it by Commit().
class AtomicFile {
 public:
  // Starts with '.', so that no half-written file is ever taken for a block (block_id.h).
  static constexpr char kTempPrefix[] = ".ecpipe-tmp-";

  // What Commit() does when the target exists already.
  enum class Existing { kReplace, kRefuse };

  // Who may read the file.
  enum class Access {
    kUmask,    // as the umask says: a user's files
    kService,  // kServiceFileMode whatever the umask: what a daemon keeps
    kPrivate,  // its owner alone, whatever the umask
  };

  // What becomes of the page cache that writing takes.
  enum class Cache {
    kKeep,
    kDrop,  // the disk writes in pieces from the first one on, and Commit() gives the pages back
  };

  struct Options {
    Existing existing = Existing::kReplace;
    Access access = Access::kUmask;
    Cache cache = Cache::kKeep;
  };

  // Creates the file in the target's directory, which must exist. ALREADY_EXISTS: with kRefuse, and
  // the target exists (Commit() checks it again). Others are those of FollowOutput(). Errors name
  // the path. From then on the directory is the open one, wherever its path leads.
  static absl::StatusOr<AtomicFile> Create(const std::string& path,
                                           Existing existing = Existing::kReplace);
  static absl::StatusOr<AtomicFile> Create(const std::string& path, const Options& options);
  // The same in an open directory, under the last name of `path`, which is for errors otherwise. A
  // link of that name is replaced and not followed.
  static absl::StatusOr<AtomicFile> CreateBelow(int directory, const std::string& path,
                                                const Options& options);
  AtomicFile(AtomicFile&&) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  // Removes the temporary file unless it was committed.
  ~AtomicFile();

  // The name that the file has after Commit().
  const std::string& path() const { return path_; }

  // Has the file system set room aside for that many bytes from the first one on; the file is as
  // long as before. RESOURCE_EXHAUSTED: there is not so much. False: the file system cannot, or not
  // for this file. Before the first write.
  absl::StatusOr<bool> Reserve(uint64_t bytes);

  // After an error the file is not to be committed. Not after Commit().
  absl::Status WriteAt(uint64_t offset, std::span<const uint8_t> bytes);
  // Reads back what was written.
  absl::Status ReadAt(uint64_t offset, std::span<uint8_t> out) const;

  // Makes the file durable under its name: fsync, rename to the target, fsync of the directory.
  // Call it once, after the last write. After an error the target is as before, with one exception:
  // UNKNOWN says that the file has its name, but a crash of the machine may still undo that.
  //
  // To a device or FIFO it writes all bytes, which may have to wait for its reader; a part may have
  // been written after an error. CANCELLED: a signal came meanwhile, and `stopped` said so.
  absl::Status Commit(const StoppedFn& stopped = nullptr);

 private:
  AtomicFile(UniqueFd directory, std::string path, const Options& options)
      : directory_(std::move(directory)), path_(std::move(path)), options_(options) {}
  static absl::StatusOr<AtomicFile> CreateIn(UniqueFd directory, const std::string& path,
                                             const Options& options);
  static absl::StatusOr<AtomicFile> CreateForStream(const OutputTarget& target);

  absl::Status CopyToStream(const StoppedFn& stopped) const;

  // An unnamed file gets a temporary name.
  absl::Status NameIt();
  absl::Status Rename() const;
  void WriteBack(size_t written);

  UniqueFd directory_;
  std::string path_;
  std::optional<OutputTarget> stream_;  // where it is no file that is written
  std::string temporary_;  // in the directory; empty while there is nothing to remove
  Options options_;
  UniqueFd fd_;
  std::atomic<uint64_t> since_write_back_{0};  // bytes written since the disk was asked to write
};

// Removes temporary files that killed processes have left in a directory; files that a process is
// still writing stay. Returns how many were removed.
absl::StatusOr<int> RemoveAbandonedFiles(const std::string& directory);

}  // namespace ecpipe
