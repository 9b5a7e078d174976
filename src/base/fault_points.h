// SPDX-License-Identifier: Apache-2.0
// Named places at which a test can make this process fail: in-process with Arm, in a daemon with
// the environment variable ECPIPE_FAULTS="name=action[@hits],...". A point that is not armed costs
// one relaxed atomic load. The names are part of the tests' vocabulary; keep them stable.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace ecpipe {

struct Fault {
  enum class Action {
    kError,  // the point returns INTERNAL "fault point <name>"
    kCrash,  // the process ends at once, as with kill -9
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
// Arms what ECPIPE_FAULTS says, if it is set.
absl::Status ArmFaultsFromEnvironment();

}  // namespace ecpipe
