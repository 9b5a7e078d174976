// SPDX-License-Identifier: Apache-2.0
#include "base/process/directory_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "base/file_io.h"
#include "base/status.h"

namespace ecpipe {
namespace {

// "process 1234", as far as the file tells it.
std::string HolderOf(int fd) {
  char text[32];
  const ssize_t bytes = ::pread(fd, text, sizeof(text), 0);
  std::string_view id(text, static_cast<size_t>(std::max<ssize_t>(bytes, 0)));
  id = id.substr(0, id.find('\n'));
  const bool number = !id.empty() && id.find_first_not_of("0123456789") == std::string_view::npos;
  return number ? "process " + std::string(id) : "another process";
}

}  // namespace

absl::StatusOr<DirectoryLock> DirectoryLock::Take(const std::string& directory,
                                                  const std::string& name) {
  const std::string path = directory + "/" + name;
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kServiceFileMode));
  if (!fd.valid()) return ErrnoStatus(errno, "open " + path);
  // Whatever the umask; a file of another user has its mode already.
  if (::fchmod(fd.get(), kServiceFileMode) != 0 && errno != EPERM) {
    return ErrnoStatus(errno, "set the mode of " + path);
  }
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return ErrnoStatus(errno, "lock " + path);
    return absl::FailedPreconditionError(directory + " is in use by " + HolderOf(fd.get()) +
                                         ", which holds the lock on " + path +
                                         "; end that process, or use another directory");
  }
  // The id is for people. A full disk, which takes no byte more, does not keep the lock from being
  // held.
  const std::string id = std::to_string(::getpid()) + "\n";
  if (::ftruncate(fd.get(), 0) == 0) {
    [[maybe_unused]] const ssize_t written = ::pwrite(fd.get(), id.data(), id.size(), 0);
  }
  return DirectoryLock(std::move(fd));
}

}  // namespace ecpipe
