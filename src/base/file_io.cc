// SPDX-License-Identifier: Apache-2.0
#include "base/file_io.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/fault_points.h"
#include "base/status.h"

namespace ecpipe {
namespace {

std::string NameOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }

bool Exists(int directory, const std::string& name) {
  struct stat info{};
  return ::fstatat(directory, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0;
}

absl::Status AlreadyExists(const std::string& path) {
  return absl::AlreadyExistsError("create " + path + ": the file exists already");
}

absl::Status SyncDirectory(int directory, const std::string& path) {
  const UniqueFd fd(::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid() || ::fsync(fd.get()) != 0) {
    return ErrnoStatus(errno, "fsync " + DirectoryOf(path));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<UniqueFd> OpenForReading(const std::string& path) {
  // O_NONBLOCK: a FIFO under this name must not hang the open; it is refused below.
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return ErrnoStatus(errno, "open " + path);
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return ErrnoStatus(errno, "stat " + path);
  if (!S_ISREG(info.st_mode)) return absl::InvalidArgumentError(path + " is not a regular file");
  return fd;
}

absl::StatusOr<uint64_t> FileBytes(int fd) {
  struct stat info{};
  if (::fstat(fd, &info) != 0) return ErrnoStatus(errno, "stat");
  return static_cast<uint64_t>(info.st_size);
}

absl::Status ReadFully(int fd, uint64_t offset, std::span<uint8_t> out) {
  while (!out.empty()) {
    const ssize_t got = ::pread(fd, out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, "read at byte " + std::to_string(offset));
    if (got == 0) return absl::OutOfRangeError("the file ends at byte " + std::to_string(offset));
    offset += static_cast<uint64_t>(got);
    out = out.subspan(static_cast<size_t>(got));
  }
  return absl::OkStatus();
}

absl::Status WriteFully(int fd, uint64_t offset, std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return ErrnoStatus(errno, "write at byte " + std::to_string(offset));
    offset += static_cast<uint64_t>(put);
    bytes = bytes.subspan(static_cast<size_t>(put));
  }
  return absl::OkStatus();
}

namespace {

// Takes the lock that says that a temporary file is being written. False with errno: EWOULDBLOCK
// when somebody else has it, or has removed the file meanwhile.
bool LockIfThere(int fd) {
  struct stat info{};
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) return false;
  if (::fstat(fd, &info) == 0 && info.st_nlink > 0) return true;
  errno = EWOULDBLOCK;
  return false;
}

}  // namespace

absl::StatusOr<int> RemoveAbandonedFiles(const std::string& directory) {
  std::error_code error;
  int removed = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(AtomicFile::kTempPrefix)) continue;
    const UniqueFd fd(::open(entry.path().c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (fd.valid() && LockIfThere(fd.get()) && ::unlink(entry.path().c_str()) == 0) ++removed;
  }
  if (error) return ErrnoStatus(error.value(), "list " + directory);
  return removed;
}

namespace {

// Has `take` make a file under one temporary name after the other, until it returns true or fails
// with another error than EEXIST or EINTR. The name that it took; `path` is for errors.
template <typename Take>
absl::StatusOr<std::string> TakeTemporaryName(const std::string& path, const Take& take) {
  // The counter makes names unique within the process, the pid between processes. So a name is
  // taken only by what a killed process with our pid left behind; the retries are for those.
  static std::atomic<uint64_t> counter{0};
  constexpr int kTries = 1000;
  const std::string stem = AtomicFile::kTempPrefix + std::to_string(::getpid()) + "-";
  for (int i = 0; i < kTries; ++i) {
    std::string temporary = stem + std::to_string(counter.fetch_add(1, std::memory_order_relaxed));
    if (take(temporary)) return temporary;
    if (errno == EEXIST || errno == EINTR) continue;
    return ErrnoStatus(errno, "create a temporary file for " + path);
  }
  return absl::ResourceExhaustedError(
      "create " + path + ": no name for a temporary file is free; delete the old files " +
      DirectoryOf(path) + stem + "*");
}

// A file that has no name can be given one through this.
std::string LinkOf(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

mode_t ModeOf(AtomicFile::Access access) {
  switch (access) {
    case AtomicFile::Access::kUmask:
      return 0666;
    case AtomicFile::Access::kService:
      return kServiceFileMode;
    case AtomicFile::Access::kPrivate:
      return 0600;
  }
  ECPIPE_CHECK(false);
}

// None where the file system cannot.
UniqueFd CreateUnnamed(int directory, mode_t mode) {
  if (!FaultPoint("file_io.unnamed").ok()) return {};
  UniqueFd fd(::openat(directory, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode));
  if (fd.valid() && ::access(LinkOf(fd.get()).c_str(), F_OK) != 0) fd.reset();
  return fd;
}

}  // namespace

absl::StatusOr<AtomicFile> AtomicFile::Create(const std::string& path, Existing existing) {
  return Create(path, Options{.existing = existing});
}

absl::StatusOr<AtomicFile> AtomicFile::Create(const std::string& path, const Options& options) {
  if (options.existing == Existing::kRefuse && Exists(AT_FDCWD, path)) return AlreadyExists(path);
  ECPIPE_ASSIGN_OR_RETURN(
      const OutputTarget target,
      FollowOutput(path, options.access == Access::kService ? OutputLinks::kOnlyToStream
                                                            : OutputLinks::kFollow));
  if (target.is_stream) return CreateForStream(target);
  UniqueFd directory(::open(DirectoryOf(target.path).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid()) return ErrnoStatus(errno, "create a temporary file for " + path);
  return CreateIn(std::move(directory), target.path, options);
}

absl::StatusOr<AtomicFile> AtomicFile::CreateForStream(const OutputTarget& target) {
  std::error_code error;
  const std::string directory = std::filesystem::temp_directory_path(error);
  if (error) return ErrnoStatus(error.value(), "find a directory for temporary files (TMPDIR)");
  UniqueFd opened(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!opened.valid()) return ErrnoStatus(errno, "create a temporary file in " + directory);
  // Its name is never taken: what it holds goes to the stream.
  ECPIPE_ASSIGN_OR_RETURN(
      AtomicFile file,
      CreateIn(std::move(opened), directory + "/" + kTempPrefix + "for-stream",
               Options{.existing = Existing::kReplace, .access = Access::kPrivate}));
  file.path_ = target.path;
  file.stream_ = target;
  return file;
}

absl::StatusOr<AtomicFile> AtomicFile::CreateBelow(int directory, const std::string& path,
                                                   const Options& options) {
  UniqueFd own(::openat(directory, ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!own.valid()) return ErrnoStatus(errno, "create a temporary file for " + path);
  return CreateIn(std::move(own), path, options);
}

absl::StatusOr<AtomicFile> AtomicFile::CreateIn(UniqueFd directory, const std::string& path,
                                                const Options& options) {
  const int below = directory.get();
  AtomicFile file(std::move(directory), path, options);
  if (options.existing == Existing::kRefuse && Exists(below, NameOf(path))) {
    return AlreadyExists(path);
  }
  const mode_t mode = ModeOf(options.access);
  file.fd_ = CreateUnnamed(below, mode);
  if (!file.fd_.valid()) {
    ECPIPE_ASSIGN_OR_RETURN(
        file.temporary_, TakeTemporaryName(path, [&](const std::string& name) {
          file.fd_ =
              UniqueFd(::openat(below, name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode));
          if (!file.fd_.valid()) return false;
          // Where a file system knows no locks the file is written all the same.
          if (LockIfThere(file.fd_.get()) || errno != EWOULDBLOCK) return true;
          errno = EEXIST;
          return false;
        }));
  }
  if (options.access != Access::kUmask && ::fchmod(file.fd_.get(), mode) != 0) {
    return ErrnoStatus(errno, "set the mode of a temporary file for " + path);
  }
  return file;
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : directory_(std::move(other.directory_)),
      path_(std::move(other.path_)),
      stream_(std::move(other.stream_)),
      temporary_(std::exchange(other.temporary_, {})),
      options_(other.options_),
      fd_(std::move(other.fd_)),
      since_write_back_(other.since_write_back_.load()) {}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) ::unlinkat(directory_.get(), temporary_.c_str(), 0);
}

absl::StatusOr<bool> AtomicFile::Reserve(uint64_t bytes) {
  ECPIPE_CHECK(fd_.valid());
  if (bytes == 0 || !FaultPoint("file_io.reserve").ok()) return false;
  // The file system would fill itself up before it says so.
  struct statvfs disk{};
  if (::fstatvfs(fd_.get(), &disk) == 0 && uint64_t{disk.f_bavail} * disk.f_frsize < bytes) {
    return ErrnoStatus(ENOSPC, "set " + std::to_string(bytes) + " bytes aside for " + path_);
  }
  int failed = 0;
  do {
    failed = ::fallocate(fd_.get(), FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes));
  } while (failed != 0 && errno == EINTR);
  if (failed == 0) return true;
  if (errno == ENOSPC || errno == EDQUOT) {
    return ErrnoStatus(errno, "set " + std::to_string(bytes) + " bytes aside for " + path_);
  }
  return false;  // what else is wrong with the disk the writes will tell
}

absl::Status AtomicFile::WriteAt(uint64_t offset, std::span<const uint8_t> bytes) {
  ECPIPE_CHECK(fd_.valid());
  ECPIPE_RETURN_IF_ERROR(Annotate(WriteFully(fd_.get(), offset, bytes), path_));
  if (options_.cache == Cache::kDrop) WriteBack(bytes.size());
  return absl::OkStatus();
}

void AtomicFile::WriteBack(size_t written) {
  // Some 50 ms of a hard disk.
  constexpr uint64_t kPieceBytes = uint64_t{8} << 20;
  if ((since_write_back_ += written) < kPieceBytes) return;
  since_write_back_ = 0;
  // Begins, and does not wait. Where it is not known Commit() writes all.
  ::sync_file_range(fd_.get(), 0, 0, SYNC_FILE_RANGE_WRITE);
}

absl::Status AtomicFile::ReadAt(uint64_t offset, std::span<uint8_t> out) const {
  ECPIPE_CHECK(fd_.valid());
  return Annotate(ReadFully(fd_.get(), offset, out), path_);
}

absl::Status AtomicFile::Rename() const {
  const int below = directory_.get();
  const std::string name = NameOf(path_);
  if (options_.existing == Existing::kReplace) {
    if (::renameat(below, temporary_.c_str(), below, name.c_str()) == 0) return absl::OkStatus();
    return ErrnoStatus(errno, "rename to " + path_);
  }
  if (::renameat2(below, temporary_.c_str(), below, name.c_str(), RENAME_NOREPLACE) == 0) {
    return absl::OkStatus();
  }
  if (errno == EEXIST) return AlreadyExists(path_);
  if (errno != EINVAL && errno != ENOSYS) return ErrnoStatus(errno, "rename to " + path_);
  // NFS does not know the flag. A hard link does not replace anything either.
  if (::linkat(below, temporary_.c_str(), below, name.c_str(), 0) != 0) {
    return errno == EEXIST ? AlreadyExists(path_) : ErrnoStatus(errno, "link to " + path_);
  }
  ::unlinkat(below, temporary_.c_str(), 0);
  return absl::OkStatus();
}

absl::Status AtomicFile::NameIt() {
  ::flock(fd_.get(), LOCK_EX | LOCK_NB);  // nobody else has it yet
  ECPIPE_ASSIGN_OR_RETURN(temporary_, TakeTemporaryName(path_, [&](const std::string& name) {
                            return ::linkat(AT_FDCWD, LinkOf(fd_.get()).c_str(), directory_.get(),
                                            name.c_str(), AT_SYMLINK_FOLLOW) == 0;
                          }));
  return absl::OkStatus();
}

absl::Status AtomicFile::CopyToStream(const StoppedFn& stopped) const {
  ECPIPE_ASSIGN_OR_RETURN(const uint64_t bytes, FileBytes(fd_.get()));
  ECPIPE_ASSIGN_OR_RETURN(const UniqueFd to, OpenStream(*stream_, stopped));
  std::vector<uint8_t> piece(std::min<uint64_t>(bytes, uint64_t{1} << 20));
  for (uint64_t at = 0; at < bytes;) {
    const auto some = std::span(piece).first(std::min<uint64_t>(bytes - at, piece.size()));
    ECPIPE_RETURN_IF_ERROR(ReadAt(at, some));
    ECPIPE_RETURN_IF_ERROR(Annotate(WriteStream(to.get(), some, stopped), path_));
    at += some.size();
  }
  // A disk says here what it could not write; what has nothing to make durable says that.
  if (::fsync(to.get()) != 0 && errno != EINVAL && errno != EROFS && errno != ENOTSUP) {
    return ErrnoStatus(errno, "fsync " + path_);
  }
  return absl::OkStatus();
}

absl::Status AtomicFile::Commit(const StoppedFn& stopped) {
  ECPIPE_CHECK(fd_.valid());
  if (stream_) return CopyToStream(stopped);
  if (::fsync(fd_.get()) != 0) return ErrnoStatus(errno, "fsync " + path_);
  if (options_.cache == Cache::kDrop) ::posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_DONTNEED);
  if (temporary_.empty()) ECPIPE_RETURN_IF_ERROR(NameIt());
  // Its duplicate keeps the lock until the file has its name: nobody takes it for abandoned.
  const UniqueFd lock(::fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0));
  if (!lock.valid()) return ErrnoStatus(errno, "keep the lock of " + path_);
  // NFS and quotas report a failed write as late as here.
  if (::close(fd_.release()) != 0 && errno != EINTR) return ErrnoStatus(errno, "close " + path_);
  ECPIPE_RETURN_IF_ERROR(Rename());
  temporary_.clear();
  if (absl::Status synced = SyncDirectory(directory_.get(), path_); !synced.ok()) {
    return absl::UnknownError(path_ +
                              " is written, but a crash of the machine may still lose it: " +
                              std::string(synced.message()));
  }
  return absl::OkStatus();
}

}  // namespace ecpipe
