// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/checksum_kind.h"
#include "common/clock.h"
#include "common/part_progress.h"
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

  // What a helper says of a part that runs.
  struct Started {
    std::optional<ChecksumKind> checksum;  // of the part's block, if its store keeps some
  };

  // Sends every part at once and waits for all answers, at most `timeout`. One answer for each
  // handout, in order; an error names its node. After DEADLINE_EXCEEDED or UNAVAILABLE the part may
  // run or not.
  virtual std::vector<absl::StatusOr<Started>> StartParts(const std::vector<Handout>& handouts,
                                                          Duration timeout) = 0;

  // How far the helpers' parts of an attempt have come, asked all at once; one answer for each, in
  // order. UNAVAILABLE, DEADLINE_EXCEEDED: the helper does not answer. NOT_FOUND: it knows of no
  // such part.
  virtual std::vector<absl::StatusOr<PartProgress>> AskParts(
      RepairId repair_id, uint32_t attempt, const std::vector<HelperAddress>& helpers,
      Duration timeout) = 0;

  // Asks the helpers to end their parts of a repair, attempts up to this one, all at once, and
  // waits a second at most. What they have of blocks that they store is discarded. A part that
  // misses the word ends by itself when its streams close or stall.
  virtual void CancelRepair(RepairId repair_id, uint32_t attempt,
                            const std::vector<HelperAddress>& helpers) = 0;
  // The same, for another attempt to follow: helpers keep a while what they have of the blocks that
  // their parts store, and have ended these parts when this returns, unless they hang.
  virtual void EndAttempt(RepairId repair_id, uint32_t attempt,
                          const std::vector<HelperAddress>& helpers) = 0;

  // The helper at this address is new; what was known of its connection no longer counts.
  virtual void ForgetConnection(const std::string& control_address) = 0;
};

}  // namespace ecpipe
