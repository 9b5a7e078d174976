// SPDX-License-Identifier: Apache-2.0
#include "helper/store/plain_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/file_io.h"
#include "base/process/log.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "helper/store/directory.h"
#include "helper/store/plain_block.h"
#include "model/block_checksums.h"
#include "model/block_id.h"

namespace ecpipe {
namespace {

class PlainBlockWriter : public BlockWriter {
 public:
  // `directory` and `block_id` are where the checksum file goes; none is written without an id.
  PlainBlockWriter(AtomicFile file, uint64_t bytes, std::string directory, std::string block_id)
      : file_(std::move(file)),
        bytes_(bytes),
        directory_(std::move(directory)),
        block_id_(std::move(block_id)) {}

  absl::Status WriteAt(uint64_t offset, std::span<const uint8_t> bytes) override {
    return file_.WriteAt(offset, bytes);
  }

  absl::Status ReadAt(uint64_t offset, std::span<uint8_t> out) const override {
    return file_.ReadAt(offset, out);
  }

  absl::Status Commit() override {
    if (!block_id_.empty()) ECPIPE_RETURN_IF_ERROR(CommitChecksums());
    return file_.Commit();
  }

 private:
  // Read back, since ranges come in any order; the page cache has them still.
  absl::Status CommitChecksums() {
    ECPIPE_ASSIGN_OR_RETURN(ChecksumFileWriter checksums,
                            ChecksumFileWriter::Create(directory_, block_id_));
    std::vector<uint8_t> buffer(64 * size_t{kChecksumChunkBytes});
    for (uint64_t at = 0; at < bytes_; at += buffer.size()) {
      const auto step = static_cast<size_t>(std::min<uint64_t>(buffer.size(), bytes_ - at));
      const std::span<uint8_t> piece = std::span(buffer).first(step);
      ECPIPE_RETURN_IF_ERROR(file_.ReadAt(at, piece));
      ECPIPE_RETURN_IF_ERROR(checksums.Append(piece));
    }
    return checksums.Commit();
  }

  AtomicFile file_;
  const uint64_t bytes_;
  const std::string directory_;
  const std::string block_id_;
};

struct Root {
  std::string path;
  UniqueFd fd;  // what is read is read below this, wherever the path leads by then
};

class PlainStore : public BlockStore {
 public:
  PlainStore(std::vector<Root> roots, StoredChecksums checksums)
      : roots_(std::move(roots)), checksums_(checksums) {}

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
      return OpenPlainBlock(root.fd.get(), block_id, std::move(fd),
                            static_cast<uint64_t>(info.st_size));
    }
    return absl::NotFoundError("block " + block_id +
                               " is in none of the directories in [helper] roots");
  }

  absl::StatusOr<std::unique_ptr<BlockWriter>> Create(const std::string& block_id,
                                                      uint64_t bytes) override {
    ECPIPE_RETURN_IF_ERROR(ValidateBlockId(block_id));
    ECPIPE_ASSIGN_OR_RETURN(const Root* root, RootFor(block_id, bytes));
    ECPIPE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(root->path + "/" + block_id));
    // A checksum file that is there must go on being right.
    const bool known = ::faccessat(root->fd.get(), ChecksumFileName(block_id).c_str(), F_OK,
                                   AT_SYMLINK_NOFOLLOW) == 0;
    const bool write =
        known || (checksums_ == StoredChecksums::kWrite && CanHaveChecksumFile(block_id));
    return std::make_unique<PlainBlockWriter>(std::move(file), bytes, root->path,
                                              write ? block_id : "");
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
    return absl::ResourceExhaustedError("no directory in [helper] roots has " +
                                        std::to_string(bytes) + " bytes free for block " +
                                        block_id);
  }

  static absl::Status AddRoot(int root, StoreInventory* inventory) {
    // A descriptor of its own: the directory position is shared between duplicates.
    const Directory directory = OpenDirectory(root, ".");
    if (directory == nullptr) return ErrnoStatus(errno, "list block root");
    const int directory_fd = ::dirfd(directory.get());
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
  const StoredChecksums checksums_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<BlockStore>> OpenPlainStore(const std::vector<std::string>& roots,
                                                           StoredChecksums checksums) {
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
  return std::make_unique<PlainStore>(std::move(opened), checksums);
}

}  // namespace ecpipe
