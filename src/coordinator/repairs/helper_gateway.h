// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "model/checksum_kind.h"
#include "model/plan/part_progress.h"
#include "model/plan/repair_plan.h"

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

  // The answer of a helper to a part that it has started.
  struct Started {
    std::optional<ChecksumKind> checksum;  // the checksums that its store keeps of the part's block
  };

  // Sends all parts at the same time and waits for all answers, at most `timeout`. Returns one
  // answer for each handout, in order; an error names its node. After DEADLINE_EXCEEDED,
  // UNAVAILABLE or CANCELLED the part may or may not run.
  //
  // With `straggler_after`, when all helpers but one have answered, that one is waited for until
  // then, or for three times as long as the others took if that is longer; its answer is CANCELLED
  // after that, and no other one is.
  virtual std::vector<absl::StatusOr<Started>> StartParts(
      const std::vector<Handout>& handouts, Duration timeout,
      std::optional<Duration> straggler_after) = 0;

  // Asks all helpers at the same time how far their parts of an attempt have come. Returns one
  // answer for each, in order. UNAVAILABLE, DEADLINE_EXCEEDED: the helper does not answer.
  // NOT_FOUND: it does not know the part. With `straggler_after`, as above, but the answer of the
  // one that is not waited for is DEADLINE_EXCEEDED.
  virtual std::vector<absl::StatusOr<PartProgress>> AskParts(
      RepairId repair_id, uint32_t attempt, const std::vector<HelperAddress>& helpers,
      Duration timeout, std::optional<Duration> straggler_after) = 0;

  // Asks all helpers at the same time to end their parts of a repair, in attempts up to this one,
  // and waits at most a second. They discard slices that they have stored. A part that is not
  // reached ends by itself when its streams close or stall. Returns one answer for each, in order.
  virtual std::vector<absl::Status> CancelRepair(RepairId repair_id, uint32_t attempt,
                                                 const std::vector<HelperAddress>& helpers) = 0;
  // The same before another attempt: helpers keep the slices that their parts have stored for a
  // while. When this returns these parts have ended, unless they hang.
  virtual std::vector<absl::Status> EndAttempt(RepairId repair_id, uint32_t attempt,
                                               const std::vector<HelperAddress>& helpers) = 0;

  struct FoundBlock {
    uint64_t bytes = 0;
    std::string sha256;  // of the whole block when it was stored; empty: its store does not keep it
  };
  // What a helper has of the blocks that it was asked for; NOT_FOUND if no root has one, or why it
  // cannot be opened. There may be only the first ones.
  using FoundBlocks = std::vector<absl::StatusOr<FoundBlock>>;
  struct BlockQuestion {
    HelperAddress helper;
    std::vector<std::string> block_ids;  // at most kMaxBlocksInQuestion
  };
  static constexpr size_t kMaxBlocksInQuestion = 1000;
  // Asks all helpers at the same time. Returns one answer for each question, in order.
  // UNAVAILABLE, DEADLINE_EXCEEDED: the helper does not answer. UNIMPLEMENTED: it is too old.
  virtual std::vector<absl::StatusOr<FoundBlocks>> FindBlocks(
      const std::vector<BlockQuestion>& questions, Duration timeout) = 0;

  // A new helper is at this address; forgets the connection to the one before.
  virtual void ForgetConnection(const std::string& control_address) = 0;
};

}  // namespace ecpipe
