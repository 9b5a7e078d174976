// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/clock.h"
#include "common/repair_plan.h"

namespace ecpipe {

struct HelperAddress {
  std::string node;
  std::string control_address;  // host:port
};

// How the coordinator reaches helpers. Thread-safe. helper_client.h is the gRPC implementation.
class HelperGateway {
 public:
  virtual ~HelperGateway() = default;

  struct Handout {
    HelperAddress helper;
    RepairPart part;
  };

  // Sends every part at once and waits for all answers, at most `timeout`. One status for each
  // handout, in order; each names its node. After DEADLINE_EXCEEDED or UNAVAILABLE the part may run
  // or not.
  virtual std::vector<absl::Status> StartParts(const std::vector<Handout>& handouts,
                                               Duration timeout) = 0;

  // Asks the helpers to end their parts of a repair, attempts up to this one, all at once, and
  // waits a second at most. A part that misses the word ends by itself when its streams close or
  // stall.
  virtual void CancelRepair(RepairId repair_id, uint32_t attempt,
                            const std::vector<HelperAddress>& helpers) = 0;

  // The helper at this address is new; what was known of its connection no longer counts.
  virtual void ForgetConnection(const std::string& control_address) = 0;
};

}  // namespace ecpipe
