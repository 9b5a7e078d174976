// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "coordinator/edge/block_checker.h"
#include "coordinator/recovery/recovery_manager.h"
#include "coordinator/repairs/hosted_watch.h"
#include "coordinator/repairs/repair_coordinator.h"
#include "sim/network.h"
#include "sim/state.h"

namespace ecpipe::sim {

// One life of the coordinator: the real one over simulated state and calls to helpers.
class CoordinatorHost : public Host {
 public:
  CoordinatorHost(CoordinatorState* state, Network* network,
                  std::shared_ptr<const LinkTable> links);
  // Ends what runs here; on a fibre.
  ~CoordinatorHost() override;

  // Reads the journal and serves from then on; on a fibre of this host.
  void Start();
  // The process is gone, at this instant. The object is destroyed later.
  void Crash();

  RepairCoordinator& repairs() { return *repairs_; }
  RecoveryManager& recoveries() { return *recoveries_; }

 private:
  class Helpers;

  absl::StatusOr<WholeBlock> AskForBlock(const HelperAddress& helper, const std::string& block_id);

  Network* const network_;
  StateCatalog catalog_;
  StateJournal journal_;
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
