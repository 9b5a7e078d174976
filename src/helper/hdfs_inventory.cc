// SPDX-License-Identifier: Apache-2.0
#include "helper/hdfs_inventory.h"

#include <sys/stat.h>

#include <algorithm>
#include <string>
#include <utility>

#include "helper/directory.h"

namespace ecpipe {
namespace {

// "blk_<id>", of which there is one a replica.
bool IsReplica(const std::string& name) {
  constexpr char kBegin[] = "blk_";
  return name.rfind(kBegin, 0) == 0 && name.find('.') == std::string::npos;
}

}  // namespace

HdfsInventory::HdfsInventory(std::shared_ptr<const HdfsVolumes> volumes, Duration interval)
    : volumes_(std::move(volumes)), interval_(interval), thread_([this] { Run(); }) {}

HdfsInventory::~HdfsInventory() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  stop_.NotifyAll();
  thread_.join();
}

StoreInventory HdfsInventory::latest() {
  MutexLock lock(&mutex_);
  return latest_;
}

bool HdfsInventory::stopping() {
  MutexLock lock(&mutex_);
  return stopping_;
}

void HdfsInventory::Run() {
  while (true) {
    const StoreInventory counted = Count();
    const TimePoint next = Clock::System().Now() + interval_;
    MutexLock lock(&mutex_);
    if (!stopping_) latest_ = counted;
    while (!stopping_ && stop_.WaitUntil(lock, next)) {
    }
    if (stopping_) return;
  }
}

StoreInventory HdfsInventory::Count() {
  StoreInventory inventory;
  for (const HdfsVolume& volume : *volumes_) {
    const Directory pools = OpenDirectory(volume.fd.get(), "current");
    while (const dirent* entry = pools == nullptr ? nullptr : ::readdir(pools.get())) {
      if (!ValidateHdfsPool(entry->d_name).ok() || stopping()) continue;
      const auto finalized =
          OpenBelow(::dirfd(pools.get()), {entry->d_name, "current", "finalized"});
      constexpr int kLevels = 2;  // of subdirectories
      if (finalized.ok()) CountBelow(finalized->get(), kLevels, &inventory);
    }
  }
  return inventory;
}

void HdfsInventory::CountBelow(int directory, int depth, StoreInventory* inventory) {
  const Directory listed = OpenDirectory(directory, ".");
  while (const dirent* entry = listed == nullptr ? nullptr : ::readdir(listed.get())) {
    const std::string name = entry->d_name;
    if (depth > 0) {
      if (stopping()) return;
      if (name.rfind("subdir", 0) != 0) continue;
      const auto below = OpenBelow(::dirfd(listed.get()), {name});
      if (below.ok()) CountBelow(below->get(), depth - 1, inventory);
      continue;
    }
    struct stat info{};
    if (!IsReplica(name)) continue;
    if (::fstatat(::dirfd(listed.get()), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (!S_ISREG(info.st_mode)) continue;
    ++inventory->block_count;
    inventory->block_bytes += static_cast<uint64_t>(info.st_size);
  }
}

}  // namespace ecpipe
