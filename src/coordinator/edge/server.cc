// SPDX-License-Identifier: Apache-2.0
#include "coordinator/edge/server.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>

#include "base/file_io.h"
#include "base/process/log.h"
#include "base/process/process_stats.h"
#include "base/process/service_manager.h"
#include "base/status.h"
#include "coordinator/store/sqlite_catalog.h"
#include "coordinator/store/sqlite_journal.h"
#include "rpc/audit_log.h"

namespace ecpipe {

absl::Status CoordinatorServer::Check(const CoordinatorConfig& config) {
  ECPIPE_RETURN_IF_ERROR(TlsContext::CreateIfEnabled(config.tls).status());
  ECPIPE_RETURN_IF_ERROR(
      CheckListenAddress(config.listen, config.insecure || config.tls.enabled()));
  if (config.default_transport == TransportKind::kRedis && config.tls.enabled() &&
      !config.insecure) {
    return absl::InvalidArgumentError(
        "defaults.transport: redis is plain text, which [tls] does not protect; use tcp, or set "
        "insecure = true if the network is private");
  }
  if (config.metrics_address.empty()) return absl::OkStatus();
  return Annotate(CheckListenAddress(config.metrics_address, config.insecure), "metrics.listen");
}

absl::StatusOr<std::unique_ptr<CoordinatorServer>> CoordinatorServer::Start(
    const CoordinatorConfig& config) {
  ECPIPE_RETURN_IF_ERROR(Check(config));
  ECPIPE_ASSIGN_OR_RETURN(const std::shared_ptr<TlsContext> tls,
                          TlsContext::CreateIfEnabled(config.tls));
  if (config.insecure && tls == nullptr) {
    Log(LogLevel::kWarning, "security.off",
        {{"reason", "insecure = true: anyone who can reach the port can order repairs"}});
  }
  std::unique_ptr<CoordinatorServer> server(new CoordinatorServer);
  ECPIPE_RETURN_IF_ERROR(server->OpenState(config));
  server->helpers_ = std::make_unique<HelperClient>(tls);
  server->news_ = std::make_unique<HostedNews>();
  server->hosted_watch_ = std::make_unique<HostedWatch>(server->news_.get());
  server->repairs_ = std::make_unique<RepairCoordinator>(
      server->catalog_.get(), server->journal_.get(), server->helpers_.get(), &Clock::System(),
      config.repairs, server->hosted_watch_.get());
  server->hosted_watch_->Start(server->repairs_.get());
  const std::optional<uint32_t> max_running = server->limits_->limits().cluster.max_running;
  if (max_running) server->repairs_->SetMaxRunning(*max_running);
  server->recoveries_ = std::make_unique<RecoveryManager>(
      server->catalog_.get(), server->journal_.get(), server->repairs_.get(), server->news_.get(),
      &Clock::System(), config.recoveries);
  ECPIPE_RETURN_IF_ERROR(server->TakeUpInterrupted());
  server->prober_ = std::make_unique<LinkProber>(
      &server->repairs_->nodes(), &server->repairs_->links(), &server->repairs_->busy(),
      server->helpers_.get(), &Clock::System(), config.probes);
  if (const NameNodeOptions& namenode = config.namenode; !namenode.urls.empty()) {
    server->namenode_ = std::make_unique<NameNodeGroups>(
        "block groups",
        [namenode](const std::function<bool()>& stop) { return FetchGroups(namenode, stop); },
        namenode.refresh);
    // Cheap for the NameNode, and HDFS lets a DataNode be silent for minutes.
    constexpr Duration kLivesRefresh = std::chrono::seconds(10);
    server->lives_ = std::make_unique<NameNodeLives>(
        "DataNodes",
        [namenode](const std::function<bool()>& stop) { return FetchLives(namenode, stop); },
        kLivesRefresh);
  }
  server->hdfs_ = std::make_unique<HdfsSource>(
      &server->repairs_->nodes(), &server->repairs_->corrupt(), server->namenode_.get(),
      config.namenode.path == "/", &Clock::System(), server->lives_.get());
  server->qfs_ = std::make_unique<QfsSource>(
      &server->repairs_->nodes(), &server->repairs_->corrupt(), config.qfs, &Clock::System());
  server->loss_keeper_ =
      std::make_unique<LossKeeper>(server->losses_.get(), &server->repairs_->nodes(),
                                   server->hdfs_->reported(), &Clock::System());
  server->loss_keeper_->Restore();
  server->service_ = std::make_unique<CoordinatorServiceImpl>(
      server->repairs_.get(), server->recoveries_.get(), server->prober_.get(),
      server->catalog_.get(), StripeSources({server->qfs_.get(), server->hdfs_.get()}),
      server->journal_.get(), server->limits_.get(),
      CoordinatorServiceImpl::DefaultLimits{config.repair_bytes_per_second,
                                            config.repairs.max_running},
      CoordinatorServiceImpl::Transports{config.default_transport,
                                         config.insecure || tls == nullptr},
      config.addresses);
  std::shared_ptr<AuditLog> audit;  // shared with the calls
  if (!config.audit_path.empty()) {
    ECPIPE_ASSIGN_OR_RETURN(audit, AuditLog::Open(config.audit_path));
  }
  ECPIPE_ASSIGN_OR_RETURN(server->rpc_, RpcServer::Start(config.listen, RpcSecurity(tls, audit),
                                                         server->service_.get()));
  ECPIPE_RETURN_IF_ERROR(server->StartMetrics(config));
  server->StartLoops();
  return server;
}

CoordinatorServer::~CoordinatorServer() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  stop_.NotifyAll();
  if (ticker_.joinable()) ticker_.join();
  if (expiry_.joinable()) {
    expiry_.join();
    loss_keeper_->Look();  // what has died since the last time
  }
  metrics_.reset();
  if (prober_ != nullptr) prober_->Stop();
  rpc_.reset();
  if (hosted_watch_ != nullptr) hosted_watch_->Stop();
  recoveries_.reset();
}

