// SPDX-License-Identifier: Apache-2.0
// The coordinator daemon's composition root: everything that it is made of, in the order of its
// life.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/process/directory_lock.h"
#include "base/process/running_config.h"
#include "base/thread.h"
#include "coordinator/cluster/mark_keeper.h"
#include "coordinator/edge/coordinator_config.h"
#include "coordinator/edge/coordinator_service.h"
#include "coordinator/edge/doctor_service.h"
#include "coordinator/edge/helper_client.h"
#include "coordinator/pages/status_page.h"
#include "coordinator/recovery/recovery_manager.h"
#include "coordinator/repairs/hosted_watch.h"
#include "coordinator/repairs/link_prober.h"
#include "coordinator/repairs/repair_coordinator.h"
#include "coordinator/sources/hdfs_source.h"
#include "coordinator/sources/loss_keeper.h"
#include "coordinator/sources/namenode_groups.h"
#include "coordinator/sources/qfs/qfs_source.h"
#include "coordinator/sources/sqlite_losses.h"
#include "coordinator/store/catalog.h"
#include "coordinator/store/journal.h"
#include "coordinator/store/limit_book.h"
#include "coordinator/store/sqlite_marks.h"
#include "coordinator/upkeep/block_checker.h"
#include "rpc/config_service.h"
#include "rpc/rpc_server.h"
#include "web/daemon_pages.h"

namespace ecpipe {

class CoordinatorServer {
 public:
  // What Start() would refuse in a configuration before it opens anything: TLS files that cannot be
  // used, addresses that nothing protects.
  static ConfigTroubles Check(const CoordinatorConfig& config);
  // Opens catalog and journal, and begins to serve. After an error nothing runs.
  static absl::StatusOr<std::unique_ptr<CoordinatorServer>> Start(const CoordinatorConfig& config);
  ~CoordinatorServer();

  // Takes up the keys that can be taken up (ReloadableCoordinatorKeys).
  RunningConfig::Changes Reload(const CoordinatorConfig& config);

  const std::string& address() const { return rpc_->address(); }
  // Of its pages; empty: there are none.
  std::string web_address() const { return pages_ == nullptr ? "" : pages_->address(); }

 private:
  explicit CoordinatorServer(const CoordinatorConfig& config)
      : running_(config.values, ReloadableCoordinatorKeys()) {}
  absl::Status OpenState(const CoordinatorConfig& config);
  absl::Status MakeRepairs(RepairCoordinator::Options options);
  void MakeCheckerAndExtraCopies();
  absl::Status TakeUpInterrupted();
  absl::Status ServePages(const CoordinatorConfig& config, std::shared_ptr<TlsContext> tls);
  void StartLoops(Duration dead_after);
  void LookForAbsentNodes();
  // Does the work every NodeTable::kTick until the server stops.
  void DoRegularly(const std::function<void()>& work);

  RunningConfig running_;
  ConfigService config_service_{&running_};
  std::optional<DirectoryLock> state_lock_;  // held until nothing uses the state any more
  std::unique_ptr<Catalog> catalog_;
  std::unique_ptr<Journal> journal_;
  std::unique_ptr<SqliteLosses> losses_;
  std::unique_ptr<SqliteLosses> qfs_losses_;
  std::unique_ptr<LimitBook> limits_;
  std::unique_ptr<SqliteMarks> marks_;
  std::unique_ptr<MarkKeeper> mark_keeper_;
  std::unique_ptr<HelperClient> helpers_;
  std::unique_ptr<HostedNews> news_;
  std::unique_ptr<HostedWatch> hosted_watch_;
  std::unique_ptr<RepairCoordinator> repairs_;
  std::unique_ptr<RecoveryManager> recoveries_;
  std::unique_ptr<LinkProber> prober_;
  std::unique_ptr<NameNodeGroups> namenode_;  // null: none is configured
  std::unique_ptr<NameNodeLives> lives_;      // as namenode_
  std::unique_ptr<HdfsSource> hdfs_;
  std::unique_ptr<QfsSource> qfs_;
  std::unique_ptr<LossKeeper> loss_keeper_;
  std::unique_ptr<LossKeeper> qfs_loss_keeper_;
  std::unique_ptr<BlockChecker> checker_;
  std::unique_ptr<ExtraCopies> extra_copies_;
  std::unique_ptr<CoordinatorServiceImpl> service_;
  std::unique_ptr<CoordinatorDoctor> doctor_;
  std::unique_ptr<RpcServer> rpc_;
  Metrics metrics_;
  LoopWatch loops_;
  std::unique_ptr<StatusPage> status_page_;
  std::unique_ptr<HttpServer> pages_;  // null without an address

  Mutex mutex_;
  CondVar stop_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<bool> ticked_{false};  // by ticker_, since expiry_ last looked
  Thread expiry_;
  Thread ticker_;  // waits for no disk: late ticks count as a pause of the coordinator itself
};

}  // namespace ecpipe
