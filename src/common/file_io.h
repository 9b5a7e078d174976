// SPDX-License-Identifier: Apache-2.0
// Files as repairs use them: whole reads and writes at an offset, and files that appear complete or
// not at all.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/unique_fd.h"

namespace ecpipe {

// Fills `out` from byte `offset` of the file on, however many system calls that takes.
// OUT_OF_RANGE: the file ends before that. Else the status of the errno. `out` is undefined on error.
[[nodiscard]] absl::Status ReadFully(int fd, uint64_t offset, std::span<uint8_t> out);

// Writes all of `bytes` at byte `offset`. On error a part of them may have been written.
// RESOURCE_EXHAUSTED: no space left.
[[nodiscard]] absl::Status WriteFully(int fd, uint64_t offset, std::span<const uint8_t> bytes);

struct OpenedFile {
  UniqueFd fd;
  uint64_t bytes = 0;  // its length when it was opened
};

// Opens a regular file for reading. NOT_FOUND: there is none. FAILED_PRECONDITION: the path is something
// else, such as a directory or a FIFO. Messages name the path.
absl::StatusOr<OpenedFile> OpenRegularFile(const std::string& path);

// A file that appears under its name complete and on disk, or not at all. The bytes go to a
// temporary file in the same directory, named kTempPrefix + something, until Commit().
//
// Owns the temporary file; the destructor removes it unless Commit() was successful. A process that
// is killed leaves it behind: any file with kTempPrefix that no live process writes may be deleted.
// WriteAt and ReadAt may be called from several threads when their ranges do not overlap.
class AtomicFile {
 public:
  // Starts with '.', so that no temporary file is ever taken for a block (block_id.h).
  static constexpr char kTempPrefix[] = ".ecpipe-tmp-";

  // What Commit() does when a file of that name is there already.
  enum class Existing { kReplace, kRefuse };

  // `path` need not exist, its directory must. Errors name the path: NOT_FOUND (no directory),
  // PERMISSION_DENIED, RESOURCE_EXHAUSTED, ALREADY_EXISTS (with kRefuse, checked again by Commit).
  static absl::StatusOr<std::unique_ptr<AtomicFile>> Create(const std::string& path,
                                                            Existing existing);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // As WriteFully and ReadFully, on the temporary file. After an error the file cannot be trusted:
  // let the destructor remove it. Not after Commit().
  [[nodiscard]] absl::Status WriteAt(uint64_t offset, std::span<const uint8_t> bytes);
  [[nodiscard]] absl::Status ReadAt(uint64_t offset, std::span<uint8_t> out) const;

  // Syncs the bytes, gives the file its name, syncs the directory. To be called once, after all
  // writes. On error the destructor still removes the temporary file, and the name is as it was
  // before, with one exception: UNKNOWN says that the file has its name, but that a
  // crash of the machine may yet take it away again.
  [[nodiscard]] absl::Status Commit();

  const std::string& path() const { return path_; }

 private:
  AtomicFile(std::string path, std::string temp_path, Existing existing, UniqueFd fd);
  absl::Status Rename() const;

  const std::string path_;
  const Existing existing_;
  std::string temp_path_;  // empty once there is nothing to remove
  UniqueFd fd_;
};

}  // namespace ecpipe