absl::Status CoordinatorServer::OpenState(const CoordinatorConfig& config) {
  std::error_code error;
  const bool created = std::filesystem::create_directories(config.data_directory, error);
  if (error) return ErrnoStatus(error.value(), "create " + config.data_directory);
  if (created && ::chmod(config.data_directory.c_str(), kServiceDirectoryMode) != 0) {
    return ErrnoStatus(errno, "set the mode of " + config.data_directory);
  }
  // A file each: SQLite allows one writer a file, and a repair must not wait for a bulk load.
  ECPIPE_ASSIGN_OR_RETURN(catalog_, SqliteCatalog::Open(config.data_directory + "/catalog.db", {}));
  ECPIPE_ASSIGN_OR_RETURN(journal_, SqliteJournal::Open(config.data_directory + "/journal.db"));
  ECPIPE_ASSIGN_OR_RETURN(losses_, SqliteLosses::Open(config.data_directory + "/losses.db"));
  ECPIPE_ASSIGN_OR_RETURN(limits_, LimitBook::Open(config.data_directory + "/limits.db",
                                                   config.data_directory + "/limits.txt"));
  return absl::OkStatus();
}

absl::Status CoordinatorServer::TakeUpInterrupted() {
  ECPIPE_ASSIGN_OR_RETURN(const std::vector<RepairRecord> interrupted,
                          journal_->ClaimInterrupted(Clock::System().UnixMillis()));
  for (const RepairRecord& record : interrupted) {
    if (!record.hosts.empty()) continue;
    Log(LogLevel::kWarning, "repair.interrupted",
        {{"repair", RepairIdText(record.repair_id)},
         {"block", record.block_ids.empty() ? "" : record.block_ids.front()},
         {"scheme", record.scheme},
         {"hint", "the coordinator stopped during this repair; ask for the block again"}});
  }
  return recoveries_->Open(interrupted);
}

