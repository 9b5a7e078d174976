// SPDX-License-Identifier: Apache-2.0
// Connects a helper to its coordinator: registers, sends heartbeats and reports, and registers
// again after the coordinator has restarted.
//
// Heartbeats have a thread of their own. On a busy machine hundreds of reports a second may be on
// their way, and counting the blocks of a store may take long: a heartbeat must wait for neither,
// or the coordinator takes the node for dead.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "ecpipe/v1/coordinator.grpc.pb.h"
#include "helper/sessions/session_manager.h"
#include "helper/store/block_store.h"
#include "net/tls/tls.h"

namespace ecpipe {

// Thread-safe. A coordinator that does not answer holds up nothing of the helper.
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
    std::function<Pulse()> pulse;                              // returns at once; thread-safe
    std::function<void(const v1::HelperLimits&)> take_limits;  // called for each answer
    std::function<void()> registered;                          // after each registration
    // In each turn of the loop of heartbeats, whether the coordinator has answered or not.
    std::function<void(bool registered)> turned;
    std::function<StoreInventory()> inventory;  // called from time to time; may take long
    Duration inventory_interval = std::chrono::seconds(30);  // from the end of a call to the next
  };

  explicit CoordinatorClient(Options options);
  // Stops; a call under way is cancelled.
  ~CoordinatorClient();

  // Queues a report. It is sent soon, and kept during a short outage of the coordinator.
  void Report(const PartReport& report);
  // Sends a heartbeat now.
  void HeartbeatNow();
  // The store has a new block: blocks are counted again soon, though never for more than a tenth of
  // the time.
  void CountSoon();
  // The helper drains: tells the coordinator now, and does not register any more, since the node id
  // may soon be a successor's. Reports are sent all the same.
  void Leave();

 private:
  struct Idle {};
  CoordinatorClient(Options options, Idle);  // without threads
  void SendHeartbeats();
  // Waits for the next heartbeat, or until somebody is in a hurry. False: it is time to stop.
  bool WaitForNextTurn(Duration interval);
  void Register();
  void Heartbeat();
  void SendReports();
  absl::Status Send(const PartReport& report);
  void CountBlocks();
  void NoteOutcome(const absl::Status& status);
  v1::Inventory Inventory();

  const Options options_;
  const std::unique_ptr<v1::CoordinatorService::Stub> stub_;

  Mutex mutex_;
  // One for each thread: a report must not wake all three.
  CondVar heartbeat_turn_;
  CondVar report_turn_;
  CondVar count_turn_;
  std::deque<PartReport> reports_ ABSL_GUARDED_BY(mutex_);
  bool hurry_ ABSL_GUARDED_BY(mutex_) = false;
  bool leaving_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool registered_ ABSL_GUARDED_BY(mutex_) = false;
  // For logging changes only.
  enum class Contact { kGood, kSilent, kRefused } contact_ ABSL_GUARDED_BY(mutex_) = Contact::kGood;
  bool counted_ ABSL_GUARDED_BY(mutex_) = false;  // whether inventory_ was taken
  bool recount_ ABSL_GUARDED_BY(mutex_) = false;
  StoreInventory inventory_ ABSL_GUARDED_BY(mutex_);
  // Calls under way; null: none.
  grpc::ClientContext* heartbeat_call_ ABSL_GUARDED_BY(mutex_) = nullptr;
  grpc::ClientContext* report_call_ ABSL_GUARDED_BY(mutex_) = nullptr;

  Duration heartbeat_interval_ = std::chrono::seconds(1);  // used by the thread of heartbeats only

  Thread heartbeats_;
  Thread sender_;   // of reports
  Thread counter_;  // of blocks
};

}  // namespace ecpipe
