// SPDX-License-Identifier: Apache-2.0
// The record of repairs. It tells a coordinator that starts again which repairs were running.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/plan/repair_plan.h"
#include "model/recovery_record.h"

namespace ecpipe {

enum class RepairState {
  kRunning,      // handed out, or about to be
  kDone,         // the requestor said that all bytes are verified
  kFailed,       // ended with an error; `detail` says which
  kInterrupted,  // was running when the coordinator stopped; the outcome is not known
};
const char* RepairStateName(RepairState state);

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

  friend bool operator==(const RepairRecord&, const RepairRecord&) = default;
};

// Thread-safe. Every call may block on a disk or a network. Calls that give several records leave
// out damaged ones and log them.
class Journal {
 public:
  virtual ~Journal() = default;

  // Stores the record under its repair_id, replacing an older one of the same id.
  virtual absl::Status Record(const RepairRecord& record) = 0;

  // Marks every record that is kRunning as kInterrupted and returns those records (as they now
  // are). The coordinator calls it once, when it starts.
  virtual absl::StatusOr<std::vector<RepairRecord>> TakeInterrupted(int64_t now_unix_ms) = 0;

  // NOT_FOUND: there was no such repair, or Trim has removed it. DATA_LOSS: its record is damaged.
  virtual absl::StatusOr<RepairRecord> Find(RepairId repair_id) = 0;

  // The newest records first, by start time.
  virtual absl::StatusOr<std::vector<RepairRecord>> Recent(int limit) = 0;

  // The same for a recovery; recovery_id is not 0.
  virtual absl::Status RecordRecovery(const RecoveryRecord& record) = 0;
  // The newest first.
  virtual absl::StatusOr<std::vector<RecoveryRecord>> Recoveries(int limit) = 0;

  // Removes all but the newest `keep` repairs that have ended. Running repairs and recoveries stay.
  virtual absl::Status Trim(int keep) = 0;
};

}  // namespace ecpipe
