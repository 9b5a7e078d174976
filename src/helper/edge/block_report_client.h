// SPDX-License-Identifier: Apache-2.0
// Reports the blocks that a store lists (block_listing.h) to the coordinator, and later their
// changes.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "ecpipe/v1/coordinator.grpc.pb.h"
#include "helper/store/block_listing.h"
#include "net/tls/tls.h"

namespace ecpipe {

// It has a thread of its own, because a report may take long and heartbeats must not wait. It
// reports after each scan of the store, and after a registration, because the coordinator may be a
// new one. The first report lists all blocks, and so does one after the coordinator did not know
// the report before; other reports list the changes, even if there are none.
class BlockReportClient {
 public:
  struct Options {
    std::string coordinator;          // host:port
    std::shared_ptr<TlsContext> tls;  // null: plain text
    std::string node_id;
    uint64_t incarnation = 0;
    std::function<TakenListing()> listing;    // returns at once
    std::function<uint64_t()> registrations;  // registrations so far
    // How often it is looked whether there is something to report.
    Duration look_interval = std::chrono::milliseconds(500);
  };
  // A report that failed is made again after a pause, which doubles with each failure from
  // look_interval to so many times that. One that lists all blocks of a large node has 500 MB, and
  // the coordinator that refuses it refuses those of other nodes as well.
  static constexpr int kLongestPause = 256;

  explicit BlockReportClient(Options options);
  // Stops; a call under way is cancelled.
  ~BlockReportClient();

 private:
  void Run();
  // False when it is time to stop.
  bool Wait(Duration pause);
  // The pause after a report that ended so.
  Duration PauseAfter(const absl::Status& reported);
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

  // Used only by the thread.
  TakenListing confirmed_;                // the listing that the coordinator has confirmed
  uint64_t confirmed_sequence_ = 0;       // number of the report of that listing; 0: none
  uint64_t confirmed_registrations_ = 0;  // registrations when that report was sent
  uint64_t sequence_ = 0;                 // number of the latest report
  int failures_ = 0;                      // reports that failed one after the other
  bool reachable_ = true;                 // for logging changes only

  Thread thread_;
};

}  // namespace ecpipe
