// SPDX-License-Identifier: Apache-2.0
#include "helper/edge/root_check.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "base/status.h"
#include "base/unique_fd.h"
#include "helper/store/directory.h"

namespace ecpipe {
namespace {

// HDFS and QFS keep blocks some directories deep. Beyond these no block is looked for.
constexpr int kMostDepth = 8;
constexpr int kMostEntries = 10'000;

absl::Status ReadAByte(int parent, const char* name) {
  const UniqueFd fd(::openat(parent, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  // It may have been removed since it was listed.
  if (!fd.valid() && errno == ENOENT) return absl::OkStatus();
  char byte = 0;
  if (fd.valid() && ::read(fd.get(), &byte, 1) >= 0) return absl::OkStatus();
  return ErrnoStatus(errno, std::string("read ") + name);
}

// What came of reading the first file at or below the directory; nullopt: there is none.
std::optional<absl::Status> ReadAFile(int fd, const char* name, int depth, int* entries) {
  const Directory directory = OpenDirectory(fd, name);
  if (directory == nullptr) return ErrnoStatus(errno, std::string("list ") + name);
  while (++*entries < kMostEntries) {
    errno = 0;
    const dirent* const entry = ::readdir(directory.get());
    if (entry == nullptr && errno != 0) return ErrnoStatus(errno, std::string("list ") + name);
    if (entry == nullptr) break;
    if (entry->d_name[0] == '.') continue;
    const int here = ::dirfd(directory.get());
    struct stat found{};
    if (::fstatat(here, entry->d_name, &found, AT_SYMLINK_NOFOLLOW) != 0) {
      if (errno == ENOENT) continue;
      return ErrnoStatus(errno, std::string("look at ") + entry->d_name);
    }
    if (S_ISREG(found.st_mode)) return ReadAByte(here, entry->d_name);
    if (!S_ISDIR(found.st_mode) || depth >= kMostDepth) continue;
    std::optional<absl::Status> below = ReadAFile(here, entry->d_name, depth + 1, entries);
    if (below) return below;
  }
  return std::nullopt;
}

}  // namespace

absl::Status CheckRoot(const std::string& path, RootUse use) {
  // The root itself may be a link.
  const UniqueFd root(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid()) return ErrnoStatus(errno, "open the directory");
  int entries = 0;
  const std::optional<absl::Status> read = ReadAFile(root.get(), ".", 0, &entries);
  if (read && !read->ok()) return *read;
  if (use != RootUse::kTakeBlocks) return absl::OkStatus();
  const UniqueFd made(::open(path.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  if (made.valid()) return absl::OkStatus();
  // Not every file system makes files without names.
  if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL) {
    return ErrnoStatus(errno, "make a file in it");
  }
  std::string name = path + "/.ecpipe-check-XXXXXX";
  const UniqueFd named(::mkostemp(name.data(), O_CLOEXEC));
  if (!named.valid()) return ErrnoStatus(errno, "make a file in it");
  ::unlink(name.c_str());
  return absl::OkStatus();
}

}  // namespace ecpipe
