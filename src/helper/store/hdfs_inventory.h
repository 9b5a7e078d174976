// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "helper/store/hdfs_scan.h"

namespace ecpipe {

// Looks which volumes can be used, and scans them, again and again on a thread of its own: a
// DataNode may have a million replicas, and callers must not wait for a scan. Thread-safe.
class HdfsInventory {
 public:
  // `interval` is from the end of a scan to the beginning of the next one.
  HdfsInventory(std::shared_ptr<HdfsVolumes> volumes, Duration interval);
  // Stops within the time that the scan of one directory takes.
  ~HdfsInventory();

  // The result of the last scan; zeros before the first one has ended.
  StoreInventory latest();
  TakenListing listing();

 private:
  void Run();
  bool stopping();

  const Duration interval_;
  const std::shared_ptr<HdfsVolumes> volumes_;  // shared with the scan, and with who reads blocks
  HdfsScan scan_;                               // the thread's
  Mutex mutex_;
  CondVar stop_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t scans_ ABSL_GUARDED_BY(mutex_) = 0;
  HdfsContents latest_ ABSL_GUARDED_BY(mutex_);
  Thread thread_;
};

}  // namespace ecpipe
