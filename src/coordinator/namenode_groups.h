// SPDX-License-Identifier: Apache-2.0
// The NameNode's block groups, asked for from time to time, and sooner when somebody misses one.
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

// As coordinator.toml's [hdfs] has it.
struct NameNodeOptions {
  // "http://HOST:PORT" of each NameNode of one HDFS (HA); empty: none is configured.
  std::vector<std::string> urls;
  std::string user;        // a superuser of HDFS, as fsck wants it
  std::string path = "/";  // what is below it is known
  Duration refresh = std::chrono::seconds(300);
};

// Asks by fsck over HTTP; of several NameNodes the first one that answers in full counts, for one
// in standby refuses. `stop`: as that of HttpGetOptions.
absl::StatusOr<GroupTable> FetchGroups(const NameNodeOptions& options,
                                       const std::function<bool()>& stop);

// The answer that counts, and how old it is.
struct KnownGroups {
  std::shared_ptr<const GroupTable> table;  // shared with all that read it; null: there is none yet
  TimePoint as_of{};                        // when it was asked for
  double age_seconds = 0;                   // since then
  std::string last_error;                   // of a later attempt; empty: there was none
};

// Thread-safe. One thread asks; an answer that is not whole changes nothing.
class NameNodeGroups {
 public:
  using Fetch = std::function<absl::StatusOr<GroupTable>(const std::function<bool()>& stop)>;

  // Between two attempts lie at least kShortestPause, and kPauseOfFetch times as long as the last
  // one took: fsck walks the whole tree, and must not be all that the NameNode does.
  static constexpr Duration kShortestPause = std::chrono::seconds(3);
  static constexpr int kPauseOfFetch = 4;

  NameNodeGroups(Fetch fetch, Duration refresh);
  // Stops; a fetch under way is given up.
  ~NameNodeGroups();

  KnownGroups Get();
  // The same, with an answer asked for at `as_of` or later, if one comes within `patience`; if not,
  // what there is. Asks for one if need be.
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
  // The next attempt that the clock wants, one that somebody wants, and before which none may be.
  TimePoint due_ ABSL_GUARDED_BY(mutex_){};
  std::optional<TimePoint> wanted_since_ ABSL_GUARDED_BY(mutex_);
  TimePoint not_before_ ABSL_GUARDED_BY(mutex_){};
  uint64_t attempts_ ABSL_GUARDED_BY(mutex_) = 0;  // that have ended
  Thread thread_;
};

}  // namespace ecpipe
