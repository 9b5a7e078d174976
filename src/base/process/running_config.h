// SPDX-License-Identifier: Apache-2.0
// The configuration by which a daemon runs, and what SIGHUP changes in it.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/process/config.h"

namespace ecpipe {

// Thread-safe.
class RunningConfig {
 public:
  // `reloadable`: keys whose values a running daemon can take up.
  RunningConfig(ConfigValues values, std::set<std::string> reloadable)
      : reloadable_(std::move(reloadable)), values_(std::move(values)) {}

  ConfigValues values() const;
  const std::set<std::string>& reloadable() const { return reloadable_; }

  // Keys whose values are others in the file now, in their order.
  struct Changes {
    std::vector<std::string> taken;
    std::vector<std::string> need_restart;
  };
  // Takes over from what the file has now the values of the reloadable keys, and no others.
  Changes Reload(const ConfigValues& loaded);

 private:
  const std::set<std::string> reloadable_;
  mutable Mutex mutex_;
  ConfigValues values_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ecpipe
