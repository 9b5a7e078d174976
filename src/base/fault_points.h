// SPDX-License-Identifier: Apache-2.0
// Named places at which a test can make this process fail: in-process with Arm, in a daemon with
// the option --test-faults name=action[@hits],...; no environment does it by accident. A point that
// is not armed costs one relaxed atomic load. The names are part of the tests' vocabulary; keep
// them stable.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace ecpipe {

struct Fault {
  enum class Action {
    kError,  // the point returns INTERNAL "fault point <name>"
    kCrash,  // the process ends at once, as with kill -9
    kHang,   // the point returns OK once all faults are disarmed
  };
  Action action = Action::kError;
  int after_hits = 0;  // the point passes this many times first
};

// OK unless the point is armed and due. Thread-safe.
absl::Status FaultPoint(const char* name);

void ArmFault(const std::string& name, Fault fault);
void DisarmAllFaults();
// INVALID_ARGUMENT when the text is not of the form above.
absl::Status ArmFaultsFromText(const std::string& text);

}  // namespace ecpipe
