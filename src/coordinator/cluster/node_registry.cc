// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cluster/node_registry.h"

#include <set>

#include "base/process/log.h"
#include "base/status.h"
#include "net/tcp_socket.h"

namespace ecpipe {

const char* KeptOutName(KeptOut why) {
  switch (why) {
    case KeptOut::kNone:
      return "";
    case KeptOut::kDraining:
      return "draining";
    case KeptOut::kDrained:
      return "drained";
    case KeptOut::kMaintenance:
      return "in maintenance";
  }
  return "";
}

void NodeRegistry::SetKeptOut(std::map<std::string, KeptOut> kept_out) {
  MutexLock lock(&mutex_);
  kept_out_ = std::move(kept_out);
  Changed();
}

void NodeRegistry::SetAbsent(std::map<std::string, uint64_t> blocks) {
  MutexLock lock(&mutex_);
  absent_ = std::move(blocks);
}

bool NodeRegistry::Missed(const std::string& node, TimePoint now) {
  const auto kept_out = kept_out_.find(node);
  if (kept_out != kept_out_.end() && kept_out->second == KeptOut::kMaintenance) return true;
  return absent_.contains(node) && now - started_ > dead_after_;
}

std::string NodeRegistry::RackIn(const RackTable& racks, const NodeRecord& node) {
  if (const auto by_id = racks.find(node.node_id); by_id != racks.end()) return by_id->second;
  const absl::StatusOr<HostPort> control = ParseHostPort(node.control_address);
  const auto by_host = control.ok() ? racks.find(control->host) : racks.end();
  return by_host == racks.end() ? "" : by_host->second;
}

void NodeRegistry::SetRacks(RackTable racks) {
  MutexLock lock(&mutex_);
  racks_ = std::move(racks);
  for (const NodeRecord& node : table_.All()) {
    if (std::string rack = RackIn(racks_, node); !rack.empty()) {
      table_.SetRack(node.node_id, std::move(rack));
    }
  }
  Changed();
}

std::string NodeRegistry::ConfiguredRack(const NodeRecord& node, std::string* late_host) {
  {
    MutexLock lock(&mutex_);
    if (std::string rack = RackIn(racks_, node); !rack.empty()) return rack;
  }
  const absl::StatusOr<HostPort> control = ParseHostPort(node.control_address);
  if (script_ == nullptr || !control.ok()) return "";
  const absl::StatusOr<std::string> rack = script_->RackOf(control->host);
  if (rack.ok()) return *rack;
  Log(LogLevel::kWarning, "topology.script_failed",
      {{"node", node.node_id}, {"status", StatusText(rack.status())}});
  *late_host = control->host;
  return "";
}

void NodeRegistry::TakeLateRacks() {
  std::map<std::string, std::string> late;
  {
    MutexLock lock(&mutex_);
    std::erase_if(late_hosts_, [this](const auto& host) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return table_.Find(host.first) == nullptr;
    });
    late = late_hosts_;
  }
  for (const auto& [node, host] : late) {
    std::string rack = script_->Known(host);
    if (rack.empty()) continue;
    {
      MutexLock lock(&mutex_);
      const auto still = late_hosts_.find(node);
      if (still == late_hosts_.end() || still->second != host) continue;
      late_hosts_.erase(still);
      const NodeRecord* const record = table_.Find(node);
      if (record == nullptr || !RackIn(racks_, *record).empty()) continue;  // the table goes before
      table_.SetRack(node, rack);
      Changed();
    }
    Log(LogLevel::kInfo, "topology.rack", {{"node", node}, {"rack", rack}});
  }
}

