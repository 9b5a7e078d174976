// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "coordinator/upkeep/block_checker.h"
#include "coordinator/recovery/recovery_manager.h"
#include "coordinator/repairs/hosted_watch.h"
#include "coordinator/repairs/repair_coordinator.h"
#include "sim/network.h"
#include "sim/state.h"

namespace ecpipe::sim {

// One life of the coordinator: the real one over simulated state and calls to helpers.
class CoordinatorHost : public Host {
 public:
  struct Limits {
    uint32_t running_repairs = 10'000;
    uint32_t streams_per_node = 8;
  };
  CoordinatorHost(CoordinatorState* state, Network* network, std::shared_ptr<const LinkTable> links,
                  const Limits& limits);
  // Ends what runs here; on a fibre.
  ~CoordinatorHost() override;

  // Reads the journal and serves from then on; on a fibre of this host.
  void Start();
  // The process is gone, at this instant. The object is destroyed later.
  void Crash();

  // Replaces limits.running_repairs.
  void SetRunningRepairs(uint32_t most) {
    running_repairs_ = most;
    repairs_->SetMaxRunning(most);
  }
  // Whether the repairs that run are within the limit. One that has ended counts until the last
  // answer has come.
  bool WithinLimit() { return repairs_->running() <= running_repairs_; }

  RepairCoordinator& repairs() { return *repairs_; }
  RecoveryManager& recoveries() { return *recoveries_; }

 private:
  class Helpers;

  absl::StatusOr<WholeBlock> AskForBlock(const HelperAddress& helper, const std::string& block_id);

  Network* const network_;
  uint32_t running_repairs_ = 0;
  CatalogOver catalog_;
  JournalOver journal_;
  StateMarks marks_;
  std::unique_ptr<Helpers> helpers_;
  HostedNews news_;
  HostedWatch hosted_watch_{&news_};
  std::unique_ptr<RepairCoordinator> repairs_;
  std::unique_ptr<RecoveryManager> recoveries_;
  std::unique_ptr<BlockChecker> checker_;
  uint64_t expiry_ = 0;  // the fibre that calls Expire()
};

}  // namespace ecpipe::sim
