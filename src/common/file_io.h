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
absl::StatusOr<UniqueFd> OpenForReading(const std::string& path);
absl::StatusOr<uint64_t> FileBytes(int fd);

// Fills `out` from `offset` on. OUT_OF_RANGE when the file ends before.
absl::Status ReadFully(int fd, uint64_t offset, std::span<uint8_t> out);
absl::Status WriteFully(int fd, uint64_t offset, std::span<const uint8_t> bytes);

// A file that is written beside its target and takes its name at the end. Not thread-safe.
class AtomicFile {
 public:
  // Creates "<path>.<random>.tmp" in the target's directory.
  static absl::StatusOr<AtomicFile> Create(const std::string& path);
  AtomicFile(AtomicFile&&) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  // Removes the temporary file unless it was committed.
  ~AtomicFile();

  // RESOURCE_EXHAUSTED when the disk is full.
  absl::Status WriteAt(uint64_t offset, std::span<const uint8_t> bytes);
  // fsync, rename over the target, fsync of the directory. After an error the target is as before, except
  // that it may be replaced and not yet durable if the last fsync failed.
  absl::Status Commit();

 private:
  AtomicFile(std::string path, std::string temporary, UniqueFd fd)
      : path_(std::move(path)), temporary_(std::move(temporary)), fd_(std::move(fd)) {}

  std::string path_;
  std::string temporary_;  // empty once there is nothing to remove
  UniqueFd fd_;
};

}  // namespace ecpipe