absl::Status NodeRegistry::Register(NodeRecord node) {
  std::string late_host;
  if (std::string rack = ConfiguredRack(node, &late_host); !rack.empty()) {
    node.rack = std::move(rack);
  }
  absl::StatusOr<RegisterOutcome> outcome = RegisterOutcome::kRefreshed;
  bool refused_anew = false;
  {
    MutexLock lock(&mutex_);
    const TimePoint now = clock_->Now();
    outcome = table_.Register(node, now);
    Changed();
    if (outcome.ok()) {
      refused_.erase({node.node_id, node.control_address});
      late_hosts_.erase(node.node_id);
      if (!late_host.empty()) late_hosts_[node.node_id] = late_host;
      if (*outcome != RegisterOutcome::kRefreshed) silent_.Forget(node.node_id);
    } else if (absl::IsAlreadyExists(outcome.status())) {
      refused_anew = NoteRefused(node, std::string(outcome.status().message()), now);
    }
  }
  if (refused_anew) {
    Log(LogLevel::kWarning, "node.refused",
        {{"node", node.node_id},
         {"control", node.control_address},
         {"status", StatusText(outcome.status())}});
  }
  if (!outcome.ok()) return outcome.status();
  if (*outcome == RegisterOutcome::kReplacedLive) {
    Log(LogLevel::kWarning, "node.replaced",
        {{"node", node.node_id},
         {"hint", "the helper restarted, or two helpers have the same node_id"}});
  }
  Log(LogLevel::kInfo, "node.registered",
      {{"node", node.node_id},
       {"rack", node.rack},
       {"control", node.control_address},
       {"data", node.data_address},
       {"blocks", std::to_string(node.block_count)}});
  return absl::OkStatus();
}

bool NodeRegistry::NoteRefused(const NodeRecord& node, const std::string& reason, TimePoint now) {
  std::erase_if(refused_, [&](const auto& entry) { return now - entry.second.at > kRefusalAge; });
  const std::pair key(node.node_id, node.control_address);
  const bool news = !refused_.contains(key);
  if (news && refused_.size() >= kMaxRefused) return false;
  refused_[key] = {reason, now};
  return news;
}

std::vector<RefusedNode> NodeRegistry::Refused() {
  MutexLock lock(&mutex_);
  const TimePoint now = clock_->Now();
  std::vector<RefusedNode> refused;
  for (const auto& [key, refusal] : refused_) {
    if (now - refusal.at > kRefusalAge) continue;
    refused.push_back({key.first, key.second, refusal.reason, Seconds(now - refusal.at)});
  }
  return refused;
}

absl::Status NodeRegistry::AddDead(NodeRecord node, Duration silent) {
  MutexLock lock(&mutex_);
  Changed();
  return table_.AddDead(std::move(node), silent, clock_->Now());
}

absl::Status NodeRegistry::Heartbeat(const std::string& node, uint64_t incarnation,
                                     const NodeReport& report) {
  MutexLock lock(&mutex_);
  const TimePoint now = clock_->Now();
  const NodeState before = table_.State(node, now);
  absl::Status taken = table_.Heartbeat(node, incarnation, report, now);
  if (table_.State(node, now) != before) Changed();
  return taken;
}

void NodeRegistry::Forget(const std::string& node) {
  MutexLock lock(&mutex_);
  table_.Forget(node);
  late_hosts_.erase(node);
  absent_.erase(node);
  silent_.Forget(node);
  Changed();
}

void NodeRegistry::Heard(const std::string& node) {
  MutexLock lock(&mutex_);
  table_.Heard(node, clock_->Now());
}

void NodeRegistry::Tick() {
  TakeLateRacks();
  std::vector<NodeTable::Turn> turns;
  {
    MutexLock lock(&mutex_);
    const TimePoint now = clock_->Now();
    table_.Tick(now);
    turns = table_.TakeTurns(now);
    silent_.Tidy([this](const std::string& node)
                     ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return table_.Find(node) == nullptr; },
                 now);
  }
  for (const NodeTable::Turn& turn : turns) {
    if (turn.dead) {
      Log(LogLevel::kWarning, "node.dead",
          {{"node", turn.node},
           {"silent_seconds", std::to_string(Seconds(turn.silent))},
           {"hint", "the helper has ended, or is cut off from the coordinator"}});
    } else {
      Log(LogLevel::kInfo, "node.back", {{"node", turn.node}});
    }
  }
}

bool NodeRegistry::Dead(const std::string& node, TimePoint now) {
  return table_.State(node, now) == NodeState::kDead;
}

