// SPDX-License-Identifier: Apache-2.0
#include "helper/plain_store.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <cerrno>

#include "common/block_id.h"
#include "common/status.h"
#include "common/unique_fd.h"

namespace ecpipe {
namespace {

class PlainBlock : public BlockReader {
 public:
  PlainBlock(UniqueFd fd, uint64_t bytes) : fd_(std::move(fd)), bytes_(bytes) {
    ::posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  }

  uint64_t bytes() const override { return bytes_; }

  absl::Status ReadAt(uint64_t offset, std::span<uint8_t> out) override {
    while (!out.empty()) {
      const ssize_t got =
          ::pread(fd_.get(), out.data(), out.size(), static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return ErrnoStatus(errno, "read");
      if (got == 0) {
        return absl::DataLossError("the block ends at byte " + std::to_string(offset) +
                                   "; it has become shorter");
      }
      offset += static_cast<uint64_t>(got);
      out = out.subspan(static_cast<size_t>(got));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<bool> TryReadAt(uint64_t offset, std::span<uint8_t> out) override {
    iovec part{out.data(), out.size()};
    const ssize_t got =
        ::preadv2(fd_.get(), &part, 1, static_cast<off_t>(offset), RWF_NOWAIT);
    // A short read, EAGAIN, or a file system without this flag: the waiting read finds out.
    return got == static_cast<ssize_t>(out.size());
  }

 private:
  const UniqueFd fd_;
  const uint64_t bytes_;
};

struct CloseDir {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

class PlainStore : public BlockStore {
 public:
  explicit PlainStore(std::vector<UniqueFd> roots) : roots_(std::move(roots)) {}

  absl::StatusOr<std::unique_ptr<BlockReader>> Open(const std::string& block_id) override {
    ECPIPE_RETURN_IF_ERROR(ValidateBlockId(block_id));
    for (const UniqueFd& root : roots_) {
      // O_NONBLOCK: a FIFO under this name must not hang the open; it is refused below.
      UniqueFd fd(::openat(root.get(), block_id.c_str(),
                           O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
      if (!fd.valid() && errno == ENOENT) continue;
      if (!fd.valid()) return ErrnoStatus(errno, "open block " + block_id);
      struct stat info{};
      if (::fstat(fd.get(), &info) != 0) return ErrnoStatus(errno, "stat block " + block_id);
      if (!S_ISREG(info.st_mode)) {
        return absl::PermissionDeniedError("block " + block_id + " is not a regular file");
      }
      return std::make_unique<PlainBlock>(std::move(fd), static_cast<uint64_t>(info.st_size));
    }
    return absl::NotFoundError("block " + block_id + " is in none of the block roots");
  }

  absl::StatusOr<StoreInventory> TakeInventory() override {
    StoreInventory inventory;
    for (const UniqueFd& root : roots_) {
      ECPIPE_RETURN_IF_ERROR(AddRoot(root.get(), &inventory));
    }
    return inventory;
  }

 private:
  static absl::Status AddRoot(int root, StoreInventory* inventory) {
    // A descriptor of its own: the directory position is shared between duplicates.
    UniqueFd fd(::openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd.valid()) return ErrnoStatus(errno, "open block root");
    const std::unique_ptr<DIR, CloseDir> directory(::fdopendir(fd.get()));
    if (directory == nullptr) return ErrnoStatus(errno, "list block root");
    const int directory_fd = fd.release();  // the DIR owns it now
    while (const dirent* entry = ::readdir(directory.get())) {
      if (!ValidateBlockId(entry->d_name).ok()) continue;
      struct stat info{};
      if (::fstatat(directory_fd, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
      if (!S_ISREG(info.st_mode)) continue;
      ++inventory->block_count;
      inventory->block_bytes += static_cast<uint64_t>(info.st_size);
    }
    return absl::OkStatus();
  }

  const std::vector<UniqueFd> roots_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<BlockStore>> OpenPlainStore(const std::vector<std::string>& roots) {
  std::vector<UniqueFd> opened;
  for (const std::string& root : roots) {
    UniqueFd fd(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd.valid()) return ErrnoStatus(errno, "open block root " + root);
    opened.push_back(std::move(fd));
  }
  return std::make_unique<PlainStore>(std::move(opened));
}

}  // namespace ecpipe
