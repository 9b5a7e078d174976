// SPDX-License-Identifier: Apache-2.0
// The helper daemon's composition root: everything that it is made of, in the order of its life.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/process/running_config.h"
#include "helper/edge/block_report_client.h"
#include "helper/edge/coordinator_client.h"
#include "helper/edge/doctor_service.h"
#include "helper/edge/helper_config.h"
#include "helper/edge/helper_service.h"
#include "helper/sessions/session_manager.h"
#include "helper/store/block_store.h"
#include "net/data_server.h"
#include "net/rate_limiter.h"
#include "net/tls/tls.h"
#include "net/transport.h"
#include "requestor/endpoint/endpoint.h"
#include "rpc/config_service.h"
#include "rpc/rpc_server.h"
#include "web/daemon_pages.h"

namespace ecpipe {

class HelperServer {
 public:
  // What Start() would refuse in a configuration before it opens anything: TLS files that cannot be
  // used, addresses that nothing protects.
  static ConfigTroubles Check(const HelperConfig& config);
  // Opens the roots and ports and begins to register. After an error nothing runs.
  static absl::StatusOr<std::unique_ptr<HelperServer>> Start(const HelperConfig& config);
  ~HelperServer();

  // Takes up the keys that can be taken up (ReloadableHelperKeys), limits at the next heartbeat.
  RunningConfig::Changes Reload(const HelperConfig& config);

  const std::string& control_address() const { return rpc_->address(); }
  const std::string& data_address() const { return data_server_->address(); }
  // Empty: there is none.
  std::string endpoint_address() const { return endpoint_ == nullptr ? "" : endpoint_->address(); }
  // Of its pages; empty: there are none.
  std::string web_address() const { return pages_ == nullptr ? "" : pages_->address(); }

  // Gives up all ports, takes no new parts, and waits for running parts as long as the
  // configuration allows.
  // False: a part hangs; the server can then not be destroyed.
  bool Drain();

 private:
  explicit HelperServer(const HelperConfig& config)
      : config_(config),
        running_(config.values, ReloadableHelperKeys()),
        own_bytes_per_second_(config.repair_bytes_per_second),
        own_max_sessions_(config.sessions.max_sessions),
        drain_patience_(config.drain_patience) {}
  absl::Status StartDataPlane();
  absl::Status StartControlPlane();
  absl::Status ServePages();
  // Whether it takes new parts of repairs; if not, why.
  absl::Status Ready();
  // In each turn of the loop of heartbeats.
  void TellServiceManager(bool registered);
  void TakeLimits(const v1::HelperLimits& limits);

  const HelperConfig config_;  // as it was at the start
  RunningConfig running_;
  ConfigService config_service_{&running_};
  // What holds unless the coordinator says otherwise.
  std::atomic<double> own_bytes_per_second_;
  std::atomic<uint32_t> own_max_sessions_;
  Duration drain_patience_;          // of the main thread
  std::shared_ptr<TlsContext> tls_;  // null: plain text; shared by both planes
  std::unique_ptr<BlockStore> store_;
  std::unique_ptr<DataServer> data_server_;
  std::unique_ptr<Transport> tcp_;
  std::unique_ptr<Transport> redis_;       // null without a redis-server
  RateLimiter limiter_{&Clock::System()};  // limits what all sessions send
  // Whether the rate is a share of the cluster's limit, which depends on the nodes that send.
  std::atomic<bool> shares_rate_{false};
  std::atomic<uint64_t> registrations_{0};
  std::unique_ptr<SessionManager> sessions_;
  std::unique_ptr<HelperServiceImpl> service_;
  std::unique_ptr<HelperDoctor> doctor_;
  std::unique_ptr<RpcServer> rpc_;
  std::atomic<bool> registered_{false};
  Metrics metrics_;
  LoopWatch loops_;
  LoopWatch heard_{std::chrono::seconds(10)};  // of the coordinator: much longer than a heartbeat
  std::unique_ptr<HttpServer> pages_;          // null without an address
  // Set before the first part can end; sessions report to it.
  std::unique_ptr<CoordinatorClient> coordinator_;
  std::unique_ptr<BlockReportClient> reports_;  // null: the store lists nothing
  std::unique_ptr<Endpoint> endpoint_;          // null without an address
};

// The daemon on a host that has no blocks: a requestor endpoint and nothing else.
class RequestorOnlyServer {
 public:
  // As HelperServer::Check.
  static ConfigTroubles Check(const RequestorOnlyConfig& config);
  // After an error nothing runs.
  static absl::StatusOr<std::unique_ptr<RequestorOnlyServer>> Start(
      const RequestorOnlyConfig& config);

  // Takes up the keys that can be taken up (ReloadableRequestorOnlyKeys).
  RunningConfig::Changes Reload(const RequestorOnlyConfig& config) {
    return running_.Reload(config.values);
  }

  const std::string& endpoint_address() const { return endpoint_->address(); }
  // Of its pages; empty: there are none.
  std::string web_address() const { return pages_ == nullptr ? "" : pages_->address(); }

 private:
  explicit RequestorOnlyServer(const RequestorOnlyConfig& config)
      : running_(config.values, ReloadableRequestorOnlyKeys()) {}

  RunningConfig running_;
  std::unique_ptr<Endpoint> endpoint_;
  Metrics metrics_;
  std::unique_ptr<HttpServer> pages_;  // null without an address; they ask the endpoint
};

}  // namespace ecpipe
