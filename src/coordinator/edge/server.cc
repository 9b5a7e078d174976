// SPDX-License-Identifier: Apache-2.0
#include "coordinator/edge/server.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <vector>

#include "base/file_io.h"
#include "base/process/log.h"
#include "base/process/service_manager.h"
#include "base/status.h"
#include "coordinator/edge/coordinator_metrics.h"
#include "coordinator/store/sqlite_catalog.h"
#include "coordinator/store/sqlite_journal.h"
#include "coordinator/store/state_copy.h"
#include "coordinator/upkeep/absent_nodes.h"
#include "net/tcp_socket.h"
#include "rpc/audit_log.h"

namespace ecpipe {

ConfigTroubles CoordinatorServer::Check(const CoordinatorConfig& config) {
  ConfigTroubles troubles = TlsContext::Check(config.tls);
  const bool has_tls = config.tls.enabled();
  troubles.Add("coordinator.listen", CheckListenAddress(config.listen, config.insecure || has_tls));
  if (config.default_transport == TransportKind::kRedis && has_tls && !config.insecure) {
    troubles.Add("defaults.transport",
                 absl::InvalidArgumentError(
                     "redis is plain text, which [tls] does not protect; use tcp, or set insecure "
                     "= true if the network is private"));
  }
  troubles.Add(CheckWebOptions(config.web, has_tls, config.insecure));
  return troubles;
}

namespace {

// Null without a path. Shared with the calls.
absl::StatusOr<std::shared_ptr<AuditLog>> OpenAudit(const std::string& path, Metrics* metrics) {
  if (path.empty()) return nullptr;
  ECPIPE_ASSIGN_OR_RETURN(std::shared_ptr<AuditLog> audit, AuditLog::Open(path));
  metrics->AddCounter("ecpipe_audit_left_out_total",
                      "Lines that are not in the audit log, because there were too many at once.",
                      [audit] { return static_cast<double>(audit->left_out()); });
  metrics->AddCounter("ecpipe_audit_reopen_failures_total",
                      "Seconds in which the audit log was renamed and no new one could be opened.",
                      [audit] { return static_cast<double>(audit->reopen_failures()); });
  return audit;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CoordinatorServer>> CoordinatorServer::Start(
    const CoordinatorConfig& config) {
  ECPIPE_RETURN_IF_ERROR(Check(config).First());
  ECPIPE_ASSIGN_OR_RETURN(const std::shared_ptr<TlsContext> tls,
                          TlsContext::CreateIfEnabled(config.tls));
  if (config.insecure && tls == nullptr) {
    Log(LogLevel::kWarning, "security.off",
        {{"reason", "insecure = true: anyone who can reach the port can order repairs"}});
  }
  std::unique_ptr<CoordinatorServer> server(new CoordinatorServer(config));
  ECPIPE_RETURN_IF_ERROR(server->OpenState(config));
  server->helpers_ = std::make_unique<HelperClient>(tls);
  server->news_ = std::make_unique<HostedNews>();
  server->hosted_watch_ = std::make_unique<HostedWatch>(server->news_.get());
  ECPIPE_RETURN_IF_ERROR(server->MakeRepairs(config.repairs));
  server->recoveries_ = std::make_unique<RecoveryManager>(
      server->catalog_.get(), server->journal_.get(), server->repairs_.get(),
      server->helpers_.get(), server->news_.get(), &Clock::System(), config.recoveries);
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
      config.namenode.path == "/", &Clock::System(), server->lives_.get(), config.reported);
  server->qfs_ =
      std::make_unique<QfsSource>(&server->repairs_->nodes(), &server->repairs_->corrupt(),
                                  config.qfs, &Clock::System(), config.reported);
  NodeRegistry* const nodes = &server->repairs_->nodes();
  server->loss_keeper_ = std::make_unique<LossKeeper>(server->losses_.get(), nodes,
                                                      server->hdfs_->reported(), &Clock::System());
  server->loss_keeper_->Restore();
  server->qfs_loss_keeper_ = std::make_unique<LossKeeper>(
      server->qfs_losses_.get(), nodes, server->qfs_->reported(), &Clock::System());
  server->qfs_loss_keeper_->Restore();
  server->MakeCheckerAndExtraCopies();
  server->service_ = std::make_unique<CoordinatorServiceImpl>(
      server->repairs_.get(), server->recoveries_.get(), server->prober_.get(),
      server->catalog_.get(), StripeSources({server->qfs_.get(), server->hdfs_.get()}),
      server->journal_.get(), server->limits_.get(), server->checker_.get(), server->helpers_.get(),
      server->extra_copies_.get(),
      CoordinatorServiceImpl::DefaultLimits{config.repair_bytes_per_second,
                                            config.repairs.max_running},
      CoordinatorServiceImpl::Transports{config.default_transport,
                                         config.insecure || tls == nullptr},
      config.addresses, config.data_directory);
  server->doctor_ = std::make_unique<CoordinatorDoctor>(nodes, tls, config.data_directory);
  ECPIPE_ASSIGN_OR_RETURN(const std::shared_ptr<AuditLog> audit,
                          OpenAudit(config.audit_path, &server->metrics_));
  ECPIPE_ASSIGN_OR_RETURN(
      server->rpc_,
      RpcServer::Start(config.listen, RpcSecurity(tls, audit),
                       {server->service_.get(), server->doctor_.get(), &server->config_service_}));
  ECPIPE_RETURN_IF_ERROR(server->ServePages(config, tls));
  server->StartLoops(config.repairs.dead_after);
  return server;
}

RunningConfig::Changes CoordinatorServer::Reload(const CoordinatorConfig& config) {
  service_->SetAddresses(config.addresses);
  repairs_->nodes().SetRacks(config.repairs.racks);
  repairs_->links().SetConfigured(config.repairs.links);
  return running_.Reload(config.values);
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
    qfs_loss_keeper_->Look();
  }
  pages_.reset();
  if (prober_ != nullptr) prober_->Stop();
  if (extra_copies_ != nullptr) extra_copies_->Stop();
  rpc_.reset();
  checker_.reset();
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
  // A second coordinator would take this one's running repairs for interrupted, and each would
  // move blocks without the other.
  absl::StatusOr<DirectoryLock> lock =
      DirectoryLock::Take(config.data_directory, "coordinator.lock");
  if (!lock.ok()) return Annotate(lock.status(), "[coordinator] data_directory");
  state_lock_.emplace(*std::move(lock));
  ECPIPE_RETURN_IF_ERROR(RemoveLeftCopies(config.data_directory));
  const auto in_directory = [&](const char* name) { return config.data_directory + "/" + name; };
  // A file each: SQLite allows one writer a file, and a repair must not wait for a bulk load.
  ECPIPE_ASSIGN_OR_RETURN(catalog_, SqliteCatalog::Open(in_directory(kCatalogFile), {}));
  ECPIPE_ASSIGN_OR_RETURN(journal_, SqliteJournal::Open(in_directory(kJournalFile)));
  ECPIPE_ASSIGN_OR_RETURN(losses_, SqliteLosses::Open(in_directory(kLossesFile)));
  ECPIPE_ASSIGN_OR_RETURN(qfs_losses_, SqliteLosses::Open(in_directory(kQfsLossesFile)));
  ECPIPE_ASSIGN_OR_RETURN(marks_, SqliteMarks::Open(in_directory(kMarksFile)));
  mark_keeper_ = std::make_unique<MarkKeeper>(marks_.get(), &Clock::System());
  ECPIPE_ASSIGN_OR_RETURN(limits_, LimitBook::Open(in_directory(kLimitsFile)));
  return absl::OkStatus();
}

absl::Status CoordinatorServer::MakeRepairs(RepairCoordinator::Options options) {
  options.marks = mark_keeper_.get();
  repairs_ = std::make_unique<RepairCoordinator>(catalog_.get(), journal_.get(), helpers_.get(),
                                                 &Clock::System(), options, hosted_watch_.get());
  ECPIPE_RETURN_IF_ERROR(Annotate(repairs_->corrupt().Restore(), "the marks of corrupt blocks"));
  hosted_watch_->Start(repairs_.get());
  const std::optional<uint32_t> max_running = limits_->limits().cluster.max_running;
  if (max_running) repairs_->SetMaxRunning(*max_running);
  return absl::OkStatus();
}

void CoordinatorServer::MakeCheckerAndExtraCopies() {
  checker_ = std::make_unique<BlockChecker>(
      &repairs_->corrupt(), &repairs_->nodes(), catalog_.get(), &Clock::System(),
      [helpers = helpers_.get()](const HelperAddress& helper, const std::string& block_id,
                                 const std::stop_token& stop) {
        return helpers->CheckBlock(helper, block_id, stop);
      });
  extra_copies_ = std::make_unique<ExtraCopies>(catalog_.get(), repairs_.get(), helpers_.get(),
                                                helpers_.get(), &Clock::System());
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

absl::Status CoordinatorServer::ServePages(const CoordinatorConfig& config,
                                           std::shared_ptr<TlsContext> tls) {
  AddCoordinatorMetrics({.repairs = repairs_.get(),
                         .recoveries = recoveries_.get(),
                         .limits = limits_.get(),
                         .marks = mark_keeper_.get(),
                         .data_directory = config.data_directory,
                         .repair_bytes_per_second = config.repair_bytes_per_second,
                         .max_running = config.repairs.max_running,
                         .sources = StripeSources({qfs_.get(), hdfs_.get()})},
                        &metrics_);
  Health health;
  health.alive = [this] { return loops_.Alive(); };
  health.ready = [] { return absl::OkStatus(); };  // it serves pages once it serves calls
  status_page_ = std::make_unique<StatusPage>(
      StatusPage::View{.repairs = repairs_.get(),
                       .recoveries = recoveries_.get(),
                       .journal = journal_.get(),
                       .limits = limits_.get(),
                       .helpers = helpers_.get(),
                       .clock = &Clock::System(),
                       .repair_bytes_per_second = config.repair_bytes_per_second,
                       .max_running = config.repairs.max_running});
  ECPIPE_ASSIGN_OR_RETURN(pages_, ServeDaemonPages(config.web, std::move(tls), &metrics_,
                                                   std::move(health), status_page_->Pages()));
  return absl::OkStatus();
}

void CoordinatorServer::StartLoops(Duration dead_after) {
  checker_->Start();
  mark_keeper_->Start();
  ticker_ = Thread([this] {
    DoRegularly([this] {
      repairs_->nodes().Tick();
      ticked_ = true;
    });
  });
  // Who has not registered until then is missed, and nobody before.
  const TimePoint first_look = Clock::System().Now() + dead_after;
  expiry_ = Thread([this, first_look] {
    DoRegularly([this, next_look = first_look]() mutable {
      repairs_->Expire();
      if (const TimePoint begun = Clock::System().Now(); begun >= next_look) {
        LookForAbsentNodes();
        // A large catalog takes at most a twentieth of this thread, which others wait for.
        const TimePoint ended = Clock::System().Now();
        next_look = ended + std::max<Duration>(kLookForAbsentNodes, 20 * (ended - begun));
      }
      loss_keeper_->Look();
      qfs_loss_keeper_->Look();
      // Both loops turn, or the service manager hears nothing.
      if (!ticked_.exchange(false)) return;
      loops_.Turned();
      ServiceManager::OfThisProcess().Alive();
    });
  });
}

void CoordinatorServer::LookForAbsentNodes() {
  const absl::Status told = TellAbsentNodes(catalog_.get(), &repairs_->nodes());
  if (!told.ok()) Log(LogLevel::kError, "catalog.failed", {{"status", StatusText(told)}});
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
