// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cluster/node_table.h"

#include <algorithm>
#include <utility>

#include "base/bytes/utf8_text.h"
#include "base/status.h"
#include "model/block_id.h"
#include "net/tcp_socket.h"

namespace ecpipe {

namespace {

absl::Status CheckText(const std::string& text, const char* field, size_t max_bytes) {
  if (text.size() <= max_bytes) return absl::OkStatus();
  return absl::InvalidArgumentError("the node's " + std::string(field) + " is " +
                                    std::to_string(text.size()) + " bytes; at most " +
                                    std::to_string(max_bytes) + " are allowed");
}

std::vector<std::string> Bounded(std::vector<std::string> failed_roots) {
  if (failed_roots.size() > NodeTable::kMaxFailedRoots) {
    failed_roots.resize(NodeTable::kMaxFailedRoots);
  }
  for (std::string& root : failed_roots) {
    root = CleanText(CutText(root, NodeTable::kMaxFailedRootBytes));
  }
  return failed_roots;
}

absl::Status CheckNotEmpty(const std::string& text, const char* field) {
  if (!text.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError("the node's " + std::string(field) + " is empty");
}

// Others dial it, gRPC among them, which knows more kinds of addresses than host:port.
absl::Status CheckAddress(const std::string& address, const char* field) {
  ECPIPE_RETURN_IF_ERROR(CheckNotEmpty(address, field));
  ECPIPE_RETURN_IF_ERROR(CheckText(address, field, NodeTable::kMaxAddressBytes));
  return Annotate(ParseHostPort(address).status(), "the node's " + std::string(field));
}

// Both are host:port.
bool SameHost(const std::string& address, const std::string& other) {
  return address.substr(0, address.rfind(':')) == other.substr(0, other.rfind(':'));
}

absl::Status CheckRecord(const NodeRecord& record) {
  ECPIPE_RETURN_IF_ERROR(CheckNotEmpty(record.node_id, "node_id"));
  ECPIPE_RETURN_IF_ERROR(CheckText(record.node_id, "node_id", NodeTable::kMaxNodeIdBytes));
  ECPIPE_RETURN_IF_ERROR(CheckText(record.rack, "rack", NodeTable::kMaxNodeIdBytes));
  ECPIPE_RETURN_IF_ERROR(Annotate(ValidateBlockId(record.node_id), "node_id"));
  if (!record.storage_id.empty()) {
    ECPIPE_RETURN_IF_ERROR(Annotate(ValidateBlockId(record.storage_id), "the node's storage_id"));
  }
  ECPIPE_RETURN_IF_ERROR(CheckAddress(record.control_address, "control_address"));
  ECPIPE_RETURN_IF_ERROR(CheckAddress(record.data_address, "data_address"));
  if (record.control_address == record.data_address) {
    return absl::InvalidArgumentError("the node's control_address and data_address are both " +
                                      record.data_address + ", but a port serves one of them");
  }
  if (record.redis_address.empty()) return absl::OkStatus();
  return CheckAddress(record.redis_address, "redis_address");
}

}  // namespace

const char* NodeStateName(NodeState state) {
  switch (state) {
    case NodeState::kLive:
      return "live";
    case NodeState::kDraining:
      return "draining";
    case NodeState::kDead:
      return "dead";
  }
  return "unknown";
}

absl::StatusOr<RegisterOutcome> NodeTable::Register(NodeRecord record, TimePoint now) {
  ECPIPE_RETURN_IF_ERROR(CheckRecord(record));
  ECPIPE_RETURN_IF_ERROR(CheckAddressesAreFree(record, now));
  ECPIPE_RETURN_IF_ERROR(CheckIdIsFree(record, now));
  return Put(std::move(record), now, now);
}

absl::Status NodeTable::CheckAddressesAreFree(const NodeRecord& record, TimePoint now) const {
  // Nodes without a storage id are many, and share none.
  const std::vector<std::string> same_storage =
      record.storage_id.empty() ? std::vector<std::string>{} : WithStorage(record.storage_id);
  for (const std::string& other : same_storage) {
    if (other == record.node_id || State(other, now) == NodeState::kDead) continue;
    return absl::AlreadyExistsError("register node " + record.node_id + ": node " + other +
                                    ", which is live, has storage id " + record.storage_id +
                                    " already; if its disks have moved, it is taken once the "
                                    "helper there has ended");
  }
  for (const std::string& address : {record.control_address, record.data_address}) {
    for (auto entry = by_address_.lower_bound({address, ""});
         entry != by_address_.end() && entry->first == address; ++entry) {
      const std::string& other = entry->second;
      if (other == record.node_id || State(other, now) == NodeState::kDead) continue;
      return absl::AlreadyExistsError(
          "register node " + record.node_id + ": node " + other + ", which is live, has address " +
          address + " already; set [listen] control and data (or advertise_control and " +
          "advertise_data) of each helper to a name or address that leads to that helper alone");
    }
  }
  return absl::OkStatus();
}

absl::Status NodeTable::CheckIdIsFree(const NodeRecord& record, TimePoint now) const {
  const NodeRecord* const known = Find(record.node_id);
  if (known == nullptr || State(record.node_id, now) != NodeState::kLive) return absl::OkStatus();
  if (known->incarnation == record.incarnation) return absl::OkStatus();
  // On one host a helper may come back at other ports; but not one that another has replaced.
  const bool from_elsewhere = !SameHost(known->control_address, record.control_address) ||
                              !SameHost(known->data_address, record.data_address);
  if (!from_elsewhere && record.incarnation != known->replaced_incarnation) {
    return absl::OkStatus();
  }
  return absl::AlreadyExistsError(
      "register node " + record.node_id + " at " + record.control_address + ": a live helper at " +
      known->control_address +
      " has this node_id; give each helper a node_id of its own. If the node has moved, it is "
      "taken once the helper there has ended");
}

void NodeTable::Index(const NodeRecord& record) {
  by_storage_.insert({record.storage_id, record.node_id});
  by_address_.insert({record.control_address, record.node_id});
  by_address_.insert({record.data_address, record.node_id});
}

void NodeTable::Unindex(const NodeRecord& record) {
  by_storage_.erase({record.storage_id, record.node_id});
  by_address_.erase({record.control_address, record.node_id});
  by_address_.erase({record.data_address, record.node_id});
}

absl::StatusOr<RegisterOutcome> NodeTable::Put(NodeRecord record, TimePoint heard, TimePoint now) {
  record.last_heartbeat = heard;
  record.failed_roots = Bounded(std::move(record.failed_roots));
  const auto found = nodes_.find(record.node_id);
  if (found != nodes_.end()) {
    NodeRecord& old = found->second;
    RegisterOutcome outcome = RegisterOutcome::kRefreshed;
    if (old.incarnation != record.incarnation) {
      const bool dead = Dead(old, now);
      outcome = dead ? RegisterOutcome::kReplaced : RegisterOutcome::kReplacedLive;
      record.replaced_incarnation = dead ? 0 : old.incarnation;
    } else {
      record.replaced_incarnation = old.replaced_incarnation;
    }
    Unindex(old);
    Index(record);
    old = std::move(record);
    return outcome;
  }
  if (nodes_.size() >= kMaxNodes) ForgetDead(now);
  if (nodes_.size() >= kMaxNodes) {
    return absl::ResourceExhaustedError("register node " + record.node_id + ": " +
                                        std::to_string(kMaxNodes) +
                                        " nodes are live already, which is the limit");
  }
  std::string node_id = record.node_id;
  Index(record);
  nodes_.emplace(std::move(node_id), std::move(record));
  return RegisterOutcome::kAdded;
}

absl::Status NodeTable::AddDead(NodeRecord record, Duration silent, TimePoint now) {
  record.remembered = true;
  record.told_dead = true;
  ECPIPE_RETURN_IF_ERROR(CheckRecord(record));
  const Duration longer = std::max(silent, dead_after_ + std::chrono::milliseconds(1));
  return Put(std::move(record), now - longer, now).status();
}

absl::Status NodeTable::Heartbeat(const std::string& node_id, uint64_t incarnation,
                                  const NodeReport& report, TimePoint now) {
  const auto found = nodes_.find(node_id);
  if (found == nodes_.end()) {
    return absl::NotFoundError("node " + node_id + " is not registered; register it first");
  }
  NodeRecord& node = found->second;
  if (node.incarnation != incarnation) {
    return absl::NotFoundError("node " + node_id +
                               " is registered with another incarnation; register it again");
  }
  node.block_count = report.block_count;
  node.block_bytes = report.block_bytes;
  node.counting = report.counting;
  node.free_bytes = report.free_bytes;
  node.disk_bytes = report.disk_bytes;
  node.active_sessions = report.active_sessions;
  node.draining = report.draining;
  node.repair_bytes_per_second = report.repair_bytes_per_second;
  node.max_sessions = report.max_sessions;
  node.failed_roots = Bounded(report.failed_roots);
  node.last_heartbeat = now;
  return absl::OkStatus();
}

void NodeTable::Heard(const std::string& node_id, TimePoint now) {
  const auto found = nodes_.find(node_id);
  if (found != nodes_.end() && !Dead(found->second, now)) found->second.last_heartbeat = now;
}

NodeState NodeTable::State(const std::string& node_id, TimePoint now) const {
  const NodeRecord* node = Find(node_id);
  if (node == nullptr || Dead(*node, now)) return NodeState::kDead;
  return node->draining ? NodeState::kDraining : NodeState::kLive;
}

const NodeRecord* NodeTable::Find(const std::string& node_id) const {
  const auto found = nodes_.find(node_id);
  return found == nodes_.end() ? nullptr : &found->second;
}

void NodeTable::SetRack(const std::string& node_id, std::string rack) {
  const auto found = nodes_.find(node_id);
  if (found != nodes_.end()) found->second.rack = std::move(rack);
}

void NodeTable::Forget(const std::string& node_id) {
  const auto found = nodes_.find(node_id);
  if (found == nodes_.end()) return;
  Unindex(found->second);
  nodes_.erase(found);
}

void NodeTable::ForgetDead(TimePoint now) {
  std::erase_if(nodes_, [&](const auto& entry) {
    const bool dead = Dead(entry.second, now);
    if (dead) Unindex(entry.second);
    return dead;
  });
}

std::vector<std::string> NodeTable::WithStorage(const std::string& storage_id) const {
  std::vector<std::string> nodes;
  for (auto entry = by_storage_.lower_bound({storage_id, ""});
       entry != by_storage_.end() && entry->first == storage_id; ++entry) {
    nodes.push_back(entry->second);
  }
  return nodes;
}

std::vector<NodeRecord> NodeTable::All() const {
  std::vector<NodeRecord> all;
  all.reserve(nodes_.size());
  for (const auto& [node_id, node] : nodes_) all.push_back(node);
  return all;
}

size_t NodeTable::CountLive(TimePoint now) const {
  return static_cast<size_t>(std::count_if(nodes_.begin(), nodes_.end(), [&](const auto& entry) {
    return !entry.second.draining && !Dead(entry.second, now);
  }));
}

void NodeTable::Tick(TimePoint now) {
  const Duration stalled = Stalled(now);
  if (stalled > Duration(0)) {
    for (auto& [node_id, node] : nodes_) {
      // One that was dead when the stall began stays dead.
      if (!Dead(node, now)) node.last_heartbeat = std::min(now, node.last_heartbeat + stalled);
    }
  }
  last_tick_ = now;
}

std::vector<NodeTable::Turn> NodeTable::TakeTurns(TimePoint now) {
  std::vector<Turn> turns;
  for (auto& [node_id, node] : nodes_) {
    const bool dead = Dead(node, now);
    if (dead == node.told_dead) continue;
    node.told_dead = dead;
    turns.push_back({node_id, dead, now - node.last_heartbeat});
  }
  return turns;
}

Duration NodeTable::Stalled(TimePoint now) const {
  if (!last_tick_) return Duration(0);
  return std::max<Duration>(Duration(0), now - *last_tick_ - kLatestTick);
}

bool NodeTable::Dead(const NodeRecord& node, TimePoint now) const {
  return now - node.last_heartbeat - Stalled(now) > dead_after_;
}

}  // namespace ecpipe
