// SPDX-License-Identifier: Apache-2.0
#include "requestor/cli/exit_codes.h"

namespace ecpipe {

ExitCode ExitCodeFor(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kExitOk;
    case absl::StatusCode::kInvalidArgument:
      return kExitUsage;
    case absl::StatusCode::kNotFound:
      return kExitNotFound;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return kExitUnavailable;
    case absl::StatusCode::kFailedPrecondition:
      return kExitNoSurvivors;
    case absl::StatusCode::kCancelled:
      return kExitCancelled;
    default:
      return kExitFailed;
  }
}

}  // namespace ecpipe
