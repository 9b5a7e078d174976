// SPDX-License-Identifier: Apache-2.0
#include "helper/store/qfs/qfs_store.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <utility>

#include "base/guarded.h"
#include "base/mutex.h"
#include "base/process/log.h"
#include "base/status.h"
#include "base/thread.h"
#include "helper/store/directory.h"
#include "helper/store/hung_reads.h"
#include "helper/store/qfs/qfs_chunk_file.h"
#include "helper/store/qfs/qfs_header.h"
#include "helper/store/root_calls.h"
#include "model/systems/qfs_chunk.h"

namespace ecpipe {
namespace {

constexpr Duration kScanPatience = std::chrono::seconds(30);

using OpenedChunk = absl::StatusOr<std::unique_ptr<BlockReader>>;

// O_NONBLOCK: a FIFO under this name must not hang the open; it is refused then.
OpenedChunk OpenIn(int directory, const QfsChunkId& chunk) {
  UniqueFd fd(::openat(directory, chunk.FileName().c_str(),
                       O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.valid()) return ErrnoStatus(errno, "open " + chunk.FileName());
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return ErrnoStatus(errno, "stat " + chunk.FileName());
  if (!S_ISREG(info.st_mode)) {
    return absl::PermissionDeniedError(chunk.FileName() + " is not a regular file");
  }
  return OpenQfsChunk(chunk, std::move(fd));
}

using ChunkList = std::vector<std::pair<QfsChunkId, ListedBlock>>;

absl::StatusOr<ChunkList> ListChunks(int parent) {
  const Directory directory = OpenDirectory(parent, ".");
  if (directory == nullptr) return ErrnoStatus(errno, "list the chunk directory");
  ChunkList chunks;
  while (true) {
    errno = 0;
    const dirent* const entry = ::readdir(directory.get());
    if (entry == nullptr && errno != 0) return ErrnoStatus(errno, "list the chunk directory");
    if (entry == nullptr) return chunks;
    const std::optional<QfsChunkId> id = QfsChunkOfFile(entry->d_name);
    struct stat info{};
    if (!id || id->version == 0) continue;
    if (::fstatat(::dirfd(directory.get()), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) {
      continue;
    }
    if (!S_ISREG(info.st_mode) || static_cast<uint64_t>(info.st_size) < kQfsDataOffset) continue;
    // By the file's length, which can be some KiB more than the chunk's: headers are not read here.
    const uint64_t bytes =
        std::min(static_cast<uint64_t>(info.st_size) - kQfsDataOffset, kQfsChunkBytes);
    const int64_t changed = int64_t{info.st_ctim.tv_sec} * 1'000'000'000 + info.st_ctim.tv_nsec;
    chunks.push_back({*id, {{id->chunk, static_cast<uint64_t>(id->version), bytes}, changed}});
  }
}

UniqueFd OpenPath(const std::string& path) {
  return UniqueFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

// A chunk directory. All that may wait for its disk runs on threads of its own, so that one that
// hangs or has vanished costs only itself.
class ChunkDirectory {
 public:
  ChunkDirectory(const std::string& path, DirectoryOpener open)
      : path_(path),
        open_(open ? std::move(open) : DirectoryOpener(OpenPath)),
        calls_(path),
        listing_(path, {.max_threads = 1, .long_calls = true}),
        reads_(path) {}

  const std::string& path() const { return path_; }
  const HungReads& reads() const { return reads_; }

  RootCalls::Pending<std::unique_ptr<BlockReader>> BeginOpen(const QfsChunkId& chunk) {
    return Begin<std::unique_ptr<BlockReader>>(
        &calls_, [chunk](int directory) { return OpenIn(directory, chunk); });
  }
  // It may take long, and must not keep those waiting who open chunks.
  RootCalls::Pending<ChunkList> BeginListing() { return Begin<ChunkList>(&listing_, ListChunks); }

 private:
  // Opens the directory each time: it may have been mounted anew.
  template <typename T>
  RootCalls::Pending<T> Begin(RootCalls* calls, std::function<absl::StatusOr<T>(int)> work) {
    return calls->Begin<T>(
        [path = path_, open = open_, work = std::move(work)]() -> absl::StatusOr<T> {
          const UniqueFd directory = open(path);
          if (!directory.valid()) return ErrnoStatus(errno, "open chunk directory " + path);
          return work(directory.get());
        });
  }

  const std::string path_;
  const DirectoryOpener open_;
  RootCalls calls_;
  RootCalls listing_;
  const HungReads reads_;
};

class QfsStore : public BlockStore {
 public:
  QfsStore(const std::vector<std::string>& directories, std::string storage_id,
           Duration scan_interval, const DirectoryOpener& open)
      : storage_id_(std::move(storage_id)), scan_interval_(scan_interval) {
    for (const std::string& path : directories) {
      directories_.push_back(std::make_unique<ChunkDirectory>(path, open));
    }
    last_.resize(directories.size());
    thread_ = Thread([this] { Run(); });
  }

  ~QfsStore() override {
    {
      MutexLock lock(&mutex_);
      stopping_ = true;
    }
    stop_.NotifyAll();
    thread_.join();
  }

  absl::StatusOr<std::unique_ptr<BlockReader>> Open(const std::string& block_id) override {
    ECPIPE_ASSIGN_OR_RETURN(const QfsChunkId chunk, ParseQfsChunk(block_id));
    if (chunk.version == 0) {
      return absl::NotFoundError("block " + block_id + " is being written or recovered");
    }
    const TimePoint deadline = Clock::System().Now() + RootCalls::kPatience;
    std::string reasons;
    // What is found nowhere may have been moved to a directory that was looked at before.
    for (int look = 0; look < 2; ++look) {
      reasons.clear();
      absl::Status failure;
      for (OpenedChunk& opened : OpenInEach(chunk, deadline)) {
        if (opened.ok()) return std::move(opened);
        reasons += "; " + std::string(opened.status().message());
        // That it could not be read says more than that it is not there.
        if (!absl::IsNotFound(opened.status()) && !absl::IsDataLoss(failure)) {
          failure = opened.status();
        }
      }
      if (!failure.ok()) return failure;
    }
    return absl::NotFoundError("block " + block_id + " is in no chunk directory that can be read" +
                               reasons);
  }

  absl::StatusOr<std::unique_ptr<BlockWriter>> Create(const std::string& block_id,
                                                      uint64_t) override {
    return absl::FailedPreconditionError("block " + block_id +
                                         " cannot be stored here: QFS writes its chunks itself");
  }

  absl::StatusOr<StoreInventory> TakeInventory() override {
    StoreInventory inventory;
    {
      MutexLock lock(&mutex_);
      inventory = inventory_;
    }
    for (const auto& directory : directories_) {
      const absl::Status hung = directory->reads().Check();
      if (!hung.ok()) inventory.failed_roots.emplace_back(hung.message());
    }
    return inventory;
  }
  absl::Status TroubleOf(const std::string& path) override {
    for (const auto& directory : directories_) {
      if (directory->path() == path) return directory->reads().Check();
    }
    return absl::OkStatus();
  }
  TakenListing Listing() override {
    MutexLock lock(&mutex_);
    return listing_;
  }
  std::string storage_id() const override { return storage_id_; }
  bool missing_ends_are_zeros() const override { return true; }

 private:
  // In each directory, in order.
  std::vector<OpenedChunk> OpenInEach(const QfsChunkId& chunk, TimePoint deadline) {
    using Pending = RootCalls::Pending<std::unique_ptr<BlockReader>>;
    std::vector<absl::StatusOr<Pending>> pending;
    for (const auto& directory : directories_) {
      absl::Status hung = directory->reads().Check();
      // What is read there would hang as well.
      pending.push_back(hung.ok() ? absl::StatusOr<Pending>(directory->BeginOpen(chunk)) : hung);
    }
    std::vector<OpenedChunk> opened;
    for (size_t i = 0; i < pending.size(); ++i) {
      OpenedChunk chunk_there = pending[i].ok() ? pending[i]->Await(deadline) : pending[i].status();
      if (chunk_there.ok()) chunk_there = directories_[i]->reads().Watch(*std::move(chunk_there));
      opened.push_back(std::move(chunk_there));
    }
    return opened;
  }

  void Run() {
    while (true) {
      const absl::Status scanned = Guarded([&] {
        Scan();
        return absl::OkStatus();
      });
      if (!scanned.ok()) {
        Log(LogLevel::kWarning, "store.scan_failed", {{"status", StatusText(scanned)}});
      }
      const TimePoint next = Clock::System().Now() + scan_interval_;
      MutexLock lock(&mutex_);
      while (!stopping_ && stop_.WaitUntil(lock, next)) {
      }
      if (stopping_) return;
    }
  }

  bool stopping() {
    MutexLock lock(&mutex_);
    return stopping_;
  }

  // Waits for no directory that hangs once the store is to end.
  absl::StatusOr<ChunkList> AwaitListing(RootCalls::Pending<ChunkList>* listing,
                                         TimePoint deadline) {
    constexpr Duration kLook = std::chrono::milliseconds(100);
    TimePoint now = Clock::System().Now();
    while (now < deadline && !stopping() && !listing->HasEndedBy(std::min(deadline, now + kLook))) {
      now = Clock::System().Now();
    }
    return listing->Await(now);
  }

  void Scan() {
    const TimePoint deadline = Clock::System().Now() + kScanPatience;
    std::vector<RootCalls::Pending<ChunkList>> listings;
    for (const auto& directory : directories_) listings.push_back(directory->BeginListing());
    StoreInventory inventory;
    for (size_t i = 0; i < listings.size(); ++i) {
      absl::StatusOr<ChunkList> listed = AwaitListing(&listings[i], deadline);
      if (listed.ok()) {
        last_[i] = *std::move(listed);
        continue;
      }
      inventory.failed_roots.push_back(directories_[i]->path() + ": " +
                                       std::string(listed.status().message()));
      // What only cannot be listed now has what it had.
      if (absl::IsNotFound(listed.status())) last_[i].clear();
    }
    std::map<int64_t, ListedBlock> chunks;  // of two versions the newer counts
    for (const ChunkList& in_directory : last_) {
      for (const auto& [id, listed] : in_directory) {
        ListedBlock& known = chunks[id.chunk];
        if (known.block.id == 0 || known.block.stamp < listed.block.stamp) known = listed;
      }
    }
    auto listing = std::make_shared<BlockListing>();
    std::vector<ListedBlock>& pool = (*listing)[kQfsPool];
    for (const auto& [id, listed] : chunks) {
      pool.push_back(listed);
      ++inventory.block_count;
      inventory.block_bytes += listed.block.bytes;
    }
    MutexLock lock(&mutex_);
    inventory_ = std::move(inventory);
    listing_ = {listing_.scans + 1, std::move(listing)};
  }

  const std::string storage_id_;
  const Duration scan_interval_;
  std::vector<std::unique_ptr<ChunkDirectory>> directories_;
  std::vector<ChunkList> last_;  // by directory; used by the thread alone
  Mutex mutex_;
  CondVar stop_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  StoreInventory inventory_ ABSL_GUARDED_BY(mutex_);
  TakenListing listing_ ABSL_GUARDED_BY(mutex_);
  Thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<BlockStore>> OpenQfsStore(
    const std::vector<std::string>& directories, const std::string& chunkserver,
    Duration scan_interval, const DirectoryOpener& open) {
  if (directories.empty()) return absl::InvalidArgumentError("[helper] roots names no directory");
  ECPIPE_ASSIGN_OR_RETURN(std::string storage_id, QfsStorageId(chunkserver));
  return std::make_unique<QfsStore>(directories, std::move(storage_id), scan_interval, open);
}

}  // namespace ecpipe
