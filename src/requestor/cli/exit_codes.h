// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"

namespace ecpipe {

// The exit codes of the `ecpipe` command; its --help lists them.
enum ExitCode : int {
  kExitOk = 0,
  kExitFailed = 1,       // I/O trouble, damaged bytes, a verification that did not hold
  kExitUsage = 2,        // bad arguments or a bad manifest
  kExitNotFound = 3,     // no such block or file
  kExitUnavailable = 4,  // coordinator or helper cannot be reached, or did not answer in time
  kExitNoSurvivors = 5,  // fewer survivors than the code needs
  kExitCancelled = 130,  // interrupted, as shells say it
};

ExitCode ExitCodeFor(const absl::Status& status);

}  // namespace ecpipe
