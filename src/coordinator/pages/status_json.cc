// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pages/status_json.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/bytes/utf8_text.h"
#include "coordinator/pages/status_verdict.h"

namespace ecpipe {
namespace {

using Json = nlohmann::ordered_json;

// Whoever knows all of a repair's id may end it, so a page tells only so much of it: enough to find
// it in `ecpipe status`.
constexpr size_t kShownDigits = 6;
constexpr std::string_view kHexDigits = "0123456789abcdef";

std::string ShownId(RepairId repair_id) { return RepairIdText(repair_id).substr(0, kShownDigits); }

// The same for the ids in a text.
std::string HideRepairIds(std::string_view text) {
  static const size_t digits = RepairIdText(0).size();
  std::string shown;
  while (!text.empty()) {
    const bool hex = kHexDigits.find(text.front()) != std::string_view::npos;
    const size_t end = std::min(
        text.size(), hex ? text.find_first_not_of(kHexDigits) : text.find_first_of(kHexDigits));
    if (hex && end == digits) {
      shown.append(text.substr(0, kShownDigits)).append("…");
    } else {
      shown.append(text.substr(0, end));
    }
    text.remove_prefix(end);
  }
  return shown;
}

class Writer {
 public:
  Writer(const StatusSnapshot& snapshot, const ShownAtMost& most)
      : snapshot_(snapshot), most_(most) {}

  Json Status() const {
    const ClusterVerdict verdict = Judge(snapshot_);
    Json json;
    json["version"] = Text(snapshot_.version);
    json["unix_ms"] = snapshot_.unix_ms;
    json["state"] = ClusterStateName(verdict.state);
    json["summary"] = Words(verdict.text);
    json["limits"] = {{"repair_bytes_per_second", snapshot_.limit_bytes_per_second},
                      {"max_running", snapshot_.max_running}};
    json["marks"] = {{"suspect_blocks", snapshot_.suspect_blocks},
                     {"corrupt_blocks", snapshot_.corrupt_blocks}};
    json["nodes"] = Nodes();
    json["recoveries"] = Recoveries();
    json["repairs"] = Repairs();
    json["ended"] = EndedRepairs();
    json["queue"] = Queue();
    return json;
  }

 private:
  // What people and programs have written, not a name.
  std::string Words(std::string_view text) const { return Text(HideRepairIds(text)); }
  // Cut at a whole character.
  std::string Text(std::string_view text) const {
    const std::string_view kept = CutText(text, most_.text_bytes);
    return CleanText(kept) + (kept.size() < text.size() ? "…" : "");
  }
  // A part of a list, and how many of all are left out.
  static Json Listed(Json list, size_t all, const char* name) {
    Json json;
    json["all"] = all;
    json["more"] = all - list.size();
    json[name] = std::move(list);
    return json;
  }
  static Json OrNull(std::optional<double> value) {
    return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
  }
  Json Texts(const std::vector<std::string>& texts) const {
    Json list = Json::array();
    for (const std::string& text : texts) {
      if (list.size() == most_.names) break;
      list.push_back(Text(text));
    }
    return list;
  }

  // Those that need somebody come first, then those that work.
  static int Rank(const NodeView& node) {
    if (node.Away()) return 2;
    if (node.state == NodeState::kDead) return 0;
    if (!node.silent_because.empty() || !node.record.failed_roots.empty()) return 1;
    if (node.state == NodeState::kDraining) return 2;
    return node.record.active_sessions > 0 ? 3 : 4;
  }

  Json Node(const NodeView& view) const {
    const NodeRecord& record = view.record;
    Json json;
    json["node"] = Text(record.node_id);
    json["state"] = NodeStateName(view.state);
    json["heartbeat_seconds_ago"] = view.seconds_since_heartbeat;
    json["heartbeat_unknown"] = view.heartbeat_unknown;
    json["silent_because"] = Words(view.silent_because);
    json["kept_out"] = KeptOutName(view.kept_out);
    json["recovered"] = view.state == NodeState::kDead && IsRecovered(snapshot_, view);
    json["blocks"] = record.block_count;
    json["block_bytes"] = record.block_bytes;
    json["counting"] = record.counting;
    json["free_bytes"] = record.free_bytes ? Json(*record.free_bytes) : Json(nullptr);
    json["disk_bytes"] = record.disk_bytes ? Json(*record.disk_bytes) : Json(nullptr);
    json["failed_roots"] = Texts(record.failed_roots);
    json["parts"] = record.active_sessions;
    json["max_parts"] = record.max_sessions;
    json["limit_bytes_per_second"] = record.repair_bytes_per_second;
    const auto use = snapshot_.uses.find(record.node_id);
    const bool used = use != snapshot_.uses.end();
    json["send_bytes_per_second"] = used ? use->second.sends : 0;
    json["receive_bytes_per_second"] = used ? use->second.receives : 0;
    return json;
  }

