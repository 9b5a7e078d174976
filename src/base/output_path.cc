// SPDX-License-Identifier: Apache-2.0
#include "base/output_path.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <optional>

#include "base/status.h"

namespace ecpipe {
namespace {

constexpr int kLookMillis = 50;  // between two looks whether a wait is to end
constexpr int kMostLinks = 40;  // as the kernel's own limit

// The descriptor that a path such as /proc/self/fd/1 or /dev/fd/1 means. It is written to as it is:
// to open it anew would begin at the first byte of a file that others append to.
std::optional<int> OwnDescriptor(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  const bool number = !name.empty() && name.size() < 7 &&
                      std::all_of(name.begin(), name.end(),
                                  [](char c) { return c >= '0' && c <= '9'; });
  struct stat directory{};
  struct stat own{};
  if (!number || ::stat(DirectoryOf(path).c_str(), &directory) != 0 ||
      ::stat("/proc/self/fd/", &own) != 0) {
    return std::nullopt;
  }
  if (directory.st_dev != own.st_dev || directory.st_ino != own.st_ino) return std::nullopt;
  return std::stoi(name);
}

absl::StatusOr<OutputTarget> OfDescriptor(const std::string& path, int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0) return ErrnoStatus(errno, "write to " + path);
  if ((flags & O_ACCMODE) == O_RDONLY) {
    return absl::PermissionDeniedError("write to " + path + ": it is open for reading only");
  }
  return OutputTarget{path, true, fd};
}

// A link of /proc/PID/fd leads to what has no path.
bool IsOfProc(const std::string& path) {
  struct statfs system{};
  return ::statfs(DirectoryOf(path).c_str(), &system) == 0 &&
         system.f_type == static_cast<decltype(system.f_type)>(PROC_SUPER_MAGIC);
}

// The kernel's rule: in a directory such as /tmp another user could lead this one anywhere.
absl::Status MayFollow(const std::string& link, const struct stat& info) {
  struct stat directory{};
  if (::stat(DirectoryOf(link).c_str(), &directory) != 0) {
    return ErrnoStatus(errno, "follow " + link);
  }
  const bool shared = (directory.st_mode & S_ISVTX) != 0 && (directory.st_mode & S_IWOTH) != 0;
  if (!shared || info.st_uid == ::geteuid() || info.st_uid == directory.st_uid) {
    return absl::OkStatus();
  }
  return absl::PermissionDeniedError("write to " + link + ": it is another user's link in " +
                                     DirectoryOf(link) + "; name the file that it leads to");
}

absl::StatusOr<std::string> LinkTarget(const std::string& link) {
  char text[PATH_MAX];
  const ssize_t bytes = ::readlink(link.c_str(), text, sizeof text);
  if (bytes < 0) return ErrnoStatus(errno, "follow " + link);
  std::string target(text, static_cast<size_t>(bytes));
  if (target.starts_with('/')) return target;
  return (link.starts_with('/') || link.find('/') != std::string::npos ? DirectoryOf(link) : "") +
         target;
}

absl::StatusOr<OutputTarget> OfNoLink(const std::string& path, const struct stat& info) {
  if (S_ISREG(info.st_mode)) return OutputTarget{path, false, -1};
  if (S_ISDIR(info.st_mode)) {
    return absl::InvalidArgumentError(path + " is a directory; name a file");
  }
  if (S_ISSOCK(info.st_mode)) {
    return absl::InvalidArgumentError(path + " is a socket: it cannot be opened by its path");
  }
  if (::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) != 0) {
    return ErrnoStatus(errno, "write to " + path);
  }
  return OutputTarget{path, true, -1};
}

// While it lives a reader that leaves is an error of the thread's own write, and no signal.
class NoPipeSignal {
 public:
  NoPipeSignal() {
    ::sigemptyset(&pipe_);
    ::sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    ::sigpending(&pending);
    was_pending_ = ::sigismember(&pending, SIGPIPE) == 1;
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoPipeSignal() {
    constexpr timespec kNow = {0, 0};
    if (!was_pending_) ::sigtimedwait(&pipe_, nullptr, &kNow);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoPipeSignal(const NoPipeSignal&) = delete;
  NoPipeSignal& operator=(const NoPipeSignal&) = delete;

 private:
  sigset_t pipe_{};
  sigset_t before_{};
  bool was_pending_ = false;
};

absl::Status Stopped() { return absl::CancelledError("the output is no longer wanted"); }

}  // namespace

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "./" : path.substr(0, slash + 1);
}

absl::StatusOr<OutputTarget> FollowOutput(const std::string& path, OutputLinks links) {
  std::string at = path;
  for (int passed = 0; passed <= kMostLinks; ++passed) {
    if (const auto own = OwnDescriptor(at)) return OfDescriptor(path, *own);
    struct stat info{};
    // What is wrong with its directory who creates the file will say.
    if (::lstat(at.c_str(), &info) != 0) return OutputTarget{at, false, -1};
    if (!S_ISLNK(info.st_mode)) return OfNoLink(at, info);
    struct stat behind{};
    const bool there = ::stat(at.c_str(), &behind) == 0;
    if (links == OutputLinks::kOnlyToStream) {
      const bool trusted = info.st_uid == ::geteuid() || info.st_uid == 0;
      // /dev/stdout, whatever that leads to.
      if (const auto next = LinkTarget(at); trusted && next.ok()) {
        if (const auto own = OwnDescriptor(*next)) return OfDescriptor(path, *own);
      }
      if (!trusted || !there || S_ISREG(behind.st_mode)) return OutputTarget{path, false, -1};
    }
    ECPIPE_RETURN_IF_ERROR(MayFollow(at, info));
    if (there && !S_ISREG(behind.st_mode) && IsOfProc(at)) return OfNoLink(at, behind);
    ECPIPE_ASSIGN_OR_RETURN(at, LinkTarget(at));
  }
  return ErrnoStatus(ELOOP, "write to " + path);
}

absl::StatusOr<UniqueFd> OpenStream(const OutputTarget& target, const StoppedFn& stopped) {
  while (true) {
    // Without O_NONBLOCK nobody could end the wait for a FIFO's reader, or for room.
    UniqueFd fd(target.own_descriptor >= 0
                    ? ::fcntl(target.own_descriptor, F_DUPFD_CLOEXEC, 0)
                    : ::open(target.path.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
    if (fd.valid()) return fd;
    const int error = errno;
    if (error != EINTR && error != ENXIO) return ErrnoStatus(error, "open " + target.path);
    if (error == ENXIO) ::poll(nullptr, 0, kLookMillis);  // no reader yet
    if (stopped && stopped()) return Stopped();
  }
}

absl::Status WriteStream(int fd, std::span<const uint8_t> bytes, const StoppedFn& stopped) {
  const NoPipeSignal no_signal;
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) {
      if (stopped && stopped()) return Stopped();
      continue;
    }
    if (put < 0 && errno == EAGAIN) {  // whoever shares the descriptor wants it so
      pollfd room{fd, POLLOUT, 0};
      if (::poll(&room, 1, kLookMillis) <= 0 && stopped && stopped()) return Stopped();
      continue;
    }
    // No peer of a repair: not UNAVAILABLE.
    if (put < 0 && errno == EPIPE) return absl::InternalError("its reader has closed it");
    if (put < 0) return ErrnoStatus(errno, "write");
    bytes = bytes.subspan(static_cast<size_t>(put));
  }
  return absl::OkStatus();
}

}  // namespace ecpipe
