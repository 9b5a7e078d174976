// SPDX-License-Identifier: Apache-2.0
// The record of repairs. It tells a coordinator that starts again which repairs were running.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/plan/repair_plan.h"
#include "model/recovery.h"
#include "model/repair.h"

namespace ecpipe {

// Thread-safe. Every call may block on a disk or a network. Calls that give several records leave
// out damaged ones and log them. A call that fails has stored nothing, except that UNKNOWN says
// that it may have.
class Journal {
 public:
  virtual ~Journal() = default;

  // Stores the record under its repair_id, replacing an older one of the same id. It survives the
  // process; the newest ones may be lost in a power cut.
  virtual absl::Status Record(const RepairRecord& record) = 0;

  // Marks every record that is kRunning as kInterrupted and returns those records (as they now
  // are). The coordinator calls it once, when it starts.
  virtual absl::StatusOr<std::vector<RepairRecord>> ClaimInterrupted(int64_t now_unix_ms) = 0;

  // NOT_FOUND: there was no such repair, or Trim has removed it. DATA_LOSS: its record is damaged.
  virtual absl::StatusOr<RepairRecord> Find(RepairId repair_id) = 0;

  // At most `limit` records: those that run before those that have ended, both the newest first by
  // start time. However many have ended since, a repair that runs is seen.
  virtual absl::StatusOr<std::vector<RepairRecord>> Recent(int limit) = 0;
  // The same without those that run.
  virtual absl::StatusOr<std::vector<RepairRecord>> RecentlyEnded(int limit) = 0;

  // The same for a recovery; recovery_id is not 0.
  virtual absl::Status RecordRecovery(const RecoveryRecord& record) = 0;
  // What was recorded before survives a power cut when this returns OK. It waits for the disk, and
  // holds up no other call meanwhile. UNKNOWN: a power cut may take it.
  virtual absl::Status Sync() = 0;
  // The newest first: the newest `limit`, and beyond them those that have not ended or that keep a
  // node out, however old they are.
  virtual absl::StatusOr<std::vector<RecoveryRecord>> Recoveries(int limit) = 0;

  // Removes all but the newest `keep` repairs that have ended. Running repairs and recoveries stay.
  virtual absl::Status Trim(int keep) = 0;
};

}  // namespace ecpipe
