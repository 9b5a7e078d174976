// SPDX-License-Identifier: Apache-2.0
// The status page of the coordinator: collects what /status.json tells. It changes nothing.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "coordinator/pages/pipeline_rates.h"
#include "coordinator/pages/status_snapshot.h"
#include "coordinator/recovery/recovery_manager.h"
#include "coordinator/repairs/helper_gateway.h"
#include "coordinator/repairs/repair_coordinator.h"
#include "coordinator/store/journal.h"
#include "coordinator/store/limit_book.h"
#include "web/http_server.h"

namespace ecpipe {

// Thread-safe.
class StatusPage {
 public:
  // An answer is made at most so often, however many ask.
  static constexpr Duration kFresh = std::chrono::seconds(1);
  // Helpers are asked how far their parts are, for so long in all, and those of one repair for so
  // long: one that hangs does not use up the time of all. What they do not tell by then is not
  // shown.
  static constexpr Duration kAsking = std::chrono::milliseconds(800);
  static constexpr Duration kAskingOne = std::chrono::milliseconds(300);

  // All pointers outlive the page. Limits hold unless the book has others.
  struct View {
    RepairCoordinator* repairs = nullptr;
    RecoveryManager* recoveries = nullptr;
    Journal* journal = nullptr;
    LimitBook* limits = nullptr;
    HelperGateway* helpers = nullptr;
    const Clock* clock = nullptr;
    double repair_bytes_per_second = 0;  // 0: none
    uint32_t max_running = 0;
  };
  explicit StatusPage(const View& view) : view_(view) {}

  // Nobody waits for another caller: while one makes a new answer, the others get the one before,
  // or 503 if there is none yet.
  HttpReply Reply();
  // "/status.json", and the page for people that shows it, "/". They live no longer than this
  // object.
  HttpServer::Pages Pages();

 private:
  // What earlier looks at a repair have shown.
  struct Seen {
    PipelineLook look;
    ProgressHistory progress;
  };
  using SeenRepairs = std::map<RepairId, Seen>;

  // Takes what was seen, and leaves what is seen now.
  StatusSnapshot Collect(SeenRepairs* seen) const;
  void AskHelpers(StatusSnapshot* snapshot, const SeenRepairs& before, SeenRepairs* now) const;
  PartAnswers Ask(const RunningRepair& repair, const std::map<std::string, std::string>& silent,
                  TimePoint until) const;

  const View view_;
  Mutex mutex_;
  bool making_ ABSL_GUARDED_BY(mutex_) = false;
  std::string json_ ABSL_GUARDED_BY(mutex_);  // empty: none was made yet
  TimePoint made_at_ ABSL_GUARDED_BY(mutex_){};
  SeenRepairs seen_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ecpipe
