// SPDX-License-Identifier: Apache-2.0
#include "helper/edge/server.h"

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#include "base/process/log.h"
#include "base/process/service_manager.h"
#include "base/secret_file.h"
#include "base/status.h"
#include "helper/edge/helper_metrics.h"
#include "helper/store/hdfs_store.h"
#include "helper/store/plain/plain_store.h"
#include "helper/store/qfs/qfs_store.h"
#include "model/plan/features.h"
#include "net/endpoint_address.h"
#include "net/host_lookups.h"
#include "net/redis/redis_connection.h"
#include "net/redis/redis_transport.h"
#include "net/tcp_socket.h"
#include "net/tcp_transport.h"
#include "rpc/audit_log.h"

namespace ecpipe {
namespace {

// A restarted helper must not be mistaken for the one before it.
uint64_t NewIncarnation() { return static_cast<uint64_t>(Clock::System().UnixMillis()); }

absl::StatusOr<std::unique_ptr<BlockStore>> OpenStore(const HelperConfig& config) {
  if (config.store == StoreKind::kHdfs) return OpenHdfsStore(config.roots, config.report_interval);
  if (config.store == StoreKind::kQfs) {
    return OpenQfsStore(config.roots, config.chunkserver, config.report_interval);
  }
  return OpenPlainStore(config.roots, config.checksums);
}

Endpoint::Options EndpointOptions(const EndpointConfig& config, bool insecure,
                                  std::shared_ptr<TlsContext> tls) {
  return {.address = config.address,
          .mode = config.mode,
          .max_connections = config.max_connections,
          .access = {.allow_users = config.allow_users,
                     .allow_groups = config.allow_groups,
                     .first_users = config.first_users,
                     .cookie = config.cookie,
                     .cookie_mode = config.cookie_mode},
          .insecure = insecure,
          .tls = std::move(tls),
          .session = {}};
}

absl::StatusOr<std::unique_ptr<Endpoint>> StartEndpoint(const EndpointConfig& config, bool insecure,
                                                        uint64_t buffer_bytes,
                                                        RequestorOptions requestor) {
  requestor.part.buffers = std::make_shared<SharedRoom>(buffer_bytes);
  if (requestor.tls != nullptr) requestor.part.stream_bytes = TlsSession::kMostBytes;
  ECPIPE_ASSIGN_OR_RETURN(RepairSourceFactory sources, RequestorSources(requestor));
  return Endpoint::Start(EndpointOptions(config, insecure, requestor.tls), std::move(sources));
}

void AddEndpointMetrics(Endpoint* endpoint, Metrics* metrics) {
  metrics->AddGauge("ecpipe_endpoint_connections", "Open connections to the requestor endpoint.",
                    [endpoint] { return static_cast<double>(endpoint->counts().connections); });
  const auto counter = [&](const std::string& name, const std::string& help, auto read) {
    metrics->AddCounter(name, help,
                        [endpoint, read] { return static_cast<double>(read(endpoint->counts())); });
  };
  using Counts = const EndpointCounts&;
  counter("ecpipe_endpoint_repairs_done_total",
          "Repairs that the endpoint sent to its clients in full.",
          [](Counts counts) { return counts.repairs_done; });
  counter("ecpipe_endpoint_repairs_failed_total",
          "Repairs that the endpoint could not finish, or that clients gave up.",
          [](Counts counts) { return counts.repairs_failed; });
  counter("ecpipe_endpoint_bad_requests_total", "Endpoint connections without a valid request.",
          [](Counts counts) { return counts.bad_requests; });
  counter("ecpipe_endpoint_refused_total",
          "Endpoint connections refused because max_connections were open.",
          [](Counts counts) { return counts.refused; });
  counter("ecpipe_endpoint_sent_bytes_total",
          "Bytes of blocks that the endpoint sent to its clients.",
          [](Counts counts) { return counts.bytes_sent; });
}

// Opens a port that a predecessor may be about to give up.
template <typename Start>
auto AfterPredecessor(const Start& start) {
  constexpr Duration kPatience = std::chrono::seconds(2);
  constexpr Duration kPause = std::chrono::milliseconds(50);
  const TimePoint give_up = Clock::System().Now() + kPatience;
  auto started = start();
  while (absl::IsUnavailable(started.status()) && Clock::System().Now() < give_up) {
    std::this_thread::sleep_for(kPause);  // sleep-ok: nothing tells that a port is free
    started = start();
  }
  return started;
}

// Who is elsewhere cannot reach a loopback address, nor one that stands for all of a host.
absl::Status CheckAdvertised(const HelperConfig& config, const std::string& key,
                             const std::string& host) {
  ECPIPE_ASSIGN_OR_RETURN(const HostPort coordinator, ParseHostPort(config.coordinator));
  const bool any = IsWildcard(host);
  if (IsLoopback(coordinator.host) || (!any && !IsLoopback(host))) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "coordinator " + config.coordinator + " is on another host, but this helper would tell it " +
      host + ", " + (any ? "which stands for every address" : "a loopback address") +
      ", as its own; set [listen] " + key + ", or advertise_" + key +
      ", to a name or address of this host that the others reach");
}

// By what the configuration says; what a name means is known only when the ports are open.
ConfigTroubles CheckAdvertisedTexts(const HelperConfig& config) {
  ConfigTroubles troubles;
  for (const std::string key : {"control", "data"}) {
    const bool control = key == "control";
    const std::string& listens = control ? config.control_address : config.data_address;
    const std::string& advertised =
        control ? config.advertised_control_address : config.advertised_data_address;
    const auto told = ParseHostPort(advertised.empty() ? listens : advertised);
    // What is no address is refused as such.
    if (!told.ok() || !ParseHostPort(config.coordinator).ok()) continue;
    troubles.Add((advertised.empty() ? "listen." : "listen.advertise_") + key,
                 CheckAdvertised(config, key, told->host));
  }
  return troubles;
}

// The host's own name often is a loopback address in /etc/hosts: then only this host reaches a port
// that listens on the name.
absl::Status CheckBound(const HelperConfig& config, const std::string& key,
                        const std::string& listens, const std::string& advertised) {
  if (!advertised.empty()) return absl::OkStatus();
  ECPIPE_ASSIGN_OR_RETURN(const HostPort told, ParseHostPort(listens));
  const TimePoint deadline = Clock::System().Now() + HostLookups::kPatience;
  ECPIPE_ASSIGN_OR_RETURN(const auto numeric,
                          HostLookups::OfThisProcess().Begin(told.host)->Await(deadline));
  return Annotate(CheckAdvertised(config, key, numeric.front()), listens);
}

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

ConfigTroubles HelperServer::Check(const HelperConfig& config) {
  ConfigTroubles troubles = TlsContext::Check(config.tls);
  const bool has_tls = config.tls.enabled();
  const bool allowed = config.insecure || has_tls;
  troubles.Add("listen.control", CheckListenAddress(config.control_address, allowed));
  troubles.Add("listen.data", CheckListenAddress(config.data_address, allowed));
  troubles.Add(CheckAdvertisedTexts(config));
  if (!config.redis_address.empty()) {  // plain text whatever [tls] says
    troubles.Add("redis.address", CheckListenAddress(config.redis_address, config.insecure));
  }
  troubles.AddOfFile("redis.password_file", CheckSecret(config.redis_password_file));
  troubles.Add(CheckWebOptions(config.web, has_tls, config.insecure));
  if (!config.endpoint.address.empty()) {
    troubles.Add(
        Endpoint::Check(EndpointOptions(config.endpoint, config.insecure, nullptr), has_tls));
  }
  return troubles;
}

absl::StatusOr<std::unique_ptr<HelperServer>> HelperServer::Start(const HelperConfig& config) {
  ECPIPE_RETURN_IF_ERROR(Check(config).First());
  ECPIPE_RETURN_IF_ERROR(
      CheckBound(config, "control", config.control_address, config.advertised_control_address));
  ECPIPE_RETURN_IF_ERROR(
      CheckBound(config, "data", config.data_address, config.advertised_data_address));
  std::unique_ptr<HelperServer> server(new HelperServer(config));
  ECPIPE_RETURN_IF_ERROR(server->StartDataPlane());
  ECPIPE_RETURN_IF_ERROR(server->StartControlPlane());
  if (!config.endpoint.address.empty()) {
    RequestorOptions requestor;
    requestor.coordinator = config.coordinator;
    requestor.name = config.node_id;
    requestor.tls = server->tls_;
    requestor.redis_password_file = config.redis_password_file;
    ECPIPE_ASSIGN_OR_RETURN(server->endpoint_, AfterPredecessor([&] {
                              return StartEndpoint(config.endpoint, config.insecure,
                                                   config.sessions.max_buffer_bytes / 2, requestor);
                            }));
  }
  ECPIPE_RETURN_IF_ERROR(server->ServePages());
  return server;
}

HelperServer::~HelperServer() {
  // No new parts, no running parts, and only then nobody to report to.
  pages_.reset();
  rpc_.reset();
  endpoint_.reset();
  // A part over a disk that hangs reports as well, when the disk answers.
  while (sessions_ != nullptr && !sessions_->Drain(Duration(0))) {
  }
  reports_.reset();
  coordinator_.reset();
}

absl::Status HelperServer::StartDataPlane() {
  ECPIPE_ASSIGN_OR_RETURN(tls_, TlsContext::CreateIfEnabled(config_.tls));
  if (config_.insecure && tls_ == nullptr) {
    Log(LogLevel::kWarning, "security.off",
        {{"reason", "insecure = true: anyone who can reach the ports can read blocks"}});
  }
  ECPIPE_ASSIGN_OR_RETURN(store_, OpenStore(config_));
  ECPIPE_ASSIGN_OR_RETURN(data_server_, AfterPredecessor([&] {
                            return DataServer::Start(config_.data_address, {.tls = tls_});
                          }));
  tcp_ = MakeTcpTransport(data_server_.get(), tls_);
  if (!config_.redis_address.empty()) {
    ECPIPE_RETURN_IF_ERROR(RedisConnection::CheckLibrary());
    // Nothing is left to read once both ends have given up.
    redis_ = MakeRedisTransport({.own_address = config_.redis_address,
                                 .expiry = 2 * config_.sessions.part.stall_timeout,
                                 .password_file = config_.redis_password_file});
  }
  limiter_.SetRate(own_bytes_per_second_);
  SessionManager::Options options = config_.sessions;
  options.part.send_limiter = &limiter_;
  if (tls_ != nullptr) options.part.stream_bytes = TlsSession::kMostBytes;
  sessions_ = std::make_unique<SessionManager>(store_.get(), tcp_.get(), redis_.get(), options,
                                               [this](const PartReport& report) {
                                                 if (report.stored) coordinator_->CountSoon();
                                                 coordinator_->Report(report);
                                               });
  return absl::OkStatus();
}

absl::Status HelperServer::StartControlPlane() {
  // A node that begins to send has a larger share, and those at work smaller ones.
  service_ =
      std::make_unique<HelperServiceImpl>(config_.node_id, sessions_.get(), store_.get(), [this] {
        if (shares_rate_) coordinator_->HeartbeatNow();
      });
  doctor_ = std::make_unique<HelperDoctor>(config_, store_.get(), tls_);
  ECPIPE_ASSIGN_OR_RETURN(const std::shared_ptr<AuditLog> audit,
                          OpenAudit(config_.audit_path, &metrics_));
  ECPIPE_ASSIGN_OR_RETURN(rpc_, AfterPredecessor([&] {
                            return RpcServer::Start(
                                config_.control_address, RpcSecurity(tls_, audit),
                                {service_.get(), doctor_.get(), &config_service_});
                          }));

  CoordinatorClient::Options options;
  options.coordinator = config_.coordinator;
  options.tls = tls_;
  options.node.set_node_id(config_.node_id);
  options.node.set_rack(config_.rack);
  const auto advertised = [](const std::string& configured, const std::string& bound) {
    return configured.empty() ? bound : configured;
  };
  options.node.set_control_address(advertised(config_.advertised_control_address, rpc_->address()));
  options.node.set_data_address(
      advertised(config_.advertised_data_address, data_server_->address()));
  options.node.set_redis_address(config_.redis_address);
  options.node.set_incarnation(NewIncarnation());
  options.node.set_storage_id(store_->storage_id());
  for (const std::string& name : FeatureNames(OwnFeatures())) options.node.add_features(name);
  options.pulse = [this] {
    return CoordinatorClient::Pulse{sessions_->counts().active_sessions, sessions_->draining(),
                                    limiter_.rate(), sessions_->max_sessions()};
  };
  options.registered = [this] {
    ++registrations_;
    ServiceManager::OfThisProcess().Ready("registered with " + config_.coordinator);
  };
  options.turned = [this](bool registered) { TellServiceManager(registered); };
  options.take_limits = [this](const v1::HelperLimits& limits) {
    heard_.Turned();  // each answer of the coordinator has limits
    TakeLimits(limits);
  };
  options.inventory = [this] {
    const absl::StatusOr<StoreInventory> inventory = store_->TakeInventory();
    if (inventory.ok()) return *inventory;
    Log(LogLevel::kWarning, "store.inventory_failed", {{"status", StatusText(inventory.status())}});
    return StoreInventory{};
  };
  // Such a store counts by itself, and answers at once.
  if (config_.store != StoreKind::kPlain) options.inventory_interval = std::chrono::seconds(1);
  BlockReportClient::Options reports;
  reports.coordinator = config_.coordinator;
  reports.tls = tls_;
  reports.node_id = config_.node_id;
  reports.incarnation = options.node.incarnation();
  reports.listing = [this] { return store_->Listing(); };
  reports.registrations = [this] { return registrations_.load(); };
  // Nobody can start a part before this: the coordinator learns of the helper from it.
  coordinator_ = std::make_unique<CoordinatorClient>(std::move(options));
  if (config_.store != StoreKind::kPlain) {
    reports_ = std::make_unique<BlockReportClient>(std::move(reports));
  }
  return absl::OkStatus();
}

void HelperServer::TellServiceManager(bool registered) {
  // Much longer than a turn of the loop takes while the coordinator does not answer.
  constexpr Duration kExtension = std::chrono::seconds(30);
  const ServiceManager& manager = ServiceManager::OfThisProcess();
  // A helper whose sessions are stuck does not come to the lines below, though it has heartbeats.
  const uint32_t active = sessions_->counts().active_sessions;
  if (sessions_->draining()) {
    manager.StillBusy(kExtension, "finishes " + std::to_string(active) + " parts of repairs");
  } else if (!registered) {
    manager.StillBusy(kExtension, "is not registered: coordinator " + config_.coordinator +
                                      " does not answer or refuses it; the log says why");
  }
  registered_ = registered;
  loops_.Turned();
  manager.Alive();
}

void HelperServer::TakeLimits(const v1::HelperLimits& limits) {
  const double own = limits.has_repair_bytes_per_second() ? limits.repair_bytes_per_second()
                                                          : own_bytes_per_second_.load();
  const double share = limits.cluster_share_bytes_per_second();
  const double rate = own > 0 && share > 0 ? std::min(own, share) : std::max(own, share);
  shares_rate_ = share > 0;
  if (rate >= 0 && rate != limiter_.rate()) limiter_.SetRate(rate);
  sessions_->SetMaxSessions(limits.has_max_sessions() ? limits.max_sessions()
                                                      : own_max_sessions_.load());
}

RunningConfig::Changes HelperServer::Reload(const HelperConfig& config) {
  own_bytes_per_second_ = config.repair_bytes_per_second;
  own_max_sessions_ = config.sessions.max_sessions;
  drain_patience_ = config.drain_patience;
  return running_.Reload(config.values);
}

absl::Status HelperServer::ServePages() {
  AddSessionMetrics(sessions_.get(), &limiter_, &metrics_);
  if (endpoint_ != nullptr) AddEndpointMetrics(endpoint_.get(), &metrics_);
  metrics_.AddGauges(
      "ecpipe_registered", "1 while the coordinator knows this helper, else 0.", [this] {
        const bool known = registered_ && heard_.Alive().ok();
        return std::vector<Metrics::Sample>{{{{"node", config_.node_id}}, known ? 1.0 : 0.0}};
      });
  Health health;
  health.alive = [this] { return loops_.Alive(); };
  health.ready = [this] { return Ready(); };
  ECPIPE_ASSIGN_OR_RETURN(pages_,
                          ServeDaemonPages(config_.web, tls_, &metrics_, std::move(health)));
  return absl::OkStatus();
}

absl::Status HelperServer::Ready() {
  if (sessions_->draining()) return absl::UnavailableError("it drains: it takes no new parts");
  if (registered_ && heard_.Alive().ok()) return absl::OkStatus();
  return absl::UnavailableError("it is not registered with the coordinator " + config_.coordinator +
                                ", or hears nothing of it; its log says why");
}

bool HelperServer::Drain() {
  rpc_->SetServing(false);
  // Flip first, tell the coordinator, then wait: it must not plan with this node any more.
  sessions_->StopAdmitting();
  coordinator_->Leave();
  // The coordinator goes on asking over the connections it has. A successor may start at once, but
  // from then on the coordinator asks that one, and plans anew the hosted repairs that still run
  // here.
  rpc_->StopListening();
  data_server_->StopListening();
  if (endpoint_ != nullptr) endpoint_->StopListening();
  pages_.reset();
  return sessions_->Drain(drain_patience_);
}

ConfigTroubles RequestorOnlyServer::Check(const RequestorOnlyConfig& config) {
  ConfigTroubles troubles = TlsContext::Check(config.tls);
  const bool has_tls = config.tls.enabled();
  if (!config.endpoint.address.empty()) {  // where it must not be, that is said already
    troubles.Add(
        Endpoint::Check(EndpointOptions(config.endpoint, config.insecure, nullptr), has_tls));
  }
  troubles.AddOfFile("redis.password_file", CheckSecret(config.redis_password_file));
  troubles.Add(CheckWebOptions(config.web, has_tls, config.insecure));
  return troubles;
}

absl::StatusOr<std::unique_ptr<RequestorOnlyServer>> RequestorOnlyServer::Start(
    const RequestorOnlyConfig& config) {
  ECPIPE_RETURN_IF_ERROR(Check(config).First());
  std::unique_ptr<RequestorOnlyServer> server(new RequestorOnlyServer(config));
  RequestorOptions requestor;
  requestor.coordinator = config.coordinator;
  requestor.name = config.name;
  requestor.redis_password_file = config.redis_password_file;
  ECPIPE_ASSIGN_OR_RETURN(requestor.tls, TlsContext::CreateIfEnabled(config.tls));
  ECPIPE_ASSIGN_OR_RETURN(server->endpoint_,
                          StartEndpoint(config.endpoint, config.insecure,
                                        SessionManager::Options().max_buffer_bytes, requestor));
  AddEndpointMetrics(server->endpoint_.get(), &server->metrics_);
  // Its endpoint accepts connections as long as it is there.
  const auto good = [] { return absl::OkStatus(); };
  ECPIPE_ASSIGN_OR_RETURN(
      server->pages_, ServeDaemonPages(config.web, requestor.tls, &server->metrics_, {good, good}));
  return server;
}

}  // namespace ecpipe