void NodeRegistry::NoAnswer(const std::string& node, const std::string& reason) {
  {
    MutexLock lock(&mutex_);
    const TimePoint now = clock_->Now();
    if (Dead(node, now) || !silent_.NoAnswer(node, reason, now)) return;
    Changed();
  }
  Log(LogLevel::kWarning, "node.silent",
      {{"node", node},
       {"reason", reason},
       {"hint", "its heartbeats come; repairs leave it out until it answers again"}});
}

void NodeRegistry::Answered(const std::string& node) {
  {
    MutexLock lock(&mutex_);
    if (!silent_.Answered(node, clock_->Now())) return;
    Changed();
  }
  Log(LogLevel::kInfo, "node.answers", {{"node", node}});
}

std::map<std::string, std::string> NodeRegistry::Silent() {
  std::map<std::string, std::string> silent;
  MutexLock lock(&mutex_);
  const TimePoint now = clock_->Now();
  for (const std::string& node : silent_.All()) {
    if (!Dead(node, now)) silent[node] = silent_.Find(node)->reason;
  }
  return silent;
}

std::vector<std::string> NodeRegistry::SilentToProbe() {
  MutexLock lock(&mutex_);
  const TimePoint now = clock_->Now();
  std::vector<std::string> due = silent_.ToProbe(now);
  std::erase_if(due, [&](const std::string& node)
                         ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return Dead(node, now); });
  return due;
}

NodeView NodeRegistry::ViewOf(const NodeRecord& record, TimePoint now) {
  NodeView view{record, table_.State(record.node_id, now), Seconds(now - record.last_heartbeat)};
  const SilentNodes::Silence* const silence = silent_.Find(record.node_id);
  if (silence != nullptr && view.state != NodeState::kDead) {
    view.silent_because = silence->reason;
    view.silent_seconds = Seconds(now - silence->since);
  }
  const auto kept_out = kept_out_.find(record.node_id);
  if (kept_out != kept_out_.end()) view.kept_out = kept_out->second;
  return view;
}

std::optional<NodeView> NodeRegistry::Find(const std::string& node) {
  MutexLock lock(&mutex_);
  if (const NodeRecord* record = table_.Find(node)) return ViewOf(*record, clock_->Now());
  const TimePoint now = clock_->Now();
  if (!Missed(node, now)) return std::nullopt;
  return Unheard(node, now);
}

NodeView NodeRegistry::Unheard(const std::string& node, TimePoint now) {
  NodeRecord record;
  record.node_id = node;
  record.last_heartbeat = started_;
  if (const auto absent = absent_.find(node); absent != absent_.end()) {
    record.block_count = absent->second;
  }
  NodeView view = ViewOf(record, now);
  view.heartbeat_unknown = true;
  return view;
}

bool NodeRegistry::HasRegistered(const std::string& node) {
  MutexLock lock(&mutex_);
  const NodeRecord* record = table_.Find(node);
  return record != nullptr && !record->remembered;
}

std::vector<std::string> NodeRegistry::WithStorage(const std::string& storage_id) {
  MutexLock lock(&mutex_);
  return table_.WithStorage(storage_id);
}

void NodeRegistry::Changed() {
  ++changes_;
  live_counted_.reset();
}

uint64_t NodeRegistry::changes() {
  MutexLock lock(&mutex_);
  return changes_;
}

size_t NodeRegistry::CountLive() {
  MutexLock lock(&mutex_);
  const TimePoint now = clock_->Now();
  if (!live_counted_ || now - *live_counted_ >= kCountAge) {
    live_ = table_.CountLive(now);
    live_counted_ = now;
  }
  return live_;
}

std::vector<NodeView> NodeRegistry::All() {
  MutexLock lock(&mutex_);
  const TimePoint now = clock_->Now();
  std::vector<NodeView> views;
  for (const NodeRecord& record : table_.All()) views.push_back(ViewOf(record, now));
  std::set<std::string> others;
  for (const auto& [node, why] : kept_out_) others.insert(node);
  for (const auto& [node, blocks] : absent_) others.insert(node);
  for (const std::string& node : others) {
    if (table_.Find(node) != nullptr || !Missed(node, now)) continue;
    views.push_back(Unheard(node, now));
  }
  return views;
}

}  // namespace ecpipe
