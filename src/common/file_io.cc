// SPDX-License-Identifier: Apache-2.0
#include "common/file_io.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "common/status.h"

namespace ecpipe {

absl::StatusOr<UniqueFd> OpenForReading(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
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
    if (got < 0) return ErrnoStatus(errno, "read");
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
    if (put < 0) return ErrnoStatus(errno, "write");
    offset += static_cast<uint64_t>(put);
    bytes = bytes.subspan(static_cast<size_t>(put));
  }
  return absl::OkStatus();
}

absl::StatusOr<AtomicFile> AtomicFile::Create(const std::string& path) {
  std::string temporary = path + ".XXXXXX.tmp";
  UniqueFd fd(::mkostemps(temporary.data(), 4, O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus(errno, "create a temporary file for " + path);
  // mkostemps makes the file private; a repaired block gets the rights that any new file would get.
  const mode_t mask = ::umask(0);
  ::umask(mask);
  ::fchmod(fd.get(), 0666 & ~mask);
  return AtomicFile(path, std::move(temporary), std::move(fd));
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      fd_(std::move(other.fd_)) {}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

absl::Status AtomicFile::WriteAt(uint64_t offset, std::span<const uint8_t> bytes) {
  return Annotate(WriteFully(fd_.get(), offset, bytes), temporary_);
}

absl::Status AtomicFile::Commit() {
  if (::fsync(fd_.get()) != 0) return ErrnoStatus(errno, "fsync " + temporary_);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    return ErrnoStatus(errno, "rename " + temporary_ + " to " + path_);
  }
  temporary_.clear();
  const size_t slash = path_.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path_.substr(0, slash + 1);
  const UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid() || ::fsync(fd.get()) != 0) return ErrnoStatus(errno, "fsync " + directory);
  return absl::OkStatus();
}

}  // namespace ecpipe
