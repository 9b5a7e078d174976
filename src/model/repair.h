// SPDX-License-Identifier: Apache-2.0
// Repairs: their records, and what requestor and coordinator tell each other of an attempt.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "model/checksum_kind.h"
#include "model/plan/cost.h"
#include "model/plan/repair_plan.h"
#include "model/plan/slices_left.h"
#include "model/stripe_facts.h"

namespace ecpipe {

enum class RepairState {
  kRunning,      // handed out, or about to be
  kDone,         // the requestor said that all bytes are verified
  kFailed,       // ended with an error; `detail` says which
  kInterrupted,  // was running when the coordinator stopped; the outcome is not known
  kCancelled,    // whoever wanted the bytes wants them no longer; no fault of the repair
};
const char* RepairStateName(RepairState state);
// Of a repair that ends so: done, cancelled or failed.
RepairState StateAfter(const absl::Status& status);
// For a name that this build does not know: kInterrupted.
RepairState RepairStateNamed(const std::string& name);

// Why a repair is made.
enum class RepairCause {
  // A requestor takes the bytes:
  kRead,            // the block was there, and was read itself; known at the end
  kDegradedRead,    // somebody waits for them
  kReconstruction,  // nobody waits: the requestor rebuilds the block
  // A recovery is for it:
  kNodeLoss,
  kDrain,
  kMaintenance,
  // Nodes store the block, as they were told:
  kCorruption,  // it was found corrupt
  kCommand,
};
// "read", "degraded_read", "reconstruction", "node_loss", "drain", "maintenance", "corruption",
// "command".
const char* RepairCauseName(RepairCause cause);

struct RepairRecord {
  RepairId repair_id = 0;
  uint32_t attempt = 0;
  std::vector<std::string> block_ids;  // the failed blocks
  uint64_t offset = 0;                 // range within each block, bytes
  uint64_t bytes = 0;
  std::string scheme;
  std::string transport;
  std::string requestor;
  // The nodes that store the blocks, one for each block; empty: the requestor takes the bytes.
  std::vector<std::string> hosts;
  std::vector<Row> moved;    // rows that their host has stored and that the catalog has moved there
  uint64_t recovery_id = 0;  // the recovery that the repair belongs to; 0: none
  RepairState state = RepairState::kRunning;
  int64_t started_unix_ms = 0;
  int64_t ended_unix_ms = 0;  // 0 while running
  std::string detail;         // why it failed; empty otherwise
  // The journal keeps neither of these.
  RepairCause cause = RepairCause::kDegradedRead;
  std::optional<double> first_byte_seconds;  // as in RepairVerdict

  friend bool operator==(const RepairRecord&, const RepairRecord&) = default;
};

// What the coordinator tells the requestor of an attempt that runs.
struct RepairGrant {
  RepairId repair_id = 0;
  RepairPart part;  // the requestor's own; without hops if nodes store the blocks
  std::string scheme;
  std::string stripe_id;
  // Stands for what the catalog says of the stripe's bytes. Empty: the catalog does not have it.
  std::string stripe_digest;
  std::vector<uint64_t> block_lengths;  // of the wanted blocks, in the request's order
  PlanCost cost;
  std::optional<ChecksumKind> checksum;  // the checksums that a survivor's store keeps, if any
  // Sources of the request's facts whose replicas are known to be corrupt.
  std::vector<StripeFacts::Source> corrupt;
};

// The state in which a failed attempt has left a repair.
struct ResumePoint {
  RepairId repair_id = 0;
  uint32_t attempt = 0;
  SlicesLeft left;
  std::string scheme;              // the scheme of that attempt
  absl::Status failure;            // why it failed, with the node at fault (model/fault.h)
  std::string stripe_digest = {};  // of that attempt's grant
};

// How a repair ended, as its requestor says.
struct RepairVerdict {
  absl::Status status;
  uint64_t verified_bytes = 0;
  // Of a read in order: from the requestor's call until it handed the first bytes on, all attempts
  // together. None: there was no such read, or no byte.
  std::optional<double> first_byte_seconds = std::nullopt;
};

// What to do about a running attempt.
struct ProgressAdvice {
  bool replan = false;  // end the attempt, and resume the repair
  std::string reason;
};

}  // namespace ecpipe
