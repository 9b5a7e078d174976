// SPDX-License-Identifier: Apache-2.0
#include "model/recovery_record.h"

namespace ecpipe {

const char* RecoveryPolicyName(RecoveryPolicy policy) {
  switch (policy) {
    case RecoveryPolicy::kInOrder:
      return "in-order";
    case RecoveryPolicy::kLeastRecent:
      return "least-recent";
    case RecoveryPolicy::kBalanced:
      return "balanced";
  }
  return "unknown";
}

const char* RecoveryStateName(RecoveryState state) {
  switch (state) {
    case RecoveryState::kRunning:
      return "running";
    case RecoveryState::kPaused:
      return "paused";
    case RecoveryState::kDone:
      return "done";
    case RecoveryState::kPartial:
      return "partial";
    case RecoveryState::kCancelled:
      return "cancelled";
    case RecoveryState::kReturned:
      return "returned";
  }
  return "unknown";
}

}  // namespace ecpipe
