// SPDX-License-Identifier: Apache-2.0
#include "base/process/running_config.h"

namespace ecpipe {

ConfigValues RunningConfig::values() const {
  MutexLock lock(&mutex_);
  return values_;
}

RunningConfig::Changes RunningConfig::Reload(const ConfigValues& loaded) {
  MutexLock lock(&mutex_);
  Changes changes;
  for (const auto& [key, value] : loaded) {
    if (values_[key] == value) continue;
    if (reloadable_.contains(key)) {
      values_[key] = value;
      changes.taken.push_back(key);
    } else {
      changes.need_restart.push_back(key);
    }
  }
  return changes;
}

}  // namespace ecpipe
