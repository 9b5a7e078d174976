// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "codec/erasure_code.h"

namespace ecpipe {

// Codes by name, made once: a catalog of a million stripes uses a handful. Thread-safe.
class CodeCache {
 public:
  // The errors are those of CreateErasureCode.
  absl::StatusOr<std::shared_ptr<const ErasureCode>> Get(const std::string& name);

 private:
  // The cache keeps at most this many codes; more in one cluster are a mistake. Further codes are
  // made anew each time.
  static constexpr size_t kMaxCodes = 256;

  Mutex mutex_;
  std::map<std::string, std::shared_ptr<const ErasureCode>> codes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ecpipe
