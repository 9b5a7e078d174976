// SPDX-License-Identifier: Apache-2.0
// What the coordinator keeps on its disk, in memory: it outlives the coordinator's processes. Each
// of these gets a catalog and a journal of its own over it, which fail once it has crashed.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/cluster/corrupt_blocks.h"
#include "coordinator/store/catalog.h"
#include "coordinator/store/journal.h"
#include "sim/scheduler.h"

namespace ecpipe::sim {

struct CoordinatorState {
  std::map<std::string, Stripe> stripes;
  std::map<RepairId, RepairRecord> repairs;
  std::map<RecoveryId, RecoveryRecord> recoveries;
  struct Mark {
    CorruptBlock block;
    TimePoint kept{};  // max(): the coordinator has forgotten it, but not the disk
  };
  std::map<std::pair<std::string, std::string>, Mark> marks;  // by block id and node
  // Called before a block gets its new place.
  std::function<void(const std::string& block_id, const std::string& node)> on_move;
  // Called before a repair is recorded for the first time.
  std::function<void(const RepairRecord&)> on_repair;
};

class StateCatalog : public Catalog {
 public:
  StateCatalog(CoordinatorState* state, std::shared_ptr<Process> process)
      : state_(state), process_(std::move(process)) {}

  absl::StatusOr<PutCounts> Put(const std::vector<Stripe>& stripes) override;
  // The simulation has no operator who puts, removes or tries.
  absl::StatusOr<PutCounts> TryPut(const std::vector<Stripe>&) override { return NoOperator(); }
  absl::StatusOr<std::vector<Stripe>> Remove(const std::vector<std::string>&) override {
    return NoOperator();
  }
  absl::StatusOr<std::vector<Stripe>> TryRemove(const std::vector<std::string>&) override {
    return NoOperator();
  }
  absl::StatusOr<BlockLocation> FindBlock(const std::string& block_id) override;
  absl::StatusOr<Stripe> FindStripe(const std::string& stripe_id) override;
  absl::StatusOr<StripePage> List(const std::string& after_stripe_id, int limit) override;
  absl::StatusOr<NodeBlockPage> ListNode(const std::string& node, const std::string& page,
                                         int limit) override;
  absl::StatusOr<uint64_t> CountStripes() override { return state_->stripes.size(); }
  absl::StatusOr<std::map<std::string, uint64_t>> CountBlocksBut(
      const std::set<std::string>&) override {
    return NoOperator();
  }
  absl::Status MoveBlock(const std::string& block_id, const std::string& node,
                         const Stripe& was) override;

 private:
  static absl::Status NoOperator() { return absl::UnimplementedError("not simulated"); }

  CoordinatorState* const state_;
  const std::shared_ptr<Process> process_;  // shared with its fibres
};

class StateJournal : public Journal {
 public:
  StateJournal(CoordinatorState* state, std::shared_ptr<Process> process)
      : state_(state), process_(std::move(process)) {}

  absl::Status Record(const RepairRecord& record) override;
  absl::StatusOr<std::vector<RepairRecord>> ClaimInterrupted(int64_t now_unix_ms) override;
  absl::StatusOr<RepairRecord> Find(RepairId repair_id) override;
  absl::StatusOr<std::vector<RepairRecord>> Recent(int limit) override;
  absl::StatusOr<std::vector<RepairRecord>> RecentlyEnded(int limit) override;
  absl::Status RecordRecovery(const RecoveryRecord& record) override;
  absl::Status Sync() override { return absl::OkStatus(); }
  absl::StatusOr<std::vector<RecoveryRecord>> Recoveries(int limit) override;
  absl::Status Trim(int) override { return absl::OkStatus(); }

 private:
  CoordinatorState* const state_;
  const std::shared_ptr<Process> process_;  // shared with its fibres
};

class StateMarks : public CorruptBlockStore {
 public:
  StateMarks(CoordinatorState* state, std::shared_ptr<Process> process)
      : state_(state), process_(std::move(process)) {}

  absl::Status Keep(const CorruptBlock& block) override;
  absl::Status Forget(const std::string& block_id, const std::string& node) override;
  absl::StatusOr<std::vector<CorruptBlock>> Load() override;

 private:
  CoordinatorState* const state_;
  const std::shared_ptr<Process> process_;  // shared with its fibres
};

}  // namespace ecpipe::sim
