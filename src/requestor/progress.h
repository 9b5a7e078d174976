// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "common/clock.h"
#include "requestor/requestor.h"

namespace ecpipe {

// Shows on standard error how a repair is going: a bar on a terminal, a plain line a second
// elsewhere.
class ProgressDisplay {
 public:
  explicit ProgressDisplay(std::string label);
  // Clears the bar.
  ~ProgressDisplay();

  ProgressFn Callback();

 private:
  void Show(uint64_t verified_bytes, uint64_t total_bytes);

  const std::string label_;
  const bool terminal_;
  const TimePoint begun_;
  TimePoint next_line_;
  bool drawn_ = false;
};

}  // namespace ecpipe
