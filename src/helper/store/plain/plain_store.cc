// SPDX-License-Identifier: Apache-2.0
#include "helper/store/plain/plain_store.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/clock.h"
#include "base/file_io.h"
#include "base/mutex.h"
#include "base/status.h"
#include "helper/store/plain/block_claims.h"
#include "helper/store/plain/plain_root.h"
#include "helper/store/root_calls.h"
#include "model/block_checksums.h"
#include "model/block_id.h"

namespace ecpipe {
namespace {

constexpr AtomicFile::Options kOwnFile = {.access = AtomicFile::Access::kService,
                                          .cache = AtomicFile::Cache::kDrop};

class PlainBlockWriter : public BlockWriter {
 public:
  // No checksum file is written without an id.
  PlainBlockWriter(std::shared_ptr<const PlainRoot> root, BlockClaims::Claim claim, AtomicFile file,
                   uint64_t bytes, std::string block_id)
      : root_(std::move(root)),
        claim_(std::move(claim)),
        file_(std::move(file)),
        bytes_(bytes),
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
    ECPIPE_ASSIGN_OR_RETURN(const int root, root_->Fd());
    ECPIPE_ASSIGN_OR_RETURN(
        ChecksumFileWriter checksums,
        ChecksumFileWriter::CreateBelow(root, root_->path, block_id_, kOwnFile));
    std::vector<uint8_t> buffer(64 * size_t{kChecksumChunkBytes});
    for (uint64_t at = 0; at < bytes_; at += buffer.size()) {
      const auto step = static_cast<size_t>(std::min<uint64_t>(buffer.size(), bytes_ - at));
      const std::span<uint8_t> piece = std::span(buffer).first(step);
      ECPIPE_RETURN_IF_ERROR(file_.ReadAt(at, piece));
      ECPIPE_RETURN_IF_ERROR(checksums.Append(piece));
    }
    return checksums.Commit();
  }

