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

#include "base/bytes/sha256.h"
#include "base/clock.h"
#include "base/file_io.h"
#include "base/mutex.h"
#include "base/status.h"
#include "helper/store/hung_reads.h"
#include "helper/store/plain/block_claims.h"
#include "helper/store/plain/plain_root.h"
#include "helper/store/plain/promised_room.h"
#include "helper/store/root_calls.h"
#include "model/block_checksums.h"
#include "model/block_id.h"

namespace ecpipe {
namespace {

constexpr AtomicFile::Options kOwnFile = {.access = AtomicFile::Access::kService,
                                          .cache = AtomicFile::Cache::kDrop};

class PlainBlockWriter : public BlockWriter {
 public:
  // What a writer needs beside its file.
  struct Parts {
    std::shared_ptr<const PlainRoot> root;            // shared with the store
    std::shared_ptr<const PlainRoot::Opened> opened;  // shared with the root
    BlockClaims::Claim claim;
    std::shared_ptr<PromisedRoom::Promise> promise;  // shared with who made it; null: none
    uint64_t bytes = 0;
    std::string block_id;  // empty: no checksum file is written
  };

  PlainBlockWriter(Parts parts, AtomicFile file)
      : parts_(std::move(parts)), file_(std::move(file)) {}

  absl::Status WriteAt(uint64_t offset, std::span<const uint8_t> bytes) override {
    ECPIPE_RETURN_IF_ERROR(file_.WriteAt(offset, bytes));
    if (parts_.promise != nullptr) parts_.promise->Written(bytes.size());
    return absl::OkStatus();
  }

  absl::Status ReadAt(uint64_t offset, std::span<uint8_t> out) const override {
    return file_.ReadAt(offset, out);
  }

  void NoteSha256(const std::string& sha256) override { sha256_ = sha256; }

  absl::Status Commit() override {
    if (!parts_.block_id.empty()) ECPIPE_RETURN_IF_ERROR(CommitChecksums());
    ECPIPE_RETURN_IF_ERROR(file_.Commit());
    // Below a file system that was unmounted meanwhile nobody finds it.
    return parts_.root->CheckStill(*parts_.opened);
  }

 private:
  // Read back, since ranges come in any order; the page cache has them still.
  absl::Status CommitChecksums() {
    ECPIPE_ASSIGN_OR_RETURN(
        ChecksumFileWriter checksums,
        ChecksumFileWriter::CreateBelow(parts_.opened->fd.get(), parts_.root->path, parts_.block_id,
                                        kOwnFile));
    std::vector<uint8_t> buffer(64 * size_t{kChecksumChunkBytes});
    Sha256 sha256;
    for (uint64_t at = 0; at < parts_.bytes; at += buffer.size()) {
      const auto step = static_cast<size_t>(std::min<uint64_t>(buffer.size(), parts_.bytes - at));
      const std::span<uint8_t> piece = std::span(buffer).first(step);
      ECPIPE_RETURN_IF_ERROR(file_.ReadAt(at, piece));
      ECPIPE_RETURN_IF_ERROR(checksums.Append(piece));
      if (sha256_.empty()) sha256.Update(piece);
    }
    return checksums.Commit(sha256_.empty() ? sha256.FinishHex() : sha256_);
  }