  Json Nodes() const {
    std::vector<const NodeView*> nodes;
    for (const NodeView& node : snapshot_.nodes) nodes.push_back(&node);
    std::stable_sort(nodes.begin(), nodes.end(),
                     [](const auto* a, const auto* b) { return Rank(*a) < Rank(*b); });
    struct Rack {
      size_t all = 0;
      size_t live = 0;
      Json shown = Json::array();
    };
    std::map<std::string, Rack> racks;
    size_t shown = 0;
    std::map<NodeState, size_t> states;
    size_t away = 0;
    for (const NodeView* node : nodes) {
      ++(node->Away() ? away : states[node->state]);
      // A rack without a node that is shown is left out, too.
      const bool show = shown < most_.nodes;
      if (!show && !racks.contains(node->record.rack)) continue;
      Rack& rack = racks[node->record.rack];
      ++rack.all;
      rack.live += node->state == NodeState::kLive ? 1 : 0;
      if (!show) continue;
      rack.shown.push_back(Node(*node));
      ++shown;
    }
    Json json;
    json["all"] = nodes.size();
    for (const NodeState state : {NodeState::kLive, NodeState::kDraining, NodeState::kDead}) {
      json[NodeStateName(state)] = states[state];
    }
    json["away"] = away;
    json["more"] = nodes.size() - shown;
    json["racks"] = Json::array();
    for (auto& [name, rack] : racks) {
      json["racks"].push_back({{"rack", Text(name)},
                               {"all", rack.all},
                               {"live", rack.live},
                               {"nodes", std::move(rack.shown)}});
    }
    json["refused"] = Json::array();
    for (const RefusedNode& refused : snapshot_.refused) {
      if (json["refused"].size() == most_.names) break;
      json["refused"].push_back({{"node", Text(refused.node_id)},
                                 {"address", Text(refused.control_address)},
                                 {"reason", Words(refused.reason)}});
    }
    return json;
  }

  Json Waits(const std::vector<RecoveryWait>& waits) const {
    Json list = Json::array();
    for (const RecoveryWait& wait : waits) {
      if (list.size() == most_.names) break;
      list.push_back({{"kind", WaitKindName(wait.kind)},
                      {"blocks", wait.blocks},
                      {"reason", Words(wait.reason)}});
    }
    return list;
  }

  Json Recovery(const RecoveryView& view) const {
    const RecoveryRecord& record = view.record;
    const bool ended = Ended(record.state);
    Json json;
    json["recovery"] = record.recovery_id;
    json["node"] = Text(record.request.node);
    json["kind"] = RecoveryKindName(record.request.kind);
    json["only_announced"] = OnlyAnnounced(record);
    json["state"] = RecoveryStateName(record.state);
    json["started_unix_ms"] = record.started_unix_ms;
    json["ended_unix_ms"] = ended ? Json(record.ended_unix_ms) : Json(nullptr);
    json["listing"] = view.listing;
    json["blocks"] = record.blocks;
    json["done_blocks"] = record.done_blocks;
    json["there_blocks"] = view.there_blocks;
    json["failed_blocks"] = record.failed_blocks;
    json["running_blocks"] = view.running_blocks;
    json["waiting_blocks"] = view.waiting_blocks;
    json["bytes"] = record.bytes;
    json["done_bytes"] = record.done_bytes;
    json["bytes_per_second"] = ended ? Json(nullptr) : Json(view.bytes_per_second);
    json["eta_seconds"] = ended || view.eta_seconds < 0 ? Json(nullptr) : OrNull(view.eta_seconds);
    json["begins_in_seconds"] = view.begins_in_seconds;
    json["waits"] = Waits(view.waits);
    return json;
  }

  Json Recoveries() const {
    std::vector<const RecoveryView*> order;
    for (const RecoveryView& view : snapshot_.recoveries) order.push_back(&view);
    // Those in which something is to be done first. A rack may have many nodes in maintenance.
    const auto rank = [](const RecoveryView* view) {
      return Ended(view->record.state) ? 2 : OnlyAnnounced(view->record) ? 1 : 0;
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](const auto* a, const auto* b) { return rank(a) < rank(b); });
    Json list = Json::array();
    for (const RecoveryView* view : order) {
      if (list.size() == most_.recoveries) break;
      list.push_back(Recovery(*view));
    }
    return Listed(std::move(list), order.size(), "shown");
  }

