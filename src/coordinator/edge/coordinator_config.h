// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "base/process/config.h"
#include "base/process/log.h"
#include "coordinator/edge/address_rule.h"
#include "coordinator/recovery/recovery_manager.h"
#include "coordinator/repairs/link_prober.h"
#include "coordinator/repairs/repair_coordinator.h"
#include "coordinator/sources/namenode_groups.h"
#include "coordinator/sources/qfs/qfs_source.h"
#include "coordinator/sources/reported_blocks.h"
#include "model/plan/repair_plan.h"
#include "net/tls/tls_files.h"
#include "web/web_options.h"

namespace ecpipe {

// deploy/coordinator.toml explains each key.
struct CoordinatorConfig {
  ConfigValues values;  // all of them, by key
  std::string listen;
  std::string data_directory;
  WebOptions web;
  LogSettings log;
  bool insecure = false;
  TlsFiles tls;
  AddressRule addresses = AddressRule::Create({}).value();  // of helpers
  std::string audit_path;                                   // empty: no audit log
  TransportKind default_transport = TransportKind::kTcp;
  double repair_bytes_per_second = 0;  // of all helpers together; 0: no limit
  RepairCoordinator::Options repairs;
  RecoveryManager::Options recoveries;
  LinkProber::Options probes;
  NameNodeOptions namenode;
  QfsOptions qfs;
  ReportedBlocks::Limits reported;  // of HDFS, and of QFS
};

// INVALID_ARGUMENT with file:line for anything that is wrong.
absl::StatusOr<CoordinatorConfig> LoadCoordinatorConfig(
    const std::string& path, const ConfigCheck<CoordinatorConfig>& check = nullptr);

// The keys that it takes up on SIGHUP.
const std::set<std::string>& ReloadableCoordinatorKeys();

}  // namespace ecpipe
