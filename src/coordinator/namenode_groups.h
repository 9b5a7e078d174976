// SPDX-License-Identifier: Apache-2.0
// The NameNode's block groups. They are fetched from time to time, and sooner if one is missing.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "common/thread.h"
#include "coordinator/group_table.h"

namespace ecpipe {

// The section [hdfs] of the coordinator's configuration.
struct NameNodeOptions {
  // "http://HOST:PORT" of each NameNode of one HDFS with high availability; empty: none is
  // configured.
  std::vector<std::string> urls;
  std::string user;        // a superuser of HDFS, as fsck wants it
  std::string path = "/";  // only groups of files below it are known
  Duration refresh = std::chrono::seconds(300);
};

// Asks the NameNodes in turn, by fsck over HTTP; the first complete answer counts (a NameNode in
// standby refuses). `stop`: as in HttpGetOptions.
absl::StatusOr<GroupTable> FetchGroups(const NameNodeOptions& options,
                                       const std::function<bool()>& stop);

// The latest complete answer, and its age.
struct KnownGroups {
  std::shared_ptr<const GroupTable> table;  // shared with all readers; null: no answer yet
  TimePoint as_of{};                        // when the NameNode was asked
  double age_seconds = 0;                   // the time since then
  std::string last_error;                   // why a later attempt failed; empty: none did
};

// Thread-safe. One thread asks the NameNode; an incomplete answer changes nothing.
class NameNodeGroups {
 public:
  using Fetch = std::function<absl::StatusOr<GroupTable>(const std::function<bool()>& stop)>;

  // Two attempts are at least kShortestPause apart, and kPauseOfFetch times as long as the last one
  // took: fsck walks the whole tree, and the NameNode must have time for other work.
  static constexpr Duration kShortestPause = std::chrono::seconds(3);
  static constexpr int kPauseOfFetch = 4;

  NameNodeGroups(Fetch fetch, Duration refresh);
  // Stops, and cancels a running fetch.
  ~NameNodeGroups();

  KnownGroups Get();
  // The same with an answer that was asked for at `as_of` or later, if one comes within `patience`;
  // otherwise the latest answer. Asks the NameNode if necessary.
  KnownGroups GetSince(TimePoint as_of, Duration patience);

 private:
  void Run();
  void FetchOnce();
  KnownGroups View() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Fetch fetch_;
  const Duration refresh_;
  Mutex mutex_;
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  KnownGroups known_ ABSL_GUARDED_BY(mutex_);  // without the age
  // When the next regular attempt is due, since when a caller wants one, and the earliest time for
  // one.
  TimePoint due_ ABSL_GUARDED_BY(mutex_){};
  std::optional<TimePoint> wanted_since_ ABSL_GUARDED_BY(mutex_);
  TimePoint not_before_ ABSL_GUARDED_BY(mutex_){};
  uint64_t attempts_ ABSL_GUARDED_BY(mutex_) = 0;  // attempts that have ended
  Thread thread_;
};

}  // namespace ecpipe
