// SPDX-License-Identifier: Apache-2.0
#include "helper/store/qfs/qfs_store.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <utility>

#include "base/mutex.h"
#include "base/status.h"
#include "base/thread.h"
#include "helper/store/directory.h"
#include "helper/store/qfs/qfs_chunk_file.h"
#include "helper/store/qfs/qfs_header.h"
#include "model/systems/qfs_chunk.h"

namespace ecpipe {
namespace {

// Of all looks together: the coordinator waits two seconds for a part to start.
constexpr Duration kOpenPatience = std::chrono::seconds(1);
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

// What the directories found of one chunk; shared with a directory that answers too late.
struct Search {
  Mutex mutex;
  std::unique_ptr<BlockReader> found ABSL_GUARDED_BY(mutex);
  absl::Status failure ABSL_GUARDED_BY(mutex);

  bool Ended() {
    MutexLock lock(&mutex);
    return found != nullptr || absl::IsDataLoss(failure);
  }
  void Note(OpenedChunk opened) {
    MutexLock lock(&mutex);
    if (opened.ok()) {
      found = *std::move(opened);
    } else if (!absl::IsNotFound(opened.status())) {
      failure = opened.status();
    }
  }
};

using ChunkList = std::vector<std::pair<QfsChunkId, ListedBlock>>;

// By directory; shared with one that answers too late.
struct Scanned {
  explicit Scanned(size_t directories) : chunks(directories) {}

  Mutex mutex;
  std::vector<ChunkList> chunks ABSL_GUARDED_BY(mutex);
};

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

class QfsStore : public BlockStore {
 public:
  QfsStore(std::vector<std::string> directories, std::string storage_id, Duration scan_interval,
           QfsDirectories::Opener open)
      : storage_id_(std::move(storage_id)),
        scan_interval_(scan_interval),
        last_(directories.size()),
        scans_(directories, open),
        opens_(std::move(directories), std::move(open)),
        thread_([this] { Run(); }) {}

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
    std::string reasons;
    const TimePoint give_up = Clock::System().Now() + kOpenPatience;
    // What is found nowhere may have been moved to a directory that was looked at before.
    for (int look = 0; look < 2; ++look) {
      const auto search = std::make_shared<Search>();
      const std::vector<absl::Status> outcomes = opens_.Each(
          give_up - Clock::System().Now(),
          [&](size_t) -> QfsDirectories::Work {
            return [search, chunk](int directory) {
              search->Note(OpenIn(directory, chunk));
              return absl::OkStatus();
            };
          },
          [&] { return search->Ended(); });
      reasons.clear();
      for (const absl::Status& outcome : outcomes) {
        if (!outcome.ok()) reasons += "; " + std::string(outcome.message());
      }
      MutexLock lock(&search->mutex);
      if (search->found != nullptr) return std::move(search->found);
      if (!search->failure.ok()) return search->failure;
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
    MutexLock lock(&mutex_);
    return inventory_;
  }
  TakenListing Listing() override {
    MutexLock lock(&mutex_);
    return listing_;
  }
  std::string storage_id() const override { return storage_id_; }

 private:
  void Run() {
    while (true) {
      Scan();
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

  void Scan() {
    const auto scanned = std::make_shared<Scanned>(scans_.size());
    const std::vector<absl::Status> outcomes = scans_.Each(
        kScanPatience,
        [&](size_t i) -> QfsDirectories::Work {
          return [scanned, i](int directory) -> absl::Status {
            ECPIPE_ASSIGN_OR_RETURN(ChunkList chunks, ListChunks(directory));
            MutexLock lock(&scanned->mutex);
            scanned->chunks[i] = std::move(chunks);
            return absl::OkStatus();
          };
        },
        [this] { return stopping(); });
    StoreInventory inventory;
    for (size_t i = 0; i < outcomes.size(); ++i) {
      if (!outcomes[i].ok()) {
        inventory.failed_roots.push_back(scans_.path(i) + ": " +
                                         std::string(outcomes[i].message()));
      }
      // What only cannot be listed now has what it had.
      if (!outcomes[i].ok() && !absl::IsNotFound(outcomes[i])) continue;
      MutexLock lock(&scanned->mutex);
      last_[i] = std::move(scanned->chunks[i]);
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
  std::vector<ChunkList> last_;  // by directory; used by the thread alone
  // A listing may take long, and must not keep those waiting who open chunks.
  QfsDirectories scans_;
  QfsDirectories opens_;
  Mutex mutex_;
  CondVar stop_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  StoreInventory inventory_ ABSL_GUARDED_BY(mutex_);
  TakenListing listing_ ABSL_GUARDED_BY(mutex_);
  Thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<BlockStore>> OpenQfsStore(std::vector<std::string> directories,
                                                         const std::string& chunkserver,
                                                         Duration scan_interval,
                                                         QfsDirectories::Opener open) {
  if (directories.empty()) return absl::InvalidArgumentError("[helper] roots names no directory");
  ECPIPE_ASSIGN_OR_RETURN(std::string storage_id, QfsStorageId(chunkserver));
  return std::make_unique<QfsStore>(std::move(directories), std::move(storage_id), scan_interval,
                                    std::move(open));
}

}  // namespace ecpipe
