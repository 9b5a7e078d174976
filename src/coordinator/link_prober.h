// SPDX-License-Identifier: Apache-2.0
// Measures links on request: repairs of nothing from one node to another.
// docs/design/005-link-speeds.md has the reasons.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/link_timing.h"
#include "common/mutex.h"
#include "common/repair_plan.h"
#include "coordinator/busy_nodes.h"
#include "coordinator/helper_gateway.h"
#include "coordinator/known_links.h"
#include "coordinator/node_registry.h"

namespace ecpipe {

struct ProbedLink {
  std::string from;
  std::string to;
  absl::Status status;
  double bytes_per_second = 0;  // after OK
};

struct ProbeRound {
  std::vector<ProbedLink> links;  // as they were asked for
  double rest_seconds = 0;        // before the next round may begin
};

// Thread-safe.
class LinkProber {
 public:
  struct Options {
    uint64_t max_bytes = uint64_t{64} << 20;  // over one link in one round
    uint64_t min_bytes = 64u << 10;           // less would time the way and not the link
    double max_bytes_per_second = 12.5e6;     // of each node, on average over rounds
    Duration handout_timeout = std::chrono::seconds(2);
    Duration patience = std::chrono::seconds(30);  // for a round; what has not ended then is ended
  };

  // All pointers outlive the prober.
  LinkProber(NodeRegistry* nodes, KnownLinks* speeds, BusyNodes* busy, HelperGateway* helpers,
             const Clock* clock, const Options& options)
      : nodes_(nodes),
        speeds_(speeds),
        busy_nodes_(busy),
        helpers_(helpers),
        clock_(clock),
        options_(options) {}

  // Sends `bytes` over each of these links, from node to node, all at once, and waits for the end.
  // What it finds goes into the speeds. INVALID_ARGUMENT: no links, too many bytes, or a node that
  // would send or receive twice. RESOURCE_EXHAUSTED: another round runs, or the nodes rest; the
  // message says for how long. A link whose node cannot take part has its own status.
  absl::StatusOr<ProbeRound> Probe(const std::vector<std::pair<std::string, std::string>>& links,
                                   uint64_t bytes);

  // Ends the round that runs, with CANCELLED for what is not measured, and admits no more.
  void Stop();

  // What became of a part; false when it is none of a probe.
  bool Report(const std::string& node, RepairId repair_id, const absl::Status& status,
              const std::vector<LinkTiming>& timings);

 private:
  struct Running {
    size_t link = 0;  // index into the round's links
    std::vector<HelperAddress> ends;
    std::set<std::string> unreported;  // nodes
  };

  absl::Status Admit(const std::vector<std::pair<std::string, std::string>>& links, uint64_t bytes);
  // The two parts of a link's probe. An error when a node cannot take part.
  absl::StatusOr<std::vector<HelperGateway::Handout>> MakeHandouts(const ProbedLink& link,
                                                                   RepairId repair_id,
                                                                   uint64_t bytes);
  void AwaitReports();

  NodeRegistry* const nodes_;
  KnownLinks* const speeds_;
  BusyNodes* const busy_nodes_;
  HelperGateway* const helpers_;
  const Clock* const clock_;
  const Options options_;

  Mutex mutex_;
  CondVar ended_;
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  TimePoint rested_ ABSL_GUARDED_BY(mutex_){};  // when the next round may begin
  // Of the round that runs.
  std::vector<ProbedLink> round_ ABSL_GUARDED_BY(mutex_);
  std::map<RepairId, Running> running_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<BusyNodes::Hold> hold_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ecpipe
