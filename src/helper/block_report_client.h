// SPDX-License-Identifier: Apache-2.0
// Tells the coordinator of the blocks that a store lists (block_listing.h), and keeps it informed.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "common/clock.h"
#include "common/mutex.h"
#include "common/tls.h"
#include "ecpipe/v1/coordinator.grpc.pb.h"
#include "helper/block_listing.h"

namespace ecpipe {

// On a thread of its own, for a report may take long, and heartbeats do not wait. Each scan of the
// store is reported, soon after its end, and again after a registration, for the coordinator may be
// a new one: all blocks the first time, and whenever the coordinator does not know the report
// before; otherwise what is different, which may be nothing.
class BlockReportClient {
 public:
  struct Options {
    std::string coordinator;          // host:port
    std::shared_ptr<TlsContext> tls;  // null: plain text
    std::string node_id;
    uint64_t incarnation = 0;
    std::function<TakenListing()> listing;    // returns at once
    std::function<uint64_t()> registrations;  // so far
  };

  explicit BlockReportClient(Options options);
  // Stops; a call under way is cancelled.
  ~BlockReportClient();

 private:
  void Run();
  // False when it is time to stop.
  bool Wait();
  // OK: the coordinator has this listing.
  absl::Status Report(const TakenListing& listing);
  absl::Status Send(const BlockReport& report, bool* send_all);
  void NoteOutcome(const absl::Status& status);

  const Options options_;
  const std::unique_ptr<v1::CoordinatorService::Stub> stub_;

  Mutex mutex_;
  CondVar stop_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::ClientContext* call_ ABSL_GUARDED_BY(mutex_) = nullptr;

  // The thread's own.
  TakenListing confirmed_;                // that the coordinator has said to have
  uint64_t confirmed_sequence_ = 0;       // of the report that said it; 0: none
  uint64_t confirmed_registrations_ = 0;  // as that was sent
  uint64_t sequence_ = 0;                 // of the latest report
  bool reachable_ = true;                 // for logging changes only

  std::thread thread_;
};

}  // namespace ecpipe
