// SPDX-License-Identifier: Apache-2.0
#include "model/repair.h"

namespace ecpipe {

const char* RepairStateName(RepairState state) {
  switch (state) {
    case RepairState::kRunning:
      return "running";
    case RepairState::kDone:
      return "done";
    case RepairState::kFailed:
      return "failed";
    case RepairState::kInterrupted:
      return "interrupted";
    case RepairState::kCancelled:
      return "cancelled";
  }
  return "unknown";
}

RepairState StateAfter(const absl::Status& status) {
  if (status.ok()) return RepairState::kDone;
  return absl::IsCancelled(status) ? RepairState::kCancelled : RepairState::kFailed;
}

const char* RepairCauseName(RepairCause cause) {
  switch (cause) {
    case RepairCause::kRead:
      return "read";
    case RepairCause::kDegradedRead:
      return "degraded_read";
    case RepairCause::kReconstruction:
      return "reconstruction";
    case RepairCause::kNodeLoss:
      return "node_loss";
    case RepairCause::kDrain:
      return "drain";
    case RepairCause::kMaintenance:
      return "maintenance";
    case RepairCause::kCorruption:
      return "corruption";
    case RepairCause::kCommand:
      return "command";
  }
  return "unknown";
}

RepairState RepairStateNamed(const std::string& name) {
  for (const RepairState state :
       {RepairState::kRunning, RepairState::kDone, RepairState::kFailed, RepairState::kCancelled}) {
    if (name == RepairStateName(state)) return state;
  }
  return RepairState::kInterrupted;
}

}  // namespace ecpipe
