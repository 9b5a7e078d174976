// SPDX-License-Identifier: Apache-2.0
#include "helper/server.h"

#include "common/log.h"
#include "common/process_stats.h"
#include "common/redis_transport.h"
#include "common/status.h"
#include "common/tcp_transport.h"
#include "helper/plain_store.h"

namespace ecpipe {
namespace {

// A restarted helper must not be mistaken for the one before it.
uint64_t NewIncarnation() { return static_cast<uint64_t>(Clock::System().UnixMillis()); }

}  // namespace

absl::StatusOr<std::unique_ptr<HelperServer>> HelperServer::Start(const HelperConfig& config) {
  std::unique_ptr<HelperServer> server(new HelperServer(config));
  ECPIPE_RETURN_IF_ERROR(server->StartDataPlane());
  ECPIPE_RETURN_IF_ERROR(server->StartControlPlane());
  ECPIPE_RETURN_IF_ERROR(server->StartMetrics());
  return server;
}

HelperServer::~HelperServer() {
  // No new parts, no running parts, and only then nobody to report to.
  metrics_.reset();
  rpc_.reset();
  if (sessions_ != nullptr) sessions_->Drain(Duration(0));
  coordinator_.reset();
}

absl::Status HelperServer::StartDataPlane() {
  for (const std::string& address : {config_.control_address, config_.data_address}) {
    ECPIPE_RETURN_IF_ERROR(CheckListenAddress(address, config_.insecure));
  }
  if (config_.insecure) {
    Log(LogLevel::kWarning, "security.off",
        {{"reason", "insecure = true: anyone who reaches the ports can read blocks"}});
  }
  ECPIPE_ASSIGN_OR_RETURN(store_, OpenPlainStore(config_.roots));
  ECPIPE_ASSIGN_OR_RETURN(data_server_, DataServer::Start(config_.data_address, {}));
  tcp_ = MakeTcpTransport(data_server_.get());
  if (!config_.redis_address.empty()) {
    // Nothing is left to read once both ends have given up.
    redis_ = MakeRedisTransport(config_.redis_address, 2 * config_.sessions.part.stall_timeout);
  }
  sessions_ = std::make_unique<SessionManager>(
      store_.get(), tcp_.get(), redis_.get(), config_.sessions,
      [this](const PartReport& report) { coordinator_->Report(report); });
  return absl::OkStatus();
}

absl::Status HelperServer::StartControlPlane() {
  service_ = std::make_unique<HelperServiceImpl>(config_.node_id, sessions_.get());
  ECPIPE_ASSIGN_OR_RETURN(rpc_, RpcServer::Start(config_.control_address, service_.get()));

  CoordinatorClient::Options options;
  options.coordinator = config_.coordinator;
  options.node.set_node_id(config_.node_id);
  options.node.set_rack(config_.rack);
  const auto advertised = [](const std::string& configured, const std::string& bound) {
    return configured.empty() ? bound : configured;
  };
  options.node.set_control_address(
      advertised(config_.advertised_control_address, rpc_->address()));
  options.node.set_data_address(
      advertised(config_.advertised_data_address, data_server_->address()));
  options.node.set_redis_address(config_.redis_address);
  options.node.set_incarnation(NewIncarnation());
  options.pulse = [this] {
    return CoordinatorClient::Pulse{sessions_->counts().active_sessions, sessions_->draining()};
  };
  options.inventory = [this] {
    const absl::StatusOr<StoreInventory> inventory = store_->TakeInventory();
    if (inventory.ok()) return *inventory;
    Log(LogLevel::kWarning, "store.inventory_failed", {{"status", StatusText(inventory.status())}});
    return StoreInventory{};
  };
  // Nobody can start a part before this: the coordinator learns of the helper from it.
  coordinator_ = std::make_unique<CoordinatorClient>(std::move(options));
  return absl::OkStatus();
}

absl::Status HelperServer::StartMetrics() {
  if (config_.metrics_address.empty()) return absl::OkStatus();
  ECPIPE_RETURN_IF_ERROR(CheckListenAddress(config_.metrics_address, config_.insecure));
  ECPIPE_ASSIGN_OR_RETURN(metrics_, MetricsServer::Start(config_.metrics_address));
  const auto counter = [this](const std::string& name, const std::string& help, auto read) {
    metrics_->AddCounter(name, help,
                         [this, read] { return static_cast<double>(read(sessions_->counts())); });
  };
  using Counts = const SessionCounts&;
  counter("ecpipe_data_sent_bytes_total", "Bytes sent on the data plane, with frame headers.",
          [](Counts counts) { return counts.traffic.bytes_sent; });
  counter("ecpipe_data_received_bytes_total", "Bytes received on the data plane.",
          [](Counts counts) { return counts.traffic.bytes_received; });
  counter("ecpipe_block_read_bytes_total", "Bytes read from local blocks.",
          [](Counts counts) { return counts.traffic.block_bytes_read; });
  counter("ecpipe_parts_done_total", "Repair parts that ended well.",
          [](Counts counts) { return counts.parts_done; });
  counter("ecpipe_parts_failed_total", "Repair parts that ended with an error.",
          [](Counts counts) { return counts.parts_failed; });
  metrics_->AddGauge("ecpipe_active_sessions", "Repair parts that run now.", [this] {
    return static_cast<double>(sessions_->counts().active_sessions);
  });
  metrics_->AddGauge("ecpipe_buffer_bytes", "Slice buffers held now.", [this] {
    return static_cast<double>(sessions_->counts().buffer_bytes);
  });
  metrics_->AddCounter("ecpipe_process_cpu_seconds_total", "User and system CPU time.",
                       ProcessCpuSeconds);
  return absl::OkStatus();
}

void HelperServer::Drain() {
  rpc_->SetServing(false);
  // Flip first, tell the coordinator, then wait: it must not plan with this node any more.
  sessions_->StopAdmitting();
  coordinator_->Hurry();
  sessions_->Drain(config_.drain_patience);
}

}  // namespace ecpipe
