// SPDX-License-Identifier: Apache-2.0
#include "model/recovery.h"

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

std::optional<RecoveryPolicy> RecoveryPolicyNamed(const std::string& name) {
  for (const RecoveryPolicy policy :
       {RecoveryPolicy::kInOrder, RecoveryPolicy::kLeastRecent, RecoveryPolicy::kBalanced}) {
    if (name == RecoveryPolicyName(policy)) return policy;
  }
  return std::nullopt;
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

RecoveryState RecoveryStateNamed(const std::string& name) {
  for (const RecoveryState state :
       {RecoveryState::kRunning, RecoveryState::kPaused, RecoveryState::kDone,
        RecoveryState::kCancelled, RecoveryState::kReturned}) {
    if (name == RecoveryStateName(state)) return state;
  }
  return RecoveryState::kPartial;
}

}  // namespace ecpipe
