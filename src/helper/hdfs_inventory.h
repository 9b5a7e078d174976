// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "common/clock.h"
#include "common/mutex.h"
#include "common/thread.h"
#include "helper/block_store.h"
#include "helper/hdfs_volume.h"

namespace ecpipe {

// Counts the finalized replicas on volumes, again and again, on a thread of its own: a DataNode may
// have a million of them, and whoever asks must not wait. Thread-safe.
class HdfsInventory {
 public:
  // Once in ten minutes: as often as is worth reading all directories.
  explicit HdfsInventory(std::shared_ptr<const HdfsVolumes> volumes,
                         Duration interval = std::chrono::minutes(10));
  // Stops; within the time that one directory takes.
  ~HdfsInventory();

  // As it was counted last; zeros before.
  StoreInventory latest();

 private:
  void Run();
  // Counts what there is, unless it is time to stop.
  StoreInventory Count();
  void CountBelow(int directory, int depth, StoreInventory* inventory);
  bool stopping();

  const std::shared_ptr<const HdfsVolumes> volumes_;  // shared with the store
  const Duration interval_;
  Mutex mutex_;
  CondVar stop_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  StoreInventory latest_ ABSL_GUARDED_BY(mutex_);
  Thread thread_;
};

}  // namespace ecpipe
