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

// For help, which is read in 80 columns.
inline constexpr const char* kExitCodes =
    "Exit codes: 0 done; 1 failed (I/O, damaged bytes, a check that did not hold);\n"
    "2 bad arguments or manifest; 3 no such block or file; 4 coordinator or helper\n"
    "unreachable or silent; 5 fewer survivors than the code needs, or a node that may\n"
    "not take a block; 130 interrupted.";

ExitCode ExitCodeFor(const absl::Status& status);

}  // namespace ecpipe
