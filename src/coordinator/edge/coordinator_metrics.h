// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "coordinator/cluster/mark_keeper.h"
#include "coordinator/recovery/recovery_manager.h"
#include "coordinator/repairs/repair_coordinator.h"
#include "coordinator/sources/stripe_source.h"
#include "coordinator/store/limit_book.h"
#include "web/metrics.h"

namespace ecpipe {

// What the coordinator's metrics tell of. All pointers outlive the scrapes.
struct CoordinatorView {
  RepairCoordinator* repairs = nullptr;
  RecoveryManager* recoveries = nullptr;
  LimitBook* limits = nullptr;
  MarkKeeper* marks = nullptr;
  std::string data_directory;
  double repair_bytes_per_second = 0;  // the configuration's limit; 0: none
  uint32_t max_running = 0;            // the same
  StripeSources sources;
};
void AddCoordinatorMetrics(const CoordinatorView& view, Metrics* metrics);

}  // namespace ecpipe
