// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace ecpipe {

// A directory that one process at a time may use. The lock is the kernel's (flock on a file in the
// directory), so that it ends with the process, however that ends; the file stays.
class DirectoryLock {
 public:
  // Takes the lock, without waiting. The file `name` in the directory is made if it is not there,
  // and gets the process id, for errors. FAILED_PRECONDITION, naming the directory and the process:
  // another one holds it, or this one does already.
  static absl::StatusOr<DirectoryLock> Take(const std::string& directory, const std::string& name);

 private:
  explicit DirectoryLock(UniqueFd fd) : fd_(std::move(fd)) {}

  UniqueFd fd_;
};

}  // namespace ecpipe
