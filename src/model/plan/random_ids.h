// SPDX-License-Identifier: Apache-2.0
// Ids and tokens that nobody can guess. Any thread.
#pragma once

#include <sys/random.h>

#include "base/check.h"
#include "base/simulator.h"
#include "model/plan/repair_plan.h"

namespace ecpipe {

inline void FillRandom(void* bytes, size_t count) {
  if (Simulator* simulator = Simulator::Installed()) {
    return simulator->FillRandom({static_cast<uint8_t*>(bytes), count});
  }
  ECPIPE_CHECK(::getrandom(bytes, count, 0) == static_cast<ssize_t>(count));
}

inline EdgeToken RandomToken() {
  EdgeToken token;
  FillRandom(token.data(), token.size());
  return token;
}

// Not 0.
inline RepairId RandomRepairId() {
  RepairId repair_id = 0;
  while (repair_id == 0) FillRandom(&repair_id, sizeof repair_id);
  return repair_id;
}

}  // namespace ecpipe
