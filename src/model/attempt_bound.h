// SPDX-License-Identifier: Apache-2.0
// When a repair that fails again and again is given up. The coordinator counts for each repair, and
// a requestor for its own: a coordinator that has started again knows of no attempt before.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace ecpipe {

// Attempts that bring something do not count: each has verified a slice, and a block has finitely
// many. A helper that refuses its part ends no attempt in this sense, for none ran.
class AttemptBound {
 public:
  // In a row. Two nodes that fail in turn show themselves within a few; and at a second or more for
  // each that hangs, whoever waits is told within half a minute.
  static constexpr uint32_t kMostInVain = 16;

  // An attempt that ran has failed. `brought`: it verified slices that none before it had.
  void Failed(bool brought) { in_vain_ = brought ? 0 : in_vain_ + 1; }
  bool reached() const { return in_vain_ >= kMostInVain; }
  uint32_t in_vain() const { return in_vain_; }
  // What the repair ends with: ABORTED, with the error of the last attempt.
  absl::Status GivenUp(const absl::Status& last) const {
    return absl::AbortedError("given up after " + std::to_string(in_vain_) +
                              " attempts in a row that brought nothing new; the last one failed: " +
                              std::string(last.message()));
  }

 private:
  uint32_t in_vain_ = 0;
};

}  // namespace ecpipe
