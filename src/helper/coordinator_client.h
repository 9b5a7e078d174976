// SPDX-License-Identifier: Apache-2.0
// Connects a helper to its coordinator: registers, sends heartbeats and reports, and registers
// again after the coordinator has restarted.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "common/clock.h"
#include "common/mutex.h"
#include "common/tls.h"
#include "ecpipe/v1/coordinator.grpc.pb.h"
#include "helper/block_store.h"
#include "helper/session_manager.h"

namespace ecpipe {

// One thread does all this, so that a coordinator that does not answer holds up nothing else.
class CoordinatorClient {
 public:
  struct Pulse {
    uint32_t active_sessions = 0;
    bool draining = false;
    double repair_bytes_per_second = 0;  // the rate limit that holds; 0: none
    uint32_t max_sessions = 0;
  };
  struct Options {
    std::string coordinator;          // host:port
    std::shared_ptr<TlsContext> tls;  // null: plain text; shared with the data plane
    v1::NodeInfo node;
    std::function<Pulse()> pulse;                              // read for each heartbeat
    std::function<void(const v1::HelperLimits&)> take_limits;  // called for each answer
    std::function<void()> registered;                          // after each registration
    std::function<StoreInventory()> inventory;  // called from time to time; may take long
    Duration inventory_interval = std::chrono::seconds(30);
  };

  explicit CoordinatorClient(Options options);
  // Stops; a call under way is cancelled.
  ~CoordinatorClient();

  // Queues a report. It is sent soon, and kept during a short outage of the coordinator.
  // Thread-safe.
  void Report(const PartReport& report);
  // Sends a heartbeat now, e.g. because draining has begun. Thread-safe.
  void Hurry();

 private:
  void Run();
  bool WaitForNextTurn(Duration interval);
  void Register();
  void Heartbeat();
  void SendReports();
  bool Stopping();
  void NoteOutcome(const absl::Status& status);
  v1::Inventory Inventory();

  const Options options_;
  const std::unique_ptr<v1::CoordinatorService::Stub> stub_;

  Mutex mutex_;
  CondVar turn_;
  std::deque<PartReport> reports_ ABSL_GUARDED_BY(mutex_);
  bool hurry_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::ClientContext* call_ ABSL_GUARDED_BY(mutex_) = nullptr;

  // The thread's own.
  bool registered_ = false;
  bool reachable_ = true;  // for logging changes only
  Duration heartbeat_interval_ = std::chrono::seconds(1);
  StoreInventory inventory_;
  TimePoint inventory_due_{};

  std::thread thread_;
};

}  // namespace ecpipe
