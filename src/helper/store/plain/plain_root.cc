// SPDX-License-Identifier: Apache-2.0
#include "helper/store/plain/plain_root.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/fault_points.h"
#include "base/file_io.h"
#include "base/process/log.h"
#include "base/status.h"
#include "helper/store/directory.h"
#include "helper/store/plain/plain_block.h"
#include "model/block_checksums.h"
#include "model/block_id.h"

namespace ecpipe {
namespace {

// A fault of one root, for tests; 0 is the first.
absl::Status RootFault(const std::string& call, size_t number) {
  return FaultPoint(("plain_store." + call + std::to_string(number)).c_str());
}

// Calls `take` for each name that can be a block's. The error of the system.
absl::Status ForEachName(int root, const std::string& path,
                         const std::function<void(int directory, const char* name)>& take) {
  // A descriptor of its own: the directory position is shared between duplicates.
  const Directory directory = OpenDirectory(root, ".");
  if (directory == nullptr) return ErrnoStatus(errno, "list " + path);
  errno = 0;
  while (const dirent* entry = ::readdir(directory.get())) {
    if (ValidateBlockId(entry->d_name).ok()) take(::dirfd(directory.get()), entry->d_name);
    errno = 0;
  }
  return errno == 0 ? absl::OkStatus() : ErrnoStatus(errno, "list " + path);
}

bool IsFile(int directory, const char* name, struct stat* info) {
  return ::fstatat(directory, name, info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(info->st_mode);
}

// While it is ok(), no other process has the directory open as a root. The shared lock comes back
// at its end.
class OnlyUser {
 public:
  explicit OnlyUser(int root) : root_(root), ok_(::flock(root, LOCK_EX | LOCK_NB) == 0) {}
  ~OnlyUser() { ::flock(root_, LOCK_SH); }
  OnlyUser(const OnlyUser&) = delete;
  OnlyUser& operator=(const OnlyUser&) = delete;
  bool ok() const { return ok_; }

 private:
  const int root_;
  const bool ok_;
};

}  // namespace

absl::StatusOr<int> PlainRoot::Fd() const {
  const absl::Status opened = Open();
  if (!opened.ok()) return absl::UnavailableError(std::string(opened.message()));
  MutexLock lock(&mutex_);
  return fd_.get();
}

absl::Status PlainRoot::Open() const {
  {
    MutexLock lock(&mutex_);
    if (fd_.valid()) return absl::OkStatus();
  }
  ECPIPE_RETURN_IF_ERROR(RootFault("root", number));
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // A mistake in the configuration, which no disk that comes back mends.
  if (!fd.valid() && errno == ENOTDIR) {
    return absl::InvalidArgumentError("block root " + path + " is not a directory");
  }
  if (!fd.valid()) return ErrnoStatus(errno, "open block root " + path);
  // Where there are no locks, nothing is removed either.
  if (::flock(fd.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return absl::UnavailableError("another process removes blocks in block root " + path);
  }
  bool is_back = false;
  {
    MutexLock lock(&mutex_);
    if (fd_.valid()) return absl::OkStatus();
    fd_ = std::move(fd);
    is_back = std::exchange(told_, false);
  }
  if (is_back) Log(LogLevel::kInfo, "store.root_back", {{"root", path}});
  return absl::OkStatus();
}

void PlainRoot::TellFailed(const absl::Status& why) const {
  {
    MutexLock lock(&mutex_);
    if (fd_.valid()) return;  // by now
    told_ = true;
  }
  Log(LogLevel::kWarning, "store.root_failed", {{"root", path}, {"status", StatusText(why)}});
}

void PlainRoot::Clean() const {
  if (cleaned_.exchange(true)) return;
  // A root that cannot be cleaned can still be read.
  const absl::StatusOr<int> removed = RemoveAbandonedFiles(path);
  if (removed.value_or(0) == 0) return;
  Log(LogLevel::kInfo, "store.cleaned", {{"root", path}, {"files", std::to_string(*removed)}});
}

absl::StatusOr<PlainRoot::FoundBlock> PlainRoot::OpenBlock(const std::string& block_id) const {
  ECPIPE_RETURN_IF_ERROR(RootFault("open", number));
  ECPIPE_ASSIGN_OR_RETURN(const int root_fd, Fd());
  constexpr int kTries = 3;
  for (int i = 0; i < kTries; ++i) {
    // O_NONBLOCK: a FIFO under this name must not hang the open; it is refused below.
    UniqueFd fd(
        ::openat(root_fd, block_id.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!fd.valid()) return ErrnoStatus(errno, "open block " + block_id + " in " + path);
    struct stat info{};
    if (::fstat(fd.get(), &info) != 0) return ErrnoStatus(errno, "stat block " + block_id);
    if (!S_ISREG(info.st_mode)) {
      return absl::PermissionDeniedError("block " + block_id + " is not a regular file");
    }
    const int opened = fd.get();
    ECPIPE_ASSIGN_OR_RETURN(
        std::unique_ptr<BlockReader> reader,
        OpenPlainBlock(root_fd, block_id, std::move(fd), static_cast<uint64_t>(info.st_size)));
    const timespec modified = info.st_mtim;
    // If it was removed or replaced meanwhile, its checksum file may have gone just before that was
    // looked for.
    const bool named = ::fstat(opened, &info) == 0 && info.st_nlink > 0;
    if (named || reader->has_checksums()) return FoundBlock{std::move(reader), modified};
  }
  return absl::UnavailableError("block " + block_id + " is being replaced again and again");
}

absl::StatusOr<PlainRoot::DiskRoom> PlainRoot::Disk() const {
  ECPIPE_RETURN_IF_ERROR(RootFault("open", number));
  ECPIPE_ASSIGN_OR_RETURN(const int root_fd, Fd());
  struct stat info{};
  if (::fstat(root_fd, &info) != 0) return ErrnoStatus(errno, "stat " + path);
  struct statvfs space{};
  if (::fstatvfs(root_fd, &space) != 0) return ErrnoStatus(errno, "statvfs " + path);
  return DiskRoom{info.st_dev, uint64_t{space.f_bavail} * space.f_frsize,
                  uint64_t{space.f_blocks} * space.f_frsize};
}

absl::StatusOr<PlainRoot::RoomForBlock> PlainRoot::RoomFor(const std::string& block_id) const {
  ECPIPE_RETURN_IF_ERROR(RootFault("open", number));
  ECPIPE_ASSIGN_OR_RETURN(const int root_fd, Fd());
  struct stat info{};
  const bool has = ::fstatat(root_fd, block_id.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0;
  struct statvfs space{};
  if (::fstatvfs(root_fd, &space) != 0) return ErrnoStatus(errno, "statvfs " + path);
  return RoomForBlock{has, uint64_t{space.f_bavail} * space.f_frsize};
}

absl::StatusOr<StoreInventory> PlainRoot::Count() const {
  ECPIPE_RETURN_IF_ERROR(RootFault("count", number));
  ECPIPE_ASSIGN_OR_RETURN(const int root_fd, Fd());
  Clean();
  StoreInventory inventory;
  ECPIPE_RETURN_IF_ERROR(ForEachName(root_fd, path, [&](int directory, const char* name) {
    struct stat info{};
    if (!IsFile(directory, name, &info)) return;
    ++inventory.block_count;
    inventory.block_bytes += static_cast<uint64_t>(info.st_size);
  }));
  return inventory;
}

absl::StatusOr<std::vector<BlockFile>> PlainRoot::List(const std::string& after,
                                                       size_t most) const {
  ECPIPE_RETURN_IF_ERROR(RootFault("count", number));
  ECPIPE_ASSIGN_OR_RETURN(const int root_fd, Fd());
  std::vector<std::string> ids;
  ECPIPE_RETURN_IF_ERROR(ForEachName(root_fd, path, [&](int, const char* name) {
    if (name > after) ids.emplace_back(name);
  }));
  std::sort(ids.begin(), ids.end());
  std::vector<BlockFile> files;
  for (const std::string& id : ids) {
    if (files.size() == most) break;
    struct stat info{};
    if (IsFile(root_fd, id.c_str(), &info)) files.push_back(FileOf(id, info));
  }
  return files;
}

absl::Status PlainRoot::Remove(const BlockFile& file, TimePoint deadline) const {
  ECPIPE_RETURN_IF_ERROR(RootFault("open", number));
  ECPIPE_ASSIGN_OR_RETURN(const int root_fd, Fd());
  const OnlyUser only(root_fd);
  if (!only.ok()) {
    return absl::FailedPreconditionError("block root " + path +
                                         " may be another process's as well: nothing is removed");
  }
  const char* const name = file.block_id.c_str();
  struct stat info{};
  if (!IsFile(root_fd, name, &info) || !IsSameFile(FileOf(file.block_id, info), file)) {
    return absl::NotFoundError("block " + file.block_id + " is another file by now, or gone");
  }
  // Who waited for this may have been told that it is not removed, and have begun something else.
  if (Clock::System().Now() >= deadline) {
    return absl::UnavailableError("block root " + path + " is slow; block " + file.block_id +
                                  " stays");
  }
  if (::unlinkat(root_fd, name, 0) != 0) return ErrnoStatus(errno, "remove block " + file.block_id);
  // After the block: without it nobody reads the block unchecked, whenever the helper ends.
  if (CanHaveChecksumFile(file.block_id)) {
    ::unlinkat(root_fd, ChecksumFileName(file.block_id).c_str(), 0);  // a later block replaces it
  }
  return absl::OkStatus();
}

// A file that replaces another has an inode of its own while the other one lives, and is changed
// when it gets its name.
BlockFile PlainRoot::FileOf(const std::string& block_id, const struct stat& info) const {
  const int64_t changed_ns =
      int64_t{info.st_ctim.tv_sec} * 1'000'000'000 + int64_t{info.st_ctim.tv_nsec};
  const int64_t now_ns = Clock::System().UnixMillis() * 1'000'000;
  return {block_id, static_cast<uint64_t>(info.st_size),
          absl::StrFormat("%d-%d-%d", number, info.st_ino, changed_ns),
          std::max(0.0, 1e-9 * static_cast<double>(now_ns - changed_ns))};
}

}  // namespace ecpipe
