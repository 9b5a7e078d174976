// SPDX-License-Identifier: Apache-2.0
// Measures links on request, by repairs without a real block from one node to another.
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
#include "base/clock.h"
#include "base/mutex.h"
#include "coordinator/cluster/busy_nodes.h"
#include "coordinator/cluster/known_links.h"
#include "coordinator/cluster/node_registry.h"
#include "coordinator/repairs/helper_gateway.h"
#include "model/link_timing.h"
#include "model/plan/repair_plan.h"

namespace ecpipe {

struct ProbedLink {
  std::string from;
  std::string to;
  absl::Status status;
  double bytes_per_second = 0;  // after OK
};

struct ProbeRound {
  std::vector<ProbedLink> links;  // in the order of the request
  double rest_seconds = 0;        // before the next round may begin
};

// Thread-safe.
class LinkProber {
 public:
  struct Options {
    uint64_t max_bytes = uint64_t{64} << 20;  // over one link in one round
    uint64_t min_bytes = 64u << 10;           // fewer would measure latency and not the rate
    double max_bytes_per_second = 12.5e6;     // of each node, on average over rounds
    Duration handout_timeout = std::chrono::seconds(2);
    Duration patience = std::chrono::seconds(30);  // after that a round is ended
  };

  // How fast each link is, or what links share: nodes' own links, and what is between racks.
  enum class Kind { kEachLink, kWhatIsShared };

  // All pointers outlive the prober.
  LinkProber(NodeRegistry* nodes, KnownLinks* speeds, BusyNodes* busy, HelperGateway* helpers,
             const Clock* clock, const Options& options)
      : nodes_(nodes),
        speeds_(speeds),
        busy_nodes_(busy),
        helpers_(helpers),
        clock_(clock),
        options_(options) {}

  // Sends `bytes` over each of these links at the same time, waits for the end, and adds the
  // results to the known speeds. INVALID_ARGUMENT: no links, too few or too many bytes, or a node
  // that would send or receive twice; three times where it is asked what links share.
  // RESOURCE_EXHAUSTED: another round is running, or the limit on
  // the rate of probes does not allow this one yet; the message says when it will. A link whose
  // node cannot take part has a status of its own.
  absl::StatusOr<ProbeRound> Probe(const std::vector<std::pair<std::string, std::string>>& links,
                                   uint64_t bytes, Kind kind = Kind::kEachLink);

  // Ends the running round, with CANCELLED for links that are not measured yet, and admits no more.
  void Stop();

  // Takes the end of a part. Returns false if the part is not one of a probe.
  bool Report(const std::string& node, RepairId repair_id, const absl::Status& status,
              const std::vector<LinkTiming>& timings);

 private:
  struct Running {
    size_t link = 0;  // index into the round's links
    std::vector<HelperAddress> ends;
    std::set<std::string> unreported;  // nodes
  };

  absl::Status Admit(const std::vector<std::pair<std::string, std::string>>& links, uint64_t bytes,
                     Kind kind);
  // Makes the two parts of the probe of a link. An error if a node cannot take part.
  absl::StatusOr<std::vector<HelperGateway::Handout>> MakeHandouts(const ProbedLink& link,
                                                                   RepairId repair_id,
                                                                   uint64_t bytes);
  void AwaitReports();
  // Tells the known speeds what the links of the round had at the same time.
  void CompareStreams() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

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
  // The running round.
  Kind kind_ ABSL_GUARDED_BY(mutex_) = Kind::kEachLink;
  std::vector<ProbedLink> round_ ABSL_GUARDED_BY(mutex_);
  std::map<RepairId, Running> running_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<BusyNodes::Hold> hold_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ecpipe
