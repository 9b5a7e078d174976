// SPDX-License-Identifier: Apache-2.0
#include "coordinator/store/journal.h"

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
  }
  return "unknown";
}

}  // namespace ecpipe