absl::Status CoordinatorServer::StartMetrics(const CoordinatorConfig& config) {
  if (config.metrics_address.empty()) return absl::OkStatus();
  ECPIPE_ASSIGN_OR_RETURN(metrics_, MetricsServer::Start(config.metrics_address));
  metrics_->AddGauge("ecpipe_nodes_live", "Helpers that send heartbeats.", [this] {
    const auto nodes = repairs_->nodes().All();
    return static_cast<double>(std::count_if(nodes.begin(), nodes.end(), [](const auto& node) {
      return node.state == NodeState::kLive;
    }));
  });
  const auto repairs = [this](const char* name, const char* help, auto count) {
    metrics_->AddCounter(name, help,
                         [this, count] { return static_cast<double>(repairs_->counts().*count); });
  };
  repairs("ecpipe_repairs_started_total", "Repairs handed out.", &RepairCounts::started);
  repairs("ecpipe_repairs_done_total", "Repairs that their requestor verified.",
          &RepairCounts::done);
  repairs("ecpipe_repairs_failed_total", "Repairs that ended with an error.",
          &RepairCounts::failed);
  metrics_->AddGauge("ecpipe_corrupt_blocks",
                     "Blocks that were found corrupt and are not repaired yet.",
                     [this] { return static_cast<double>(repairs_->corrupt().All().size()); });
  metrics_->AddCounter("ecpipe_corrupt_blocks_found_total", "Blocks that were found corrupt.",
                       [this] { return static_cast<double>(repairs_->corrupt().found()); });
  const auto recoveries = [this](const char* name, const char* help, auto count) {
    metrics_->AddGauge(name, help, [this, count] {
      uint64_t sum = 0;
      for (const RecoveryView& view : recoveries_->All()) {
        if (view.record.ended_unix_ms == 0) sum += count(view);
      }
      return static_cast<double>(sum);
    });
  };
  metrics_->AddGauge(
      "ecpipe_hdfs_groups", "HDFS block groups that the NameNode listed in its last answer.",
      [this] {
        const std::optional<HdfsStatus> hdfs = hdfs_->Status();
        return hdfs && hdfs->groups.table ? static_cast<double>(hdfs->groups.table->size()) : 0.0;
      });
  metrics_->AddGauge("ecpipe_hdfs_groups_age_seconds",
                     "Age of the NameNode's last answer; 0 before the first answer.", [this] {
                       const std::optional<HdfsStatus> hdfs = hdfs_->Status();
                       return hdfs ? hdfs->groups.age_seconds : 0.0;
                     });
  metrics_->AddGauge("ecpipe_hdfs_degraded_groups",
                     "HDFS block groups with a block that no live node has.", [this] {
                       const std::optional<HdfsStatus> hdfs = hdfs_->Status();
                       return hdfs ? static_cast<double>(hdfs->health.degraded) : 0.0;
                     });
  recoveries("ecpipe_recovery_blocks_waiting", "Lost blocks that wait for their repair.",
             [](const RecoveryView& view) { return view.waiting_blocks; });
  recoveries("ecpipe_recovery_blocks_running", "Lost blocks that are being repaired.",
             [](const RecoveryView& view) { return view.running_blocks; });
  recoveries("ecpipe_recovery_blocks_given_up",
             "Lost blocks that running recoveries have given up.",
             [](const RecoveryView& view) { return view.record.failed_blocks; });
  metrics_->AddCounter("ecpipe_process_cpu_seconds_total", "User and system CPU time.",
                       ProcessCpuSeconds);
  return absl::OkStatus();
}

void CoordinatorServer::StartLoops() {
  ticker_ = Thread([this] {
    DoRegularly([this] {
      repairs_->nodes().Tick();
      ticked_ = true;
    });
  });
  expiry_ = Thread([this] {
    DoRegularly([this] {
      repairs_->Expire();
      loss_keeper_->Look();
      // Both loops turn, or the service manager hears nothing.
      if (ticked_.exchange(false)) ServiceManager::OfThisProcess().Alive();
    });
  });
}

void CoordinatorServer::DoRegularly(const std::function<void()>& work) {
  while (true) {
    {
      const TimePoint next = Clock::System().Now() + NodeTable::kTick;
      MutexLock lock(&mutex_);
      while (!stopping_ && stop_.WaitUntil(lock, next)) {
      }
      if (stopping_) return;
    }
    work();
  }
}

}  // namespace ecpipe