  Json Pipeline(const ShownRepair& repair) const {
    Json links = Json::array();
    for (const PipelineLink& link : repair.links) {
      if (links.size() == most_.links) break;
      links.push_back({{"from", Text(link.from)},
                       {"to", Text(link.to)},
                       {"streams", link.streams},
                       {"bytes_per_second", OrNull(link.bytes_per_second)},
                       {"network_share", link.network_share}});
    }
    Json json = Listed(std::move(links), repair.links.size(), "links");
    json["held_back_by"] = nullptr;
    if (const std::optional<HeldBack>& by = repair.held_back) {
      json["held_back_by"] = {
          {"kind", HeldBackName(by->by)}, {"from", Text(by->from)}, {"to", Text(by->to)}};
    }
    return json;
  }

  // What repairs that run and repairs that have ended share.
  Json Record(const RepairRecord& record) const {
    Json json;
    json["repair"] = ShownId(record.repair_id);
    json["blocks"] = Texts(record.block_ids);
    json["scheme"] = Text(record.scheme);
    json["transport"] = Text(record.transport);
    json["attempt"] = record.attempt;
    json["requestor"] = Text(record.requestor);
    json["hosts"] = Texts(record.hosts);
    json["recovery"] = record.recovery_id == 0 ? Json(nullptr) : Json(record.recovery_id);
    json["started_unix_ms"] = record.started_unix_ms;
    return json;
  }

  Json EndedRepairs() const {
    Json json;
    json["error"] =
        snapshot_.ended_error.empty() ? Json(nullptr) : Json(Words(snapshot_.ended_error));
    json["shown"] = Json::array();
    for (const RepairRecord& record : snapshot_.ended) {
      if (json["shown"].size() == most_.ended) break;
      Json repair = Record(record);
      repair["state"] = RepairStateName(record.state);
      repair["ended_unix_ms"] = record.ended_unix_ms;
      repair["bytes"] = record.bytes;
      repair["detail"] = Words(record.detail);
      json["shown"].push_back(std::move(repair));
    }
    return json;
  }

  Json Repair(const ShownRepair& repair) const {
    const RunningRepair& running = repair.running;
    Json json = Record(running.record);
    json["phase"] = running.phase;
    const bool known = running.whole_bytes > 0;
    const uint64_t missing = std::min(running.missing_bytes, running.whole_bytes);
    json["bytes"] = known ? Json(running.whole_bytes) : Json(nullptr);
    json["done_bytes"] = known ? Json(running.whole_bytes - missing) : Json(nullptr);
    json["heard_seconds_ago"] = OrNull(repair.heard_seconds_ago);
    json["bytes_per_second"] = OrNull(repair.bytes_per_second);
    const double rate = repair.bytes_per_second.value_or(0);
    json["eta_seconds"] =
        known && rate > 0 ? OrNull(static_cast<double>(missing) / rate) : Json(nullptr);
    json["pipeline"] = Pipeline(repair);
    return json;
  }

  Json Repairs() const {
    Json list = Json::array();
    for (const ShownRepair& repair : snapshot_.repairs) {
      if (list.size() == most_.repairs) break;
      list.push_back(Repair(repair));
    }
    return Listed(std::move(list), std::max(snapshot_.running_repairs, snapshot_.repairs.size()),
                  "shown");
  }

  Json Queue() const {
    size_t all = 0;
    for (const RecoveryView& view : snapshot_.recoveries) all += view.waiting_blocks;
    Json list = Json::array();
    for (const WaitingBlock& block : snapshot_.queue) {
      if (list.size() == most_.waiting) break;
      list.push_back({{"block", Text(block.block_id)},
                      {"recovery", block.recovery_id},
                      {"node", Text(block.node)},
                      {"bytes", block.bytes},
                      {"spare_survivors", block.spare},
                      {"attempts", block.attempts},
                      {"kind", WaitKindName(block.why.kind)},
                      {"reason", Words(block.why.reason)},
                      {"next_try_in_seconds", block.next_try_in_seconds}});
    }
    // Both were counted at slightly different times.
    return Listed(std::move(list), std::max(all, snapshot_.queue.size()), "shown");
  }

  const StatusSnapshot& snapshot_;
  const ShownAtMost& most_;
};

}  // namespace

std::string StatusJson(const StatusSnapshot& snapshot, const ShownAtMost& most) {
  return Writer(snapshot, most).Status().dump();
}

}  // namespace ecpipe
