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

const char* RecoveryKindName(RecoveryKind kind) {
  switch (kind) {
    case RecoveryKind::kRebuild:
      return "rebuild";
    case RecoveryKind::kMove:
      return "move";
    case RecoveryKind::kMaintenance:
      return "maintenance";
  }
  return "unknown";
}

RecoveryKind RecoveryKindNamed(const std::string& name) {
  for (const RecoveryKind kind : {RecoveryKind::kMove, RecoveryKind::kMaintenance}) {
    if (name == RecoveryKindName(kind)) return kind;
  }
  return RecoveryKind::kRebuild;
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

namespace {

constexpr WaitKind kWaitKinds[] = {WaitKind::kNext,      WaitKind::kPaused,    WaitKind::kStarting,
                                   WaitKind::kDelay,     WaitKind::kComparing, WaitKind::kStreams,
                                   WaitKind::kSurvivors, WaitKind::kTarget,    WaitKind::kLimit,
                                   WaitKind::kHelper,    WaitKind::kFailed};

}  // namespace

const char* WaitKindName(WaitKind kind) {
  switch (kind) {
    case WaitKind::kNext:
      return "next";
    case WaitKind::kPaused:
      return "paused";
    case WaitKind::kStarting:
      return "starting";
    case WaitKind::kDelay:
      return "delay";
    case WaitKind::kComparing:
      return "comparing";
    case WaitKind::kStreams:
      return "streams";
    case WaitKind::kSurvivors:
      return "survivors";
    case WaitKind::kTarget:
      return "target";
    case WaitKind::kLimit:
      return "limit";
    case WaitKind::kHelper:
      return "helper";
    case WaitKind::kFailed:
      return "failed";
  }
  return "unknown";
}

WaitKind WaitKindNamed(const std::string& name) {
  for (const WaitKind kind : kWaitKinds) {
    if (name == WaitKindName(kind)) return kind;
  }
  return WaitKind::kFailed;
}

}  // namespace ecpipe
