// SPDX-License-Identifier: Apache-2.0
#include "coordinator/edge/coordinator_metrics.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "coordinator/recovery/recovered.h"

namespace ecpipe {
namespace {

using Sample = Metrics::Sample;

double Number(uint64_t count) { return static_cast<double>(count); }

std::vector<Sample> NodesByState(RepairCoordinator* repairs) {
  constexpr const char* kAway = "away";  // dead, and announced: a maintenance
  std::map<std::string, double> counts = {{kAway, 0}};
  for (const NodeState state : {NodeState::kLive, NodeState::kDraining, NodeState::kDead}) {
    counts[NodeStateName(state)] = 0;
  }
  for (const NodeView& node : repairs->nodes().All()) {
    ++counts[node.Away() ? kAway : NodeStateName(node.state)];
  }
  std::vector<Sample> samples;
  for (const auto& [state, count] : counts) samples.push_back({{{"state", state}}, count});
  return samples;
}

std::vector<Sample> AwayNodes(RepairCoordinator* repairs) {
  std::vector<Sample> samples;
  for (const NodeView& node : repairs->nodes().All()) {
    if (node.Away()) samples.push_back({{{"node", node.record.node_id}}, 1});
  }
  return samples;
}

double FailedRoots(RepairCoordinator* repairs) {
  size_t count = 0;
  for (const NodeView& node : repairs->nodes().All()) {
    if (node.state != NodeState::kDead) count += node.record.failed_roots.size();
  }
  return Number(count);
}

void AddNodeMetrics(RepairCoordinator* repairs, Metrics* metrics) {
  metrics->AddGauges("ecpipe_nodes",
                     "Helpers, by state; away: no heartbeats come, as a maintenance announced.",
                     [repairs] { return NodesByState(repairs); });
  metrics->AddGauges("ecpipe_node_away",
                     "1 for each node of which no heartbeats come, as a maintenance announced.",
                     [repairs] { return AwayNodes(repairs); });
  metrics->AddGauge("ecpipe_failed_roots", "Directories of blocks that live helpers cannot use.",
                    [repairs] { return FailedRoots(repairs); });
}

Metrics::Labels LabelsOf(const RepairKind& kind) {
  return {{"scheme", kind.scheme},
          {"work", WorkOf(kind.cause)},
          {"cause", RepairCauseName(kind.cause)},
          {"outcome", RepairStateName(kind.outcome)}};
}

// All of them from the start: a counter that appears with its first event hides that event.
std::vector<Sample> EndedRepairs(RepairCoordinator* repairs) {
  std::map<std::pair<RepairCause, std::string>, uint64_t> counts;
  for (const RepairCause cause : kRepairCauses) {
    for (const RepairState outcome :
         {RepairState::kDone, RepairState::kFailed, RepairState::kCancelled}) {
      counts[{cause, RepairStateName(outcome)}] = 0;
    }
  }
  for (const auto& [kind, histogram] : repairs->counts().seconds) {
    uint64_t& count = counts[{kind.cause, RepairStateName(kind.outcome)}];
    for (const uint64_t bucket : histogram.counts()) count += bucket;
  }
  std::vector<Sample> samples;
  for (const auto& [kind, count] : counts) {
    samples.push_back({{{"work", WorkOf(kind.first)},
                        {"cause", RepairCauseName(kind.first)},
                        {"outcome", kind.second}},
                       Number(count)});
  }
  return samples;
}

std::vector<Sample> UnplannedRepairs(RepairCoordinator* repairs) {
  RepairCounts counts = repairs->counts();
  std::vector<Sample> samples;
  for (const RepairCause cause : kRepairCauses) {
    samples.push_back({{{"work", WorkOf(cause)}, {"cause", RepairCauseName(cause)}},
                       Number(counts.unplanned[cause])});
  }
  return samples;
}

std::vector<Metrics::HistogramSample> RepairSeconds(RepairCoordinator* repairs) {
  std::vector<Metrics::HistogramSample> samples;
  for (const auto& [kind, histogram] : repairs->counts().seconds) {
    samples.push_back({LabelsOf(kind), histogram});
  }
  return samples;
}

std::vector<Metrics::HistogramSample> FirstByteSeconds(RepairCoordinator* repairs) {
  std::vector<Metrics::HistogramSample> samples;
  for (const auto& [kind, histogram] : repairs->counts().first_byte_seconds) {
    const auto& [scheme, cause] = kind;
    samples.push_back({{{"scheme", scheme}, {"cause", RepairCauseName(cause)}}, histogram});
  }
  return samples;
}

void AddRepairMetrics(RepairCoordinator* repairs, Metrics* metrics) {
  metrics->AddCounter("ecpipe_repairs_started_total", "Repairs that were admitted.",
                      [repairs] { return Number(repairs->counts().started); });
  metrics->AddCounters("ecpipe_repairs_ended_total", "Repairs that have ended.",
                       [repairs] { return EndedRepairs(repairs); });
  metrics->AddCounters("ecpipe_repairs_unplanned_total",
                       "Repairs for which there was no plan: too few survivors, unknown blocks.",
                       [repairs] { return UnplannedRepairs(repairs); });
  metrics->AddGauge("ecpipe_repairs_running", "Repairs that run now.",
                    [repairs] { return Number(repairs->running()); });
  metrics->AddHistograms("ecpipe_repair_seconds",
                         "Duration of ended repairs, all attempts together.",
                         [repairs] { return RepairSeconds(repairs); });
  metrics->AddHistograms("ecpipe_repair_first_byte_seconds",
                         "Time from a requestor's call to the first bytes that it handed on, of "
                         "ended reads in order, as the requestor measured it.",
                         [repairs] { return FirstByteSeconds(repairs); });
  metrics->AddCounters("ecpipe_repair_bytes_total", "Bytes of blocks that ended repairs were for.",
                       [repairs] {
                         std::vector<Sample> samples;
                         for (const auto& [kind, bytes] : repairs->counts().bytes) {
                           samples.push_back({LabelsOf(kind), Number(bytes)});
                         }
                         return samples;
                       });
  metrics->AddHistograms("ecpipe_plan_seconds", "Time that each plan took.", [repairs] {
    return std::vector<Metrics::HistogramSample>{{{}, repairs->counts().plan_seconds}};
  });
  const auto marked = [repairs](bool suspect) {
    const std::vector<CorruptBlock> all = repairs->corrupt().All();
    return Number(
        static_cast<uint64_t>(std::count_if(all.begin(), all.end(), [&](const CorruptBlock& block) {
          return block.suspect == suspect;
        })));
  };
  metrics->AddGauge("ecpipe_suspect_blocks",
                    "Blocks that somebody calls corrupt and whose check has not decided.",
                    [marked] { return marked(true); });
  metrics->AddGauge("ecpipe_corrupt_blocks",
                    "Blocks that were found corrupt and are not repaired yet.",
                    [marked] { return marked(false); });
  metrics->AddCounter("ecpipe_corrupt_blocks_found_total", "Blocks that were found corrupt.",
                      [repairs] { return Number(repairs->corrupt().found()); });
  metrics->AddCounter("ecpipe_marks_refused_total",
                      "Marks of blocks that were not taken, because there were too many.",
                      [repairs] { return Number(repairs->corrupt().refused()); });
}

// The file system that has the state, of whose blocks `count` tells. No sample where it does not.
using FileSystem = struct statvfs;
std::vector<Sample> BytesOf(const std::string& directory, fsblkcnt_t FileSystem::* count) {
  FileSystem system{};
  if (::statvfs(directory.c_str(), &system) != 0) return {};
  return {Sample{{}, Number(system.*count) * Number(system.f_frsize)}};
}

void AddStateMetrics(RepairCoordinator* repairs, const std::string& directory, Metrics* metrics) {
  metrics->AddGauges("ecpipe_data_directory_free_bytes",
                     "Room that is left on the disk of [coordinator] data_directory.",
                     [directory] { return BytesOf(directory, &FileSystem::f_bavail); });
  metrics->AddGauges("ecpipe_data_directory_bytes",
                     "Size of the file system of [coordinator] data_directory.",
                     [directory] { return BytesOf(directory, &FileSystem::f_blocks); });
  metrics->AddCounter("ecpipe_journal_failures_total",
                      "Records of repairs that the journal did not take: reads go on, and what "
                      "stores blocks is refused.",
                      [repairs] { return Number(repairs->counts().unjournaled); });
}

void AddMarkMetrics(MarkKeeper* marks, Metrics* metrics) {
  metrics->AddGauge("ecpipe_unkept_marks",
                    "Marks of corrupt blocks, and ends of them, that marks.db has not taken yet.",
                    [marks] { return Number(marks->counts().unkept); });
  metrics->AddCounter("ecpipe_mark_failures_total", "Writes to marks.db that failed.",
                      [marks] { return Number(marks->counts().failures); });
}

std::vector<Sample> RecoveriesByState(RecoveryManager* recoveries) {
  double running = 0;
  double paused = 0;
  for (const RecoveryManager::Overview& each : recoveries->Overviews()) {
    running += each.state == RecoveryState::kRunning ? 1 : 0;
    paused += each.state == RecoveryState::kPaused ? 1 : 0;
  }
  return {{{{"state", "running"}}, running}, {{{"state", "paused"}}, paused}};
}

std::vector<Sample> RecoveryBlocks(RecoveryManager* recoveries) {
  uint64_t waiting = 0;
  uint64_t running = 0;
  for (const RecoveryManager::Overview& each : recoveries->Overviews()) {
    if (Ended(each.state)) continue;
    waiting += each.waiting_blocks;
    running += each.running_blocks;
  }
  return {{{{"state", "waiting"}}, Number(waiting)}, {{{"state", "running"}}, Number(running)}};
}

std::vector<Sample> WaitingBlocks(RecoveryManager* recoveries) {
  constexpr WaitKind kKinds[] = {WaitKind::kNext,      WaitKind::kPaused,    WaitKind::kStarting,
                                 WaitKind::kDelay,     WaitKind::kComparing, WaitKind::kStreams,
                                 WaitKind::kSurvivors, WaitKind::kTarget,    WaitKind::kLimit,
                                 WaitKind::kHelper,    WaitKind::kFailed};
  std::map<WaitKind, uint64_t> blocks = recoveries->WaitingByKind();
  std::vector<Sample> samples;
  for (const WaitKind kind : kKinds) {
    samples.push_back({{{"kind", WaitKindName(kind)}}, Number(blocks[kind])});
  }
  return samples;
}

std::vector<Sample> BlocksBySpare(RecoveryManager* recoveries) {
  using Spare = RecoveryQueue::Spare;
  constexpr std::pair<Spare, const char*> kNames[] = {{Spare::kTooFew, "too_few"},
                                                      {Spare::kNone, "0"},
                                                      {Spare::kOne, "1"},
                                                      {Spare::kTwo, "2"},
                                                      {Spare::kMore, "more"}};
  std::map<Spare, uint64_t> blocks = recoveries->BlocksBySpare();
  std::vector<Sample> samples;
  for (const auto& [spare, name] : kNames) {
    samples.push_back({{{"spare", name}}, Number(blocks[spare])});
  }
  return samples;
}

std::map<std::string, LatestRecovery> LatestOf(
    const std::vector<RecoveryManager::Overview>& newest_first) {
  std::map<std::string, LatestRecovery> latest;
  for (const RecoveryManager::Overview& each : newest_first) {
    latest.try_emplace(each.node, LatestRecovery{each.state, each.ended_unix_ms});
  }
  return latest;
}

// Nodes whose latest recovery left blocks behind.
double NodesLeftPartial(RecoveryManager* recoveries) {
  const std::map<std::string, LatestRecovery> latest = LatestOf(recoveries->Overviews());
  return static_cast<double>(std::count_if(latest.begin(), latest.end(), [](const auto& node) {
    return node.second.state == RecoveryState::kPartial;
  }));
}

double OldestRecoverySeconds(RecoveryManager* recoveries) {
  const int64_t now = Clock::System().UnixMillis();
  int64_t oldest = now;
  for (const RecoveryManager::Overview& each : recoveries->Overviews()) {
    if (!Ended(each.state)) oldest = std::min(oldest, each.started_unix_ms);
  }
  return static_cast<double>(now - oldest) / 1000;
}

double OldestLossSeconds(RepairCoordinator* repairs, RecoveryManager* recoveries) {
  const std::vector<RecoveryManager::Overview> all = recoveries->Overviews();
  const std::map<std::string, LatestRecovery> latest = LatestOf(all);
  const int64_t now = Clock::System().UnixMillis();
  double age = 0;
  for (const NodeView& node : repairs->nodes().All()) {
    if (node.state != NodeState::kDead || node.Away()) continue;
    const auto found = latest.find(node.record.node_id);
    const auto recovery = found == latest.end() ? std::nullopt : std::optional(found->second);
    if (!IsRecovered(node, recovery, now)) age = std::max(age, node.seconds_since_heartbeat);
  }
  const auto since = [&](int64_t unix_ms) {
    age = std::max(age, static_cast<double>(now - unix_ms) / 1000);
  };
  for (const RecoveryManager::Overview& each : all) {
    const bool drain = each.kind == RecoveryKind::kMove;  // nothing is lost that is moved
    if (!Ended(each.state) && !drain) since(each.started_unix_ms);
  }
  for (const CorruptBlock& block : repairs->corrupt().All()) {
    if (!block.suspect && block.found_unix_ms != 0) since(block.found_unix_ms);
  }
  return age;
}

void AddRecoveryMetrics(RepairCoordinator* repairs, RecoveryManager* recoveries, Metrics* metrics) {
  metrics->AddGauges("ecpipe_recoveries", "Recoveries that have not ended, by state.",
                     [recoveries] { return RecoveriesByState(recoveries); });
  metrics->AddGauges("ecpipe_recovery_blocks",
                     "Lost blocks of recoveries that have not ended, by state.",
                     [recoveries] { return RecoveryBlocks(recoveries); });
  metrics->AddGauges("ecpipe_recovery_waiting_blocks",
                     "Lost blocks that wait, by what they wait for, as in `ecpipe recovery show`.",
                     [recoveries] { return WaitingBlocks(recoveries); });
  metrics->AddGauges("ecpipe_recovery_blocks_by_spare",
                     "Lost blocks that wait or run, by the survivors that can be read beyond those "
                     "that a block needs.",
                     [recoveries] { return BlocksBySpare(recoveries); });
  metrics->AddGauge("ecpipe_nodes_partly_recovered",
                    "Nodes whose latest recovery ended without some of their blocks.",
                    [recoveries] { return NodesLeftPartial(recoveries); });
  metrics->AddGauge("ecpipe_recovery_oldest_seconds",
                    "Age of the oldest recovery that has not ended; 0 without one.",
                    [recoveries] { return OldestRecoverySeconds(recoveries); });
  metrics->AddGauge("ecpipe_oldest_loss_seconds",
                    "Age of the oldest loss that is not made good: a dead node that is not away or "
                    "recovered, since its last heartbeat; a recovery that has not ended, since its "
                    "start; a corrupt block, since it was found. 0 without one.",
                    [repairs, recoveries] { return OldestLossSeconds(repairs, recoveries); });
}

struct SourceGauge {
  const char* name;
  const char* help;
  std::optional<double> (*read)(const SourceStatus& status);  // nullopt: no sample
};
constexpr SourceGauge kSourceGauges[] = {
    {"ecpipe_source_stripes", "Stripes that the storage system listed in its last answer.",
     [](const SourceStatus& status) { return std::optional(Number(status.facts.groups)); }},
    {"ecpipe_source_age_seconds", "Age of the storage system's last answer.",
     [](const SourceStatus& status) -> std::optional<double> { return status.facts.age_seconds; }},
    {"ecpipe_source_up", "1 if the storage system answered the last question, else 0.",
     [](const SourceStatus& status) {
       return std::optional<double>(status.facts.last_error.empty() ? 1 : 0);
     }},
    {"ecpipe_source_degraded_stripes",
     "Stripes of the storage system with a block that no live node has.",
     [](const SourceStatus& status) -> std::optional<double> { return status.degraded; }},
    {"ecpipe_source_lost_stripes",
     "Stripes of the storage system that lack more blocks than their parity.",
     [](const SourceStatus& status) -> std::optional<double> { return status.lost; }},
};

// Each system is asked once a scrape: counting its stripes may take long.
std::vector<std::vector<Sample>> OfSources(const StripeSources& sources) {
  std::vector<std::vector<Sample>> samples(std::size(kSourceGauges));
  for (StripeSource* source : sources.all()) {
    const std::optional<SourceStatus> status = source->Overview();
    if (!status) continue;
    for (size_t i = 0; i < samples.size(); ++i) {
      const std::optional<double> value = kSourceGauges[i].read(*status);
      if (value) samples[i].push_back({{{"system", source->system()}}, *value});
    }
  }
  return samples;
}

void AddSourceMetrics(const StripeSources& sources, Metrics* metrics) {
  std::vector<Metrics::Name> names;
  for (const SourceGauge& gauge : kSourceGauges) names.push_back({gauge.name, gauge.help});
  metrics->AddGaugesTogether(std::move(names), [sources] { return OfSources(sources); });
}

}  // namespace

void AddCoordinatorMetrics(const CoordinatorView& view, Metrics* metrics) {
  AddNodeMetrics(view.repairs, metrics);
  AddRepairMetrics(view.repairs, metrics);
  AddStateMetrics(view.repairs, view.data_directory, metrics);
  AddMarkMetrics(view.marks, metrics);
  AddRecoveryMetrics(view.repairs, view.recoveries, metrics);
  AddSourceMetrics(view.sources, metrics);
  metrics->AddGauge("ecpipe_cluster_repair_limit_bytes_per_second",
                    "The most that all helpers together send for repairs; 0: no limit.",
                    [limits = view.limits, configured = view.repair_bytes_per_second] {
                      return limits->limits().cluster.repair_bytes_per_second.value_or(configured);
                    });
  metrics->AddGauge("ecpipe_cluster_running_repairs_limit",
                    "The most repairs that may run at once; never 0.",
                    [limits = view.limits, configured = view.max_running] {
                      return Number(limits->limits().cluster.max_running.value_or(configured));
                    });
}

}  // namespace ecpipe
