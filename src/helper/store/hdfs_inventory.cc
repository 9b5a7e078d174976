// SPDX-License-Identifier: Apache-2.0
#include "helper/store/hdfs_inventory.h"

#include <utility>

#include "base/guarded.h"
#include "base/process/log.h"
#include "base/status.h"

namespace ecpipe {

HdfsInventory::HdfsInventory(std::shared_ptr<HdfsVolumes> volumes, Duration interval)
    : interval_(interval),
      volumes_(std::move(volumes)),
      scan_(volumes_),
      thread_([this] { Run(); }) {}

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
  return latest_.inventory;
}

TakenListing HdfsInventory::listing() {
  MutexLock lock(&mutex_);
  return {scans_, latest_.blocks};
}

bool HdfsInventory::stopping() {
  MutexLock lock(&mutex_);
  return stopping_;
}

void HdfsInventory::Run() {
  while (true) {
    absl::StatusOr<HdfsContents> contents = Guarded([&] {
      volumes_->Look();
      return scan_.Take([this] { return stopping(); });
    });
    const TimePoint next = Clock::System().Now() + interval_;
    if (!contents.ok() && !absl::IsCancelled(contents.status())) {
      Log(LogLevel::kWarning, "store.scan_failed", {{"status", StatusText(contents.status())}});
    }
    MutexLock lock(&mutex_);
    if (contents.ok()) {
      latest_ = *std::move(contents);
      ++scans_;
    }
    while (!stopping_ && stop_.WaitUntil(lock, next)) {
    }
    if (stopping_) return;
  }
}

}  // namespace ecpipe
