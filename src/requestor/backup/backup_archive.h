// SPDX-License-Identifier: Apache-2.0
// The file that `ecpipe backup` writes: a tar archive (ustar), so that `tar` alone restores it,
// whose last member SHA256SUMS is for `sha256sum -c`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "base/bytes/sha256.h"

namespace ecpipe {

// Takes files one after the other: Begin, Add until all of its bytes are there, End. What comes is
// from the network: DATA_LOSS for what does not fit together, INVALID_ARGUMENT for a name that is
// not that of a plain file. After an error the archive is not to be used. One thread.
class BackupArchive {
 public:
  struct File {
    std::string name;
    uint64_t bytes = 0;
    std::string sha256;
  };
  using WriteFn = std::function<absl::Status(uint64_t offset, std::span<const uint8_t> bytes)>;

  // `unix_seconds` is the time of all files.
  BackupArchive(WriteFn write, int64_t unix_seconds)
      : write_(std::move(write)), unix_seconds_(unix_seconds) {}

  absl::Status BeginFile(const std::string& name, uint64_t bytes);
  absl::Status Add(std::string_view data);
  // Compares the SHA-256 of what came with that of the sender.
  absl::Status EndFile(const std::string& sha256);
  // After the last file: there must be one.
  absl::Status Finish();

  const std::vector<File>& files() const { return files_; }
  // Written so far.
  uint64_t bytes() const { return at_; }

 private:
  absl::Status Write(std::string_view data);
  absl::Status WriteHeader(const std::string& name, uint64_t bytes);
  absl::Status Pad();

  const WriteFn write_;
  const int64_t unix_seconds_;
  uint64_t at_ = 0;
  bool open_ = false;             // a file has begun
  uint64_t missing_ = 0;          // of it
  std::optional<Sha256> sha256_;  // of it
  std::set<std::string> names_;
  std::vector<File> files_;
};

}  // namespace ecpipe