  const std::shared_ptr<const PlainRoot> root_;  // shared with the store
  const BlockClaims::Claim claim_;
  AtomicFile file_;
  const uint64_t bytes_;
  const std::string block_id_;
};

absl::StatusOr<std::unique_ptr<BlockWriter>> CreateIn(const std::shared_ptr<const PlainRoot>& root,
                                                      BlockClaims::Claim claim,
                                                      const std::string& block_id, uint64_t bytes,
                                                      StoredChecksums stored) {
  ECPIPE_ASSIGN_OR_RETURN(const int root_fd, root->Fd());
  ECPIPE_ASSIGN_OR_RETURN(AtomicFile file,
                          AtomicFile::CreateBelow(root_fd, root->path + "/" + block_id, kOwnFile));
  // A checksum file that is there must go on being right.
  const bool known =
      ::faccessat(root_fd, ChecksumFileName(block_id).c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
  const bool write = known || (stored == StoredChecksums::kWrite && CanHaveChecksumFile(block_id));
  return std::make_unique<PlainBlockWriter>(root, std::move(claim), std::move(file), bytes,
                                            write ? block_id : "");
}

// The latest count of a root. A count that takes longer than anybody waits ends here all the same.
struct LatestCount {
  Mutex mutex;
  StoreInventory inventory ABSL_GUARDED_BY(mutex);
  bool counted ABSL_GUARDED_BY(mutex) = false;
};

// A root with all that is needed to use it though it may hang.
struct Place {
  Place(const std::string& path, size_t number)
      : root(std::make_shared<const PlainRoot>(path, number)),
        calls(path),
        counting(path, {.max_threads = 1, .long_calls = true}),
        latest(std::make_shared<LatestCount>()) {}

  const std::shared_ptr<const PlainRoot> root;  // shared with calls and writers
  RootCalls calls;
  RootCalls counting;                         // takes as long as the directory is large
  const std::shared_ptr<LatestCount> latest;  // shared with the count under way
};

// Where the newest copy lies of blocks that may have several: one that is stored anew while the
// root of its old copy does not answer. Thread-safe.
class NewestCopies {
 public:
  void Note(const std::string& block_id, size_t root) {
    MutexLock lock(&mutex_);
    if (roots_.size() >= kMost && !roots_.contains(block_id)) roots_.erase(roots_.begin());
    roots_[block_id] = root;
  }
  std::optional<size_t> RootOf(const std::string& block_id) {
    MutexLock lock(&mutex_);
    const auto found = roots_.find(block_id);
    return found == roots_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  static constexpr size_t kMost = 100'000;  // about 10 MiB; such blocks are rare
  Mutex mutex_;
  std::map<std::string, size_t> roots_ ABSL_GUARDED_BY(mutex_);
};

bool Newer(const timespec& a, const timespec& b) {
  return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

class PlainStore : public BlockStore {
 public:
  PlainStore(const std::vector<std::string>& roots, StoredChecksums checksums)
      : checksums_(checksums) {
    for (const std::string& root : roots) {
      places_.push_back(std::make_unique<Place>(root, places_.size()));
    }
  }

  // Opens those that can be opened now. The error of the first if that is none, or of one that is
  // no directory.
  absl::Status OpenRoots() {
    std::vector<RootCalls::Pending<bool>> opening;
    for (const auto& place : places_) {
      opening.push_back(place->calls.Begin<bool>([root = place->root]() -> absl::StatusOr<bool> {
        ECPIPE_RETURN_IF_ERROR(root->Open());
        return true;
      }));
    }
    const auto opened = RootCalls::AwaitFirst(std::move(opening));
    const auto is_open = [](const absl::StatusOr<bool>& each) { return each.ok(); };
    const bool none = std::none_of(opened.begin(), opened.end(), is_open);
    std::vector<RootCalls::Pending<bool>> cleaning;
    for (size_t i = 0; i < opened.size(); ++i) {
      const absl::Status& status = opened[i].status();
      if (!status.ok() && (none || absl::IsInvalidArgument(status))) return status;
      if (!status.ok()) {
        places_[i]->root->TellFailed(status);
        continue;
      }
      cleaning.push_back(places_[i]->counting.Begin<bool>([root = places_[i]->root] {
        root->Clean();
        return true;
      }));
    }
    // A large directory goes on being cleaned while it is used.
    const TimePoint deadline = Clock::System().Now() + RootCalls::kPatience;
    for (auto& each : cleaning) each.HasEndedBy(deadline);
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<BlockReader>> Open(const std::string& block_id) override {
    ECPIPE_RETURN_IF_ERROR(ValidateBlockId(block_id));
    std::vector<absl::StatusOr<PlainRoot::FoundBlock>> copies = InEach<PlainRoot::FoundBlock>(
        [block_id](const PlainRoot& root) { return root.OpenBlock(block_id); });
    const std::optional<size_t> noted = newest_.RootOf(block_id);
    std::optional<size_t> best;
    size_t count = 0;
    absl::Status failure;
    for (size_t i = 0; i < copies.size(); ++i) {
      if (copies[i].ok()) {
        ++count;
        if (!best || Newer(copies[i]->modified, copies[*best]->modified)) best = i;
        // File systems tell no times apart that are a few milliseconds from each other.
        if (noted == i && !Newer(copies[*best]->modified, copies[i]->modified)) best = i;
      } else if (!absl::IsNotFound(copies[i].status()) && failure.ok()) {
        failure = copies[i].status();
      }
    }
    if (best && !failure.ok()) {
      const absl::Status& there = copies[noted.value_or(*best)].status();
      if (!there.ok() && !absl::IsNotFound(there)) return there;
    }
    if (count > 1) newest_.Note(block_id, *best);
    if (best) return std::move(copies[*best]->reader);
    // That it could not be looked for says more than that it is not elsewhere.
    if (!failure.ok()) return failure;
    return absl::NotFoundError("block " + block_id +
                               " is in none of the directories in [helper] roots");
  }

  absl::StatusOr<std::unique_ptr<BlockWriter>> Create(const std::string& block_id,
                                                      uint64_t bytes) override {
    ECPIPE_RETURN_IF_ERROR(ValidateBlockId(block_id));
    BlockClaims::Claim claim = claims_.ToStore(block_id);
    if (claim == nullptr) {
      return absl::UnavailableError("an older copy of block " + block_id + " is being removed");
    }
    ECPIPE_ASSIGN_OR_RETURN(Place * place, PlaceFor(block_id, bytes));
    return place->calls
        .Begin<std::unique_ptr<BlockWriter>>(
            [root = place->root, claim, block_id, bytes, checksums = checksums_] {
              return CreateIn(root, claim, block_id, bytes, checksums);
            })
        .Await(Clock::System().Now() + RootCalls::kPatience);
  }

  // Of a root that cannot be counted now the latest count goes on counting.
  absl::StatusOr<StoreInventory> TakeInventory() override {
    std::vector<RootCalls::Pending<bool>> counts;
    for (const auto& place : places_) {
      counts.push_back(place->counting.Begin<bool>(
          [root = place->root, latest = place->latest]() -> absl::StatusOr<bool> {
            ECPIPE_ASSIGN_OR_RETURN(StoreInventory counted, root->Count());
            MutexLock lock(&latest->mutex);
            latest->inventory = std::move(counted);
            latest->counted = true;
            return true;
          }));
    }
    const std::vector<absl::StatusOr<PlainRoot::DiskRoom>> looked =
        InEach<PlainRoot::DiskRoom>([](const PlainRoot& root) { return root.Disk(); });
    const TimePoint deadline = Clock::System().Now() + kCountPatience;
    StoreInventory inventory;
    std::set<dev_t> disks;
    for (size_t i = 0; i < places_.size(); ++i) {
      const absl::Status counted = counts[i].Await(deadline).status();
      // A directory that answers is only large.
      const bool large = absl::IsUnavailable(counted) && looked[i].ok();
      const absl::Status& failure = looked[i].ok() ? counted : looked[i].status();
      if (!failure.ok() && !large) {
        inventory.failed_roots.push_back(places_[i]->root->path + ": " +
                                         std::string(failure.message()));
      }
      // Two directories may be on one disk.
      if (looked[i].ok() && disks.insert(looked[i]->device).second) {
        inventory.free_bytes = inventory.free_bytes.value_or(0) + looked[i]->free_bytes;
        inventory.disk_bytes = inventory.disk_bytes.value_or(0) + looked[i]->all_bytes;
      }
      MutexLock lock(&places_[i]->latest->mutex);
      inventory.counting |= large && !places_[i]->latest->counted;
      inventory.block_count += places_[i]->latest->inventory.block_count;
      inventory.block_bytes += places_[i]->latest->inventory.block_bytes;
    }
    return inventory;
  }

  absl::StatusOr<std::vector<BlockFile>> ListFiles(const std::string& after, size_t most) override {
    std::vector<RootCalls::Pending<std::vector<BlockFile>>> lists;
    for (const auto& place : places_) {
      lists.push_back(place->counting.Begin<std::vector<BlockFile>>(
          [root = place->root, after, most] { return root->List(after, most); }));
    }
    const TimePoint deadline = Clock::System().Now() + kCountPatience;
    std::vector<BlockFile> files;
    for (auto& list : lists) {
      ECPIPE_ASSIGN_OR_RETURN(const std::vector<BlockFile> listed, list.Await(deadline));
      files.insert(files.end(), listed.begin(), listed.end());
    }
    const auto by_id = [](const BlockFile& a, const BlockFile& b) {
      return a.block_id < b.block_id;
    };
    std::stable_sort(files.begin(), files.end(), by_id);
    if (files.size() <= most) return files;
    // All files of a block, or none.
    files.erase(std::upper_bound(files.begin(), files.end(), files[most - 1], by_id), files.end());
    return files;
  }

  absl::Status Remove(const BlockFile& file) override {
    ECPIPE_RETURN_IF_ERROR(ValidateBlockId(file.block_id));
    const BlockClaims::Claim claim = claims_.ToRemove(file.block_id);
    if (claim == nullptr) {
      return absl::FailedPreconditionError("block " + file.block_id +
                                           " is being stored or removed");
    }
    const TimePoint deadline = Clock::System().Now() + RootCalls::kPatience;
    const std::vector<absl::StatusOr<bool>> removed =
        InEach<bool>([file, claim, deadline](const PlainRoot& root) -> absl::StatusOr<bool> {
          ECPIPE_RETURN_IF_ERROR(root.Remove(file, deadline));
          return true;
        });
    absl::Status failure;
    for (const absl::StatusOr<bool>& each : removed) {
      if (each.ok()) return absl::OkStatus();
      if (failure.ok() || !absl::IsNotFound(each.status())) failure = each.status();
    }
    return failure;
  }

 private:
  // With a root that is listed whole.
  static constexpr Duration kCountPatience = std::chrono::seconds(5);

  // What the call returns for each root, in order. UNAVAILABLE for one that does not answer.
  template <typename T>
  std::vector<absl::StatusOr<T>> InEach(
      const std::function<absl::StatusOr<T>(const PlainRoot&)>& call) {
    const TimePoint deadline = Clock::System().Now() + RootCalls::kPatience;
    std::vector<RootCalls::Pending<T>> pending;
    for (const auto& place : places_) {
      pending.push_back(place->calls.Begin<T>([root = place->root, call] { return call(*root); }));
    }
    std::vector<absl::StatusOr<T>> results;
    for (auto& each : pending) results.push_back(each.Await(deadline));
    return results;
  }

  // The root that has the block already, so that no second copy comes about; else the emptiest.
  absl::StatusOr<Place*> PlaceFor(const std::string& block_id, uint64_t bytes) {
    const std::vector<absl::StatusOr<PlainRoot::RoomForBlock>> rooms =
        InEach<PlainRoot::RoomForBlock>(
            [block_id](const PlainRoot& root) { return root.RoomFor(block_id); });
    Place* best = nullptr;
    uint64_t best_free = 0;
    absl::Status failure;
    for (size_t i = 0; i < rooms.size(); ++i) {
      if (!rooms[i].ok()) {
        failure = rooms[i].status();
        continue;
      }
      if (rooms[i]->has_block) return places_[i].get();
      if (best != nullptr && rooms[i]->free_bytes <= best_free) continue;
      best = places_[i].get();
      best_free = rooms[i]->free_bytes;
    }
    if (best != nullptr && best_free >= bytes) {
      // An older copy may lie where nobody could look.
      if (!failure.ok()) newest_.Note(block_id, best->root->number);
      return best;
    }
    if (best == nullptr) return failure;
    return absl::ResourceExhaustedError("no directory in [helper] roots has " +
                                        std::to_string(bytes) + " bytes free for block " +
                                        block_id);
  }

  const StoredChecksums checksums_;
  NewestCopies newest_;
  BlockClaims claims_;
  std::vector<std::unique_ptr<Place>> places_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<BlockStore>> OpenPlainStore(const std::vector<std::string>& roots,
                                                           StoredChecksums checksums) {
  auto store = std::make_unique<PlainStore>(roots, checksums);
  ECPIPE_RETURN_IF_ERROR(store->OpenRoots());
  return store;
}

}  // namespace ecpipe
