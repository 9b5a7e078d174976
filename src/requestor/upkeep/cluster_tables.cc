// SPDX-License-Identifier: Apache-2.0
#include "requestor/upkeep/cluster_tables.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <tuple>
#include <utility>
#include <variant>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/bytes/size_text.h"
#include "requestor/doctor/node_troubles.h"

namespace ecpipe {
namespace {

// What a row is sorted by. Numbers are negated, so that the largest comes first.
using SortValue = std::variant<double, std::string>;

template <typename Row>
struct SortKey {
  std::string name;
  std::function<SortValue(const Row&)> value;
};

template <typename Row>
void SortBy(const std::vector<SortKey<Row>>& keys, const SortOrder& order, std::vector<Row>* rows) {
  const auto key = std::find_if(keys.begin(), keys.end(),
                                [&](const SortKey<Row>& known) { return known.name == order.key; });
  if (key != keys.end()) {
    std::stable_sort(rows->begin(), rows->end(),
                     [&](const Row& a, const Row& b) { return key->value(a) < key->value(b); });
  }
  if (order.reverse) std::reverse(rows->begin(), rows->end());
}

template <typename Row>
std::vector<std::string> NamesOf(const std::vector<SortKey<Row>>& keys) {
  std::vector<std::string> names;
  for (const SortKey<Row>& key : keys) names.push_back(key.name);
  return names;
}

LinkUse UseOf(const LinkUses& uses, const NodeStatus& node) {
  const auto found = uses.find(node.node);
  return found == uses.end() ? LinkUse{} : found->second;
}

std::vector<SortKey<NodeStatus>> NodeKeys(const LinkUses& uses) {
  using Node = const NodeStatus&;
  const auto largest = [](auto number) { return -static_cast<double>(number); };
  return {
      {"node", [](Node node) { return node.node; }},
      {"rack", [](Node node) { return node.rack; }},
      {"state", [](Node node) { return ShownState(node); }},
      {"blocks", [=](Node node) { return largest(node.block_count); }},
      {"size", [=](Node node) { return largest(node.block_bytes); }},
      {"free", [=](Node node) { return largest(node.free_bytes.value_or(0)); }},
      {"sends", [=](Node node) { return largest(UseOf(uses, node).sends); }},
      {"receives", [=](Node node) { return largest(UseOf(uses, node).receives); }},
      {"parts", [=](Node node) { return largest(node.counters.active_sessions); }},
      {"heartbeat", [=](Node node) { return largest(node.seconds_since_heartbeat); }},
      {"version", [](Node node) { return node.counters.version; }},
  };
}

double SecondsOf(const RepairRecord& repair, int64_t now_unix_ms) {
  const int64_t end = repair.ended_unix_ms == 0 ? now_unix_ms : repair.ended_unix_ms;
  // The coordinator's clock may be ahead of ours.
  return static_cast<double>(std::max<int64_t>(end - repair.started_unix_ms, 0)) / 1000;
}

// Where the bytes of a repair go.
std::string TargetOf(const RepairRecord& repair) {
  return repair.hosts.empty() ? repair.requestor : absl::StrJoin(repair.hosts, ", ");
}

std::vector<SortKey<RepairRecord>> RepairKeys(int64_t now_unix_ms) {
  using Repair = const RepairRecord&;
  return {
      {"repair", [](Repair repair) { return RepairIdText(repair.repair_id); }},
      {"state", [](Repair repair) { return std::string(RepairStateName(repair.state)); }},
      {"scheme", [](Repair repair) { return repair.scheme; }},
      {"seconds", [=](Repair repair) { return -SecondsOf(repair, now_unix_ms); }},
      {"block", [](Repair repair) { return absl::StrJoin(repair.block_ids, ","); }},
      {"for", [](Repair repair) { return TargetOf(repair); }},
  };
}

Tint TintOfNode(const NodeStatus& node, const std::string& state) {
  if (state == "live") return Tint::kGood;
  // "live, drained" as well.
  const bool busy = state == "draining" || state.starts_with("live, ") || node.Away();
  return busy ? Tint::kBusy : Tint::kBad;
}

Tint TintOfRepair(RepairState state) {
  switch (state) {
    case RepairState::kRunning:
      return Tint::kBusy;
    case RepairState::kDone:
      return Tint::kGood;
    case RepairState::kCancelled:
      return Tint::kFaint;
    default:
      return Tint::kBad;
  }
}

std::string RateText(double bytes_per_second) {
  return FormatSize(static_cast<uint64_t>(bytes_per_second)) + "/s";
}

std::string HeartbeatOf(const NodeStatus& node) {
  const double seconds = node.seconds_since_heartbeat;
  if (!node.heartbeat_unknown) return absl::StrFormat("%.1f s ago", seconds);
  return absl::StrFormat("none for %.1f s, since the start", seconds);
}

// What a node sends and receives; without rates what it has sent and received. What is not known
// is a dash.
std::pair<std::string, std::string> TrafficOf(const NodeStatus& node, const LinkUses& uses) {
  if (uses.empty() && node.answers) {
    return {FormatSize(node.counters.data_bytes_sent),
            FormatSize(node.counters.data_bytes_received)};
  }
  const auto use = uses.find(node.node);
  if (use == uses.end()) return {"-", "-"};
  return {RateText(use->second.sends), RateText(use->second.receives)};
}

}  // namespace

LinkUses LinkUsesBetween(const std::vector<NodeStatus>& before,
                         const std::vector<NodeStatus>& after, double seconds) {
  LinkUses uses;
  if (seconds <= 0) return uses;
  std::map<std::string, const HelperCounters*> known;
  for (const NodeStatus& node : before) {
    if (node.answers) known[node.node] = &node.counters;
  }
  // Counters that have shrunk are of a helper that has started again.
  const auto rate = [&](uint64_t from, uint64_t to) {
    return static_cast<double>(to - std::min(from, to)) / seconds;
  };
  for (const NodeStatus& node : after) {
    const auto earlier = known.find(node.node);
    if (!node.answers || earlier == known.end()) continue;
    uses[node.node] = {
        rate(earlier->second->data_bytes_sent, node.counters.data_bytes_sent),
        rate(earlier->second->data_bytes_received, node.counters.data_bytes_received)};
  }
  return uses;
}

std::string ShownState(const NodeStatus& node) {
  const bool silent = !node.answers || !node.silent_because.empty();
  const std::string state = node.state == "live" && silent ? "silent" : node.state;
  // A helper that is draining shuts down: that is another matter.
  return node.kept_out.empty() ? state : state + ", " + node.kept_out;
}

const std::vector<std::string>& NodeSortKeys() {
  static const auto* const names = new std::vector<std::string>(NamesOf(NodeKeys({})));
  return *names;
}

void SortNodes(const SortOrder& order, const LinkUses& uses, std::vector<NodeStatus>* nodes) {
  std::sort(nodes->begin(), nodes->end(),
            [](const NodeStatus& a, const NodeStatus& b) { return a.node < b.node; });
  SortBy(NodeKeys(uses), order, nodes);
}

Table NodesTable(const std::vector<NodeStatus>& nodes, const LinkUses& uses) {
  using Align = Table::Align;
  Table table({{"node", Align::kLeft, /*shrinks=*/true},
               {"rack", Align::kLeft, /*shrinks=*/true, 3},
               {"state"},
               {"blocks", Align::kRight},
               {"size", Align::kRight, false, 4},
               {"free", Align::kRight, false, 1},
               {uses.empty() ? "sent" : "sends", Align::kRight, false, 2},
               {uses.empty() ? "received" : "receives", Align::kRight, false, 2},
               {"parts", Align::kRight, false, 5},
               {"heartbeat", Align::kRight, false, 6},
               {"version", Align::kLeft, false, 7}});
  for (const NodeStatus& node : nodes) {
    const std::string state = ShownState(node);
    const std::pair<std::string, std::string> traffic = TrafficOf(node, uses);
    const bool late = node.seconds_since_heartbeat > kLateHeartbeatSeconds;
    table.Add({{node.node},
               {node.rack.empty() ? "-" : node.rack},
               {state, TintOfNode(node, state)},
               {node.counting ? "counting" : std::to_string(node.block_count)},
               {FormatSize(node.block_bytes)},
               {node.free_bytes ? FormatSize(*node.free_bytes) : "-"},
               {traffic.first},
               {traffic.second},
               {node.answers ? std::to_string(node.counters.active_sessions) : "-"},
               {HeartbeatOf(node), late ? Tint::kBad : Tint::kPlain},
               {node.counters.version.empty() ? "-" : node.counters.version}});
  }
  return table;
}

const std::vector<std::string>& RepairSortKeys() {
  static const auto* const names = new std::vector<std::string>(NamesOf(RepairKeys(0)));
  return *names;
}

void SortRepairs(const SortOrder& order, int64_t now_unix_ms, std::vector<RepairRecord>* repairs) {
  std::sort(repairs->begin(), repairs->end(), [](const RepairRecord& a, const RepairRecord& b) {
    const auto rank = [](const RepairRecord& repair) {
      return std::make_tuple(repair.state != RepairState::kRunning, -repair.started_unix_ms,
                             repair.repair_id);
    };
    return rank(a) < rank(b);
  });
  SortBy(RepairKeys(now_unix_ms), order, repairs);
}

Table RepairsTable(const std::vector<RepairRecord>& repairs, int64_t now_unix_ms) {
  using Align = Table::Align;
  Table table({{"repair"},
               {"state"},
               {"scheme", Align::kLeft, false, 4},
               {"via", Align::kLeft, false, 5},
               {"seconds", Align::kRight, false, 1},
               {"block", Align::kLeft, /*shrinks=*/true},
               {"for", Align::kLeft, /*shrinks=*/true, 3},
               {"detail", Align::kLeft, /*shrinks=*/true, 2}});
  for (const RepairRecord& repair : repairs) {
    table.Add({{RepairIdText(repair.repair_id)},
               {RepairStateName(repair.state), TintOfRepair(repair.state)},
               {repair.scheme},
               {repair.transport},
               {absl::StrFormat("%.3f", SecondsOf(repair, now_unix_ms))},
               {absl::StrJoin(repair.block_ids, ", ")},
               {TargetOf(repair)},
               {repair.detail}});
  }
  return table;
}

}  // namespace ecpipe
