// SPDX-License-Identifier: Apache-2.0
// When a daemon warns that its certificate ends: 30, 7 and 1 days before, and when it has ended.
#pragma once

#include <cstdint>
#include <optional>

namespace ecpipe {

// Not thread-safe.
class ExpiryWarnings {
 public:
  // The days that are left, rounded up, if a warning is due that has not been given: 0 when it has
  // ended. Once one was due for an end, the next is at the next of the steps above. Both in Unix
  // seconds.
  std::optional<int> Due(int64_t expiry, int64_t now);

 private:
  int64_t expiry_ = 0;         // the end that `warned_` is about
  std::optional<int> warned_;  // the step, in days, of the last warning
};

}  // namespace ecpipe
