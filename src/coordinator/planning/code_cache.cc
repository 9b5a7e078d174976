// SPDX-License-Identifier: Apache-2.0
#include "coordinator/planning/code_cache.h"

#include "base/status.h"

namespace ecpipe {

absl::StatusOr<std::shared_ptr<const ErasureCode>> CodeCache::Get(const std::string& name) {
  {
    MutexLock lock(&mutex_);
    const auto found = codes_.find(name);
    if (found != codes_.end()) return found->second;
  }
  ECPIPE_ASSIGN_OR_RETURN(std::shared_ptr<const ErasureCode> code, CreateErasureCode(name));
  MutexLock lock(&mutex_);
  if (codes_.size() < kMaxCodes) codes_.emplace(name, code);
  return code;
}

}  // namespace ecpipe