  const Parts parts_;
  std::string sha256_;  // empty: not known
  AtomicFile file_;
};

// `parts` without what is opened here.
absl::StatusOr<std::unique_ptr<BlockWriter>> CreateIn(PlainBlockWriter::Parts parts,
                                                      StoredChecksums stored) {
  ECPIPE_ASSIGN_OR_RETURN(parts.opened, parts.root->Use());
  const int root_fd = parts.opened->fd.get();
  const std::string& block_id = parts.block_id;
  ECPIPE_ASSIGN_OR_RETURN(
      AtomicFile file,
      AtomicFile::CreateBelow(root_fd, parts.root->path + "/" + block_id, kOwnFile));
  ECPIPE_ASSIGN_OR_RETURN(const bool set_aside, file.Reserve(parts.bytes));
  if (set_aside) parts.promise.reset();  // the disk has less room by now, and says so
  // A checksum file that is there must go on being right.
  const bool known =
      ::faccessat(root_fd, ChecksumFileName(block_id).c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
  const bool write = known || (stored == StoredChecksums::kWrite && CanHaveChecksumFile(block_id));
  if (!write) parts.block_id.clear();
  return std::make_unique<PlainBlockWriter>(std::move(parts), std::move(file));
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
        reads(path),
        latest(std::make_shared<LatestCount>()) {}

  const std::shared_ptr<const PlainRoot> root;  // shared with calls and writers
  RootCalls calls;
  RootCalls counting;  // takes as long as the directory is large
  const HungReads reads;
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

  // Opens those that can be opened now. The error of one that is no directory.
  absl::Status OpenRoots() {
    std::vector<RootCalls::Pending<bool>> opening;
    for (const auto& place : places_) {
      opening.push_back(place->calls.Begin<bool>([root = place->root]() -> absl::StatusOr<bool> {
        ECPIPE_RETURN_IF_ERROR(root->Open());
        return true;
      }));
    }
    const auto opened = RootCalls::AwaitFirst(std::move(opening));
    std::vector<RootCalls::Pending<bool>> cleaning;
    for (size_t i = 0; i < opened.size(); ++i) {
      const absl::Status& status = opened[i].status();
      if (absl::IsInvalidArgument(status)) return status;
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
    if (best) return places_[*best]->reads.Watch(std::move(copies[*best]->reader));
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
    // Others may have taken the room since it was looked at: then another root is tried.
    std::set<const Place*> full;
    absl::Status failure;
    while (true) {
      absl::StatusOr<Choice> choice = PlaceFor(block_id, bytes, full);
      if (!choice.ok()) return failure.ok() ? choice.status() : failure;
      PlainBlockWriter::Parts parts{.root = choice->place->root,
                                    .opened = nullptr,
                                    .claim = claim,
                                    .promise = std::move(choice->promise),
                                    .bytes = bytes,
                                    .block_id = block_id};
      absl::StatusOr<std::unique_ptr<BlockWriter>> created =
          choice->place->calls
              .Begin<std::unique_ptr<BlockWriter>>(
                  [parts = std::move(parts), checksums = checksums_] {
                    return CreateIn(parts, checksums);
                  })
              .Await(Clock::System().Now() + RootCalls::kPatience);
      if (!absl::IsResourceExhausted(created.status()) || choice->has_block) return created;
      failure = created.status();
      full.insert(choice->place);
    }
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
    const auto free_of = [&](const PlainRoot::DiskRoom& disk) {
      return promised_.Left(disk.device, disk.free_bytes);
    };
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
        inventory.free_bytes = inventory.free_bytes.value_or(0) + free_of(*looked[i]);
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

  absl::Status TroubleOf(const std::string& path) override {
    for (const auto& place : places_) {
      if (place->root->path != path) continue;
      absl::Status trouble = place->root->trouble();
      trouble.Update(place->reads.Check());
      return trouble;
    }
    return absl::OkStatus();
  }

 private:
  // Where a block is to be stored.
  struct Choice {
    Place* place = nullptr;
    bool has_block = false;  // an older copy, which it replaces
    std::shared_ptr<PromisedRoom::Promise> promise;
  };

  // With a root that is listed whole.
  static constexpr Duration kCountPatience = std::chrono::seconds(5);

  // What the call returns for each root, in order. UNAVAILABLE for one that does not answer, or in
  // which reads hang: whatever began there would hang as well.
  template <typename T>
  std::vector<absl::StatusOr<T>> InEach(
      const std::function<absl::StatusOr<T>(const PlainRoot&)>& call) {
    const TimePoint deadline = Clock::System().Now() + RootCalls::kPatience;
    std::vector<absl::StatusOr<RootCalls::Pending<T>>> pending;
    for (const auto& place : places_) {
      if (absl::Status hung = place->reads.Check(); !hung.ok()) {
        pending.push_back(hung);
      } else {
        pending.push_back(
            place->calls.Begin<T>([root = place->root, call] { return call(*root); }));
      }
    }
    std::vector<absl::StatusOr<T>> results;
    for (auto& each : pending) {
      results.push_back(each.ok() ? each->Await(deadline) : absl::StatusOr<T>(each.status()));
    }
    return results;
  }

  // The root that has the block already, so that no second copy comes about; else the emptiest of
  // those that are not `full`, and the room for the block in it.
  absl::StatusOr<Choice> PlaceFor(const std::string& block_id, uint64_t bytes,
                                  const std::set<const Place*>& full) {
    const std::vector<absl::StatusOr<PlainRoot::RoomForBlock>> rooms =
        InEach<PlainRoot::RoomForBlock>(
            [block_id](const PlainRoot& root) { return root.RoomFor(block_id); });
    Choice best;
    uint64_t best_free = 0;
    dev_t best_disk = 0;
    absl::Status failure;
    MutexLock lock(&choosing_);  // nobody else chooses by the same room
    for (size_t i = 0; i < rooms.size(); ++i) {
      if (!rooms[i].ok()) {
        failure = rooms[i].status();
        continue;
      }
      const PlainRoot::RoomForBlock& room = *rooms[i];
      if (room.has_block) {
        return Choice{places_[i].get(), true, promised_.Make(room.device, bytes)};
      }
      const uint64_t free_bytes = promised_.Left(room.device, room.free_bytes);
      if (full.contains(places_[i].get())) continue;
      if (best.place != nullptr && free_bytes <= best_free) continue;
      best.place = places_[i].get();
      best_free = free_bytes;
      best_disk = room.device;
    }
    if (best.place != nullptr && best_free >= bytes) {
      // An older copy may lie where nobody could look.
      if (!failure.ok()) newest_.Note(block_id, best.place->root->number);
      best.promise = promised_.Make(best_disk, bytes);
      return best;
    }
    if (best.place == nullptr && !failure.ok()) return failure;
    return absl::ResourceExhaustedError("no directory in [helper] roots has " +
                                        std::to_string(bytes) + " bytes free for block " +
                                        block_id);
  }

  const StoredChecksums checksums_;
  NewestCopies newest_;
  BlockClaims claims_;
  PromisedRoom promised_;
  Mutex choosing_;
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
