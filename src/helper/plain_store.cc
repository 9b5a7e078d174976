// SPDX-License-Identifier: Apache-2.0
#include "helper/plain_store.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>

#include <cerrno>

#include "common/block_id.h"
#include "common/file_io.h"
#include "common/log.h"
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
      const ssize_t got = ::pread(fd_.get(), out.data(), out.size(), static_cast<off_t>(offset));
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
    const ssize_t got = ::preadv2(fd_.get(), &part, 1, static_cast<off_t>(offset), RWF_NOWAIT);
    // A short read, EAGAIN, or a file system without this flag: the waiting read finds out.
    return got == static_cast<ssize_t>(out.size());
  }

 private:
  const UniqueFd fd_;
  const uint64_t bytes_;
};

class PlainBlockWriter : public BlockWriter {
 public:
  explicit PlainBlockWriter(AtomicFile file) : file_(std::move(file)) {}

  absl::Status WriteAt(uint64_t offset, std::span<const uint8_t> bytes) override {
    return file_.WriteAt(offset, bytes);
  }
  absl::Status Commit() override { return file_.Commit(); }

 private:
  AtomicFile file_;
};

struct Root {
  std::string path;
  UniqueFd fd;  // what is read is read below this, wherever the path leads by then
};

struct CloseDir {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

class PlainStore : public BlockStore {
 public:
  explicit PlainStore(std::vector<Root> roots) : roots_(std::move(roots)) {}

  absl::StatusOr<std::unique_ptr<BlockReader>> Open(const std::string& block_id) override {
    ECPIPE_RETURN_IF_ERROR(ValidateBlockId(block_id));
    for (const Root& root : roots_) {
      // O_NONBLOCK: a FIFO under this name must not hang the open; it is refused below.
      UniqueFd fd(::openat(root.fd.get(), block_id.c_str(),
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

  absl::StatusOr<std::unique_ptr<BlockWriter>> Create(const std::string& block_id,
                                                      uint64_t bytes) override {
    ECPIPE_RETURN_IF_ERROR(ValidateBlockId(block_id));
    ECPIPE_ASSIGN_OR_RETURN(const Root* root, RootFor(block_id, bytes));
    ECPIPE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(root->path + "/" + block_id));
    return std::make_unique<PlainBlockWriter>(std::move(file));
  }

  absl::StatusOr<StoreInventory> TakeInventory() override {
    StoreInventory inventory;
    for (const Root& root : roots_) {
      ECPIPE_RETURN_IF_ERROR(AddRoot(root.fd.get(), &inventory));
    }
    return inventory;
  }

 private:
  // The root that has the block already, so that no second copy comes about; else the emptiest.
  absl::StatusOr<const Root*> RootFor(const std::string& block_id, uint64_t bytes) {
    const Root* best = nullptr;
    uint64_t best_free = 0;
    for (const Root& root : roots_) {
      struct stat info{};
      if (::fstatat(root.fd.get(), block_id.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0) return &root;
      struct statvfs space{};
      if (::fstatvfs(root.fd.get(), &space) != 0) return ErrnoStatus(errno, "statvfs " + root.path);
      const uint64_t free = uint64_t{space.f_bavail} * space.f_frsize;
      if (best != nullptr && free <= best_free) continue;
      best = &root;
      best_free = free;
    }
    if (best_free >= bytes) return best;
    return absl::ResourceExhaustedError("no block root has " + std::to_string(bytes) +
                                        " bytes free for block " + block_id);
  }

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

  const std::vector<Root> roots_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<BlockStore>> OpenPlainStore(const std::vector<std::string>& roots) {
  std::vector<Root> opened;
  for (const std::string& root : roots) {
    UniqueFd fd(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd.valid()) return ErrnoStatus(errno, "open block root " + root);
    // A root that cannot be cleaned can still be read.
    if (const absl::StatusOr<int> removed = RemoveAbandonedFiles(root); removed.value_or(0) > 0) {
      Log(LogLevel::kInfo, "store.cleaned", {{"root", root}, {"files", std::to_string(*removed)}});
    }
    opened.push_back({root, std::move(fd)});
  }
  return std::make_unique<PlainStore>(std::move(opened));
}

}  // namespace ecpipe
