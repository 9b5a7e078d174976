// SPDX-License-Identifier: Apache-2.0
#include "helper/store/hdfs_scan.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <optional>
#include <set>

#include "base/status.h"
#include "helper/store/directory.h"

namespace ecpipe {
namespace {

constexpr int kFanOut = 32;
// File systems keep times in steps, of some milliseconds as a rule and of two seconds at worst: a
// change within a step may leave the time as it was.
constexpr int64_t kGrainNanos = 2'000'000'000;
constexpr char kReplicaBegin[] = "blk_";
constexpr char kMetaEnd[] = ".meta";

int64_t NanosOf(const timespec& time) { return time.tv_sec * 1'000'000'000 + time.tv_nsec; }

int64_t WallNanos() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// An error if the process, and not the directory, is in trouble.
absl::Status CheckDescriptors(const absl::Status& opened) {
  return absl::IsResourceExhausted(opened) ? opened : absl::OkStatus();
}

template <typename Integer>
std::optional<Integer> Whole(const std::string& text) {
  Integer value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end) return std::nullopt;
  return value;
}

}  // namespace

std::optional<int64_t> IdOfReplica(const std::string& name) {
  if (name.rfind(kReplicaBegin, 0) != 0) return std::nullopt;
  return Whole<int64_t>(name.substr(sizeof kReplicaBegin - 1));
}

std::optional<std::pair<int64_t, uint64_t>> IdOfMeta(const std::string& name) {
  if (name.rfind(kReplicaBegin, 0) != 0 || !name.ends_with(kMetaEnd)) return std::nullopt;
  const size_t line = name.rfind('_');
  const size_t end = name.size() - (sizeof kMetaEnd - 1);
  if (line + 1 < sizeof kReplicaBegin || line >= end) return std::nullopt;
  const auto id =
      Whole<int64_t>(name.substr(sizeof kReplicaBegin - 1, line - (sizeof kReplicaBegin - 1)));
  const auto stamp = Whole<int64_t>(name.substr(line + 1, end - line - 1));
  if (!id || !stamp || *stamp < 0) return std::nullopt;
  return std::pair(*id, static_cast<uint64_t>(*stamp));
}

absl::StatusOr<HdfsContents> HdfsScan::Take(const std::function<bool()>& stop) {
  std::set<PoolOfVolume> found;
  const HdfsVolumes::Opened volumes = volumes_->opened();
  for (size_t i = 0; i < volumes.size(); ++i) {
    if (volumes[i] == nullptr) continue;
    const HdfsVolume& volume = *volumes[i];
    const Directory pools = OpenDirectory(volume.fd.get(), "current");
    if (pools == nullptr) {
      ECPIPE_RETURN_IF_ERROR(CheckDescriptors(ErrnoStatus(errno, "open " + volume.path)));
    }
    while (const dirent* entry = pools == nullptr ? nullptr : ::readdir(pools.get())) {
      const std::string pool = entry->d_name;
      if (!ValidateHdfsPool(pool).ok()) continue;
      const auto finalized = OpenBelow(::dirfd(pools.get()), {pool, "current", "finalized"});
      ECPIPE_RETURN_IF_ERROR(CheckDescriptors(finalized.status()));
      if (!finalized.ok()) continue;
      found.insert({i, pool});
      ECPIPE_RETURN_IF_ERROR(ScanPool(finalized->get(), stop, &pools_[{i, pool}]));
    }
  }
  if (std::erase_if(pools_, [&](const auto& known) { return !found.contains(known.first); }) > 0) {
    changed_ = true;
  }
  if (changed_) Gather();
  changed_ = false;
  return contents_;
}

absl::Status HdfsScan::ScanPool(int finalized, const std::function<bool()>& stop, Leaves* leaves) {
  for (int x = 0; x < kFanOut; ++x) {
    const std::string outer = "subdir" + std::to_string(x);
    const auto parent = OpenBelow(finalized, {outer});
    ECPIPE_RETURN_IF_ERROR(CheckDescriptors(parent.status()));
    if (!parent.ok()) {
      if (std::erase_if(*leaves, [&](const auto& leaf) { return leaf.first / kFanOut == x; }) > 0) {
        changed_ = true;
      }
      continue;
    }
    for (int y = 0; y < kFanOut; ++y) {
      if (stop()) return absl::CancelledError("the scan was stopped");
      ECPIPE_RETURN_IF_ERROR(
          ScanLeaf(parent->get(), "subdir" + std::to_string(y), x * kFanOut + y, leaves));
    }
  }
  return absl::OkStatus();
}

absl::Status HdfsScan::ScanLeaf(int parent, const std::string& name, int number, Leaves* leaves) {
  const int64_t before = WallNanos();
  struct stat info{};
  if (::fstatat(parent, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(info.st_mode)) {
    if (leaves->erase(number) > 0) changed_ = true;
    return absl::OkStatus();
  }
  const int64_t modified = NanosOf(info.st_mtim);
  const auto known = leaves->find(number);
  if (known != leaves->end() && known->second.settled &&
      known->second.modified_unix_ns == modified) {
    return absl::OkStatus();
  }
  Leaf leaf;
  leaf.modified_unix_ns = modified;
  leaf.settled = modified < before - kGrainNanos;
  ECPIPE_RETURN_IF_ERROR(List(parent, name, &leaf));
  ++directories_listed_;
  Leaf& kept = (*leaves)[number];
  changed_ = changed_ || kept.blocks != leaf.blocks ||
             kept.inventory.block_count != leaf.inventory.block_count ||
             kept.inventory.block_bytes != leaf.inventory.block_bytes;
  kept = std::move(leaf);
  return absl::OkStatus();
}

absl::Status HdfsScan::List(int parent, const std::string& name, Leaf* leaf) {
  const Directory listed = OpenDirectory(parent, name.c_str());
  if (listed == nullptr) return CheckDescriptors(ErrnoStatus(errno, "open " + name));
  std::map<int64_t, uint64_t> stamps;
  std::set<int64_t> ambiguous;
  while (const dirent* entry = ::readdir(listed.get())) {
    const std::string file = entry->d_name;
    if (const auto meta = IdOfMeta(file)) {
      if (!stamps.insert(*meta).second) ambiguous.insert(meta->first);
      continue;
    }
    const std::optional<int64_t> id = IdOfReplica(file);
    struct stat info{};
    if (!id || ::fstatat(::dirfd(listed.get()), file.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(info.st_mode)) {
      continue;
    }
    const auto bytes = static_cast<uint64_t>(info.st_size);
    ++leaf->inventory.block_count;
    leaf->inventory.block_bytes += bytes;
    if (*id >= 0) continue;
    // Renaming a file into its place changes st_ctim, and so does all that changes its bytes.
    leaf->blocks.push_back({{*id, 0, bytes}, NanosOf(info.st_ctim)});
  }
  std::erase_if(leaf->blocks, [&](ListedBlock& listed_block) {
    const auto stamp = stamps.find(listed_block.block.id);
    if (stamp == stamps.end() || ambiguous.contains(listed_block.block.id)) return true;
    listed_block.block.stamp = stamp->second;
    return false;
  });
  std::sort(leaf->blocks.begin(), leaf->blocks.end(),
            [](const auto& a, const auto& b) { return a.block.id < b.block.id; });
  return absl::OkStatus();
}

void HdfsScan::Gather() {
  contents_ = HdfsContents();
  BlockListing all;
  for (const auto& [volume_and_pool, leaves] : pools_) {
    std::vector<ListedBlock>& blocks = all[volume_and_pool.second];
    for (const auto& [number, leaf] : leaves) {
      contents_.inventory.block_count += leaf.inventory.block_count;
      contents_.inventory.block_bytes += leaf.inventory.block_bytes;
      blocks.insert(blocks.end(), leaf.blocks.begin(), leaf.blocks.end());
    }
  }
  for (auto& [pool, blocks] : all) {
    std::sort(blocks.begin(), blocks.end(), [](const ListedBlock& a, const ListedBlock& b) {
      return std::pair(a.block.id, b.block.stamp) < std::pair(b.block.id, a.block.stamp);
    });
    const auto same_id = [](const ListedBlock& a, const ListedBlock& b) {
      return a.block.id == b.block.id;
    };
    blocks.erase(std::unique(blocks.begin(), blocks.end(), same_id), blocks.end());
  }
  std::erase_if(all, [](const auto& pool) { return pool.second.empty(); });
  contents_.blocks = std::make_shared<const BlockListing>(std::move(all));
}

}  // namespace ecpipe
