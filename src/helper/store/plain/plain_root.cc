// SPDX-License-Identifier: Apache-2.0
#include "helper/store/plain/plain_root.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <system_error>
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

bool IsSame(const PlainRoot::Opened& opened, const struct stat& there) {
  return opened.device == there.st_dev && opened.inode == there.st_ino;
}

// The file systems of the directories above the one that the path leads to, but for its own: where
// it would lie if its own were not mounted. Empty: they cannot be told.
std::set<dev_t> DisksAbove(const std::string& path, dev_t own) {
  std::set<dev_t> disks;
  std::error_code failed;
  std::filesystem::path at = std::filesystem::canonical(path, failed);
  while (!failed && at.has_relative_path()) {
    at = at.parent_path();
    struct stat info{};
    if (::stat(at.c_str(), &info) == 0 && info.st_dev != own) disks.insert(info.st_dev);
  }
  return disks;
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

absl::StatusOr<std::shared_ptr<const PlainRoot::Opened>> PlainRoot::Use() const {
  {
    struct stat there{};
    const bool found = ::stat(path.c_str(), &there) == 0;
    MutexLock lock(&mutex_);
    if (found && opened_ != nullptr && IsSame(*opened_, there)) return opened_;
  }
  absl::StatusOr<std::shared_ptr<const Opened>> opened = OpenNow();
  if (opened.ok()) return Take(*std::move(opened));
  TellFailed(opened.status());
  return absl::UnavailableError(std::string(opened.status().message()));
}

absl::Status PlainRoot::Open() const {
  const absl::StatusOr<std::shared_ptr<const Opened>> opened = OpenNow();
  if (opened.ok()) Take(*opened);
  return opened.status();
}

absl::StatusOr<std::shared_ptr<const PlainRoot::Opened>> PlainRoot::OpenNow() const {
  ECPIPE_RETURN_IF_ERROR(RootFault("root", number));
  auto opened = std::make_shared<Opened>();
  opened->fd = UniqueFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // A mistake in the configuration, which no disk that comes back mends.
  if (!opened->fd.valid() && errno == ENOTDIR) {
    return absl::InvalidArgumentError("block root " + path + " is not a directory");
  }
  struct stat info{};
  if (!opened->fd.valid() || ::fstat(opened->fd.get(), &info) != 0) {
    return ErrnoStatus(errno, "open block root " + path);
  }
  opened->device = info.st_dev;
  opened->inode = info.st_ino;
  ECPIPE_RETURN_IF_ERROR(CheckDisk(*opened));
  // Where there are no locks, nothing is removed either.
  if (::flock(opened->fd.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return absl::UnavailableError("another process removes blocks in block root " + path);
  }
  return opened;
}

absl::Status PlainRoot::CheckDisk(const Opened& opened) const {
  MutexLock lock(&mutex_);
  if (!disks_above_.contains(opened.device)) return absl::OkStatus();
  return absl::UnavailableError("the disk of block root " + path +
                                " has gone: the directory is on the disk of the one above it, and "
                                "had one of its own before; mount that again, or restart the "
                                "helper if blocks are to be kept there");
}

std::shared_ptr<const PlainRoot::Opened> PlainRoot::Take(
    std::shared_ptr<const Opened> opened) const {
  const std::set<dev_t> above = DisksAbove(path, opened->device);
  bool exchanged = false;
  bool is_back = false;
  {
    MutexLock lock(&mutex_);
    const bool same =
        opened_ != nullptr && opened_->device == opened->device && opened_->inode == opened->inode;
    if (same) return opened_;
    exchanged = opened_ != nullptr;
    is_back = !trouble_.ok();
    trouble_ = absl::OkStatus();
    opened_ = opened;
    disks_above_.insert(above.begin(), above.end());
    // Another directory has files of its own that were left.
    if (std::exchange(was_open_, true)) cleaned_ = false;
  }
  if (is_back) Log(LogLevel::kInfo, "store.root_back", {{"root", path}});
  if (exchanged) Log(LogLevel::kWarning, "store.root_exchanged", {{"root", path}});
  return opened;
}

absl::Status PlainRoot::CheckStill(const Opened& opened) const {
  struct stat there{};
  if (::stat(path.c_str(), &there) == 0 && IsSame(opened, there)) return absl::OkStatus();
  return absl::UnavailableError("block root " + path +
                                " leads elsewhere by now: what was stored is not there");
}

void PlainRoot::TellFailed(const absl::Status& why) const {
  bool news = false;
  {
    MutexLock lock(&mutex_);
    news = trouble_.ok();
    trouble_ = why;
    opened_ = nullptr;
  }
  if (!news) return;
  Log(LogLevel::kWarning, "store.root_failed", {{"root", path}, {"status", StatusText(why)}});
}

absl::Status PlainRoot::trouble() const {
  MutexLock lock(&mutex_);
  return trouble_;
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
  ECPIPE_ASSIGN_OR_RETURN(const std::shared_ptr<const Opened> opened_root, Use());
  const int root_fd = opened_root->fd.get();
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
  ECPIPE_ASSIGN_OR_RETURN(const std::shared_ptr<const Opened> opened_root, Use());
  const int root_fd = opened_root->fd.get();
  struct statvfs space{};
  if (::fstatvfs(root_fd, &space) != 0) return ErrnoStatus(errno, "statvfs " + path);
  return DiskRoom{opened_root->device, uint64_t{space.f_bavail} * space.f_frsize,
                  uint64_t{space.f_blocks} * space.f_frsize};
}

absl::StatusOr<PlainRoot::RoomForBlock> PlainRoot::RoomFor(const std::string& block_id) const {
  ECPIPE_RETURN_IF_ERROR(RootFault("open", number));
  ECPIPE_ASSIGN_OR_RETURN(const std::shared_ptr<const Opened> opened_root, Use());
  const int root_fd = opened_root->fd.get();
  struct stat info{};
  const bool has = ::fstatat(root_fd, block_id.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0;
  struct statvfs space{};
  if (::fstatvfs(root_fd, &space) != 0) return ErrnoStatus(errno, "statvfs " + path);
  return RoomForBlock{has, opened_root->device, uint64_t{space.f_bavail} * space.f_frsize};
}

absl::StatusOr<StoreInventory> PlainRoot::Count() const {
  ECPIPE_RETURN_IF_ERROR(RootFault("count", number));
  ECPIPE_ASSIGN_OR_RETURN(const std::shared_ptr<const Opened> opened_root, Use());
  const int root_fd = opened_root->fd.get();
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

absl::StatusOr<PlainRoot::Names> PlainRoot::NamesAfter(
    const std::string& after, const std::shared_ptr<const Opened>& opened) const {
  Names kept;
  {
    MutexLock lock(&mutex_);
    kept = std::exchange(names_, {});
  }
  // The first page of a listing is of what is there now.
  const bool goes_on = !after.empty() && kept.of.lock() == opened && kept.after <= after;
  if (goes_on && (kept.to_the_end || (!kept.names.empty() && after < kept.names.back()))) {
    return kept;
  }
  Names read{.of = opened, .after = after, .names = {}, .to_the_end = true};
  const auto keep_first = [&read] {
    const auto end = read.names.begin() + static_cast<std::ptrdiff_t>(kNamesAtOnce);
    std::nth_element(read.names.begin(), end, read.names.end());
    read.names.erase(end, read.names.end());
    read.to_the_end = false;
  };
  ECPIPE_RETURN_IF_ERROR(ForEachName(opened->fd.get(), path, [&](int, const char* name) {
    if (name <= after) return;
    if (read.names.size() == 2 * kNamesAtOnce) keep_first();
    read.names.emplace_back(name);
  }));
  if (read.names.size() > kNamesAtOnce) keep_first();
  std::sort(read.names.begin(), read.names.end());
  return read;
}

absl::StatusOr<std::vector<BlockFile>> PlainRoot::List(const std::string& after,
                                                       size_t most) const {
  ECPIPE_RETURN_IF_ERROR(RootFault("count", number));
  ECPIPE_ASSIGN_OR_RETURN(const std::shared_ptr<const Opened> opened_root, Use());
  std::vector<BlockFile> files;
  std::string last = after;
  while (files.size() < most) {
    ECPIPE_ASSIGN_OR_RETURN(Names read, NamesAfter(last, opened_root));
    auto name = std::upper_bound(read.names.begin(), read.names.end(), last);
    for (; name != read.names.end() && files.size() < most; ++name) {
      last = *name;
      struct stat info{};
      if (IsFile(opened_root->fd.get(), name->c_str(), &info)) {
        files.push_back(FileOf(*name, info));
      }
    }
    if (name == read.names.end() && read.to_the_end) break;
    MutexLock lock(&mutex_);
    names_ = std::move(read);
  }
  return files;
}

absl::Status PlainRoot::Remove(const BlockFile& file, TimePoint deadline) const {
  ECPIPE_RETURN_IF_ERROR(RootFault("open", number));
  ECPIPE_ASSIGN_OR_RETURN(const std::shared_ptr<const Opened> opened_root, Use());
  const int root_fd = opened_root->fd.get();
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
