// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "coordinator/cluster/limits.h"
#include "coordinator/store/sqlite_db.h"

namespace ecpipe {

// Keeps the limits that operators set in a database of their own, so that they outlive the
// coordinator. Thread-safe.
class LimitBook {
 public:
  // Opens or creates the database. Errors name the file: the coordinator must not start rather than
  // forget a limit.
  static absl::StatusOr<std::unique_ptr<LimitBook>> Open(const std::string& path);

  Limits limits();
  // Replaces the limits of the cluster, or of a node. After an error nothing has changed, with one
  // exception: UNKNOWN says that the limits have changed, but a crash of the machine may undo that.
  // INVALID_ARGUMENT as in CheckLimits, or for a bad node id.
  absl::Status Set(const LimitsOfCluster& limits);
  absl::Status Set(const std::string& node, const LimitsOfNode& limits);

 private:
  LimitBook() = default;
  absl::Status Load();
  absl::Status Store(Limits limits) ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);

  std::unique_ptr<SqlitePool> connection_;  // one
  // Held while limits are stored: two writers must not each leave out what the other has set.
  // Readers do not take it.
  Mutex write_mutex_;
  Mutex mutex_;
  Limits limits_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ecpipe
