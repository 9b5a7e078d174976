// SPDX-License-Identifier: Apache-2.0
#include "coordinator/repairs/random_ids.h"

#include <sys/random.h>

#include "base/check.h"
#include "base/simulator.h"

namespace ecpipe {
namespace {

void FillRandom(void* bytes, size_t count) {
  if (Simulator* simulator = Simulator::Installed()) {
    return simulator->FillRandom({static_cast<uint8_t*>(bytes), count});
  }
  ECPIPE_CHECK(::getrandom(bytes, count, 0) == static_cast<ssize_t>(count));
}

}  // namespace

EdgeToken RandomToken() {
  EdgeToken token;
  FillRandom(token.data(), token.size());
  return token;
}

RepairId RandomRepairId() {
  RepairId repair_id = 0;
  while (repair_id == 0) FillRandom(&repair_id, sizeof repair_id);
  return repair_id;
}

}  // namespace ecpipe
