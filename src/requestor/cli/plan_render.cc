// SPDX-License-Identifier: Apache-2.0
#include "requestor/cli/plan_render.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/bytes/hex.h"
#include "base/bytes/size_text.h"

namespace ecpipe {
namespace {

using Json = nlohmann::ordered_json;

std::string Fixed(double value, int digits) {
  char text[48];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string Hex(const std::vector<uint8_t>& bytes) {
  std::string text;
  for (const uint8_t byte : bytes) {
    text += (text.empty() ? "" : " ") + HexText({&byte, 1});
  }
  return text;
}

std::string BlockName(const ExplainedRepair& repair, int block_index) {
  const auto found = repair.block_ids.find(block_index);
  return found == repair.block_ids.end() ? std::to_string(block_index) : found->second;
}

std::string RackOf(const ExplainedRepair& repair, const std::string& node) {
  const auto found = repair.racks.find(node);
  return found == repair.racks.end() ? "" : found->second;
}

// Lanes that take turns have hundreds of runs.
std::string SlicesText(const LaneSlices& slices) {
  constexpr size_t kMostRuns = 4;
  std::string text;
  for (size_t i = 0; i < std::min(kMostRuns, slices.runs().size()); ++i) {
    const SliceRun& run = slices.runs()[i];
    const uint32_t last = run.first + (run.count - 1) * run.stride;
    text += (text.empty() ? "" : ", ") + std::to_string(run.first) + ".." + std::to_string(last);
    if (run.stride > 1) text += " step " + std::to_string(run.stride);
  }
  if (slices.runs().size() > kMostRuns) {
    text += " and " + std::to_string(slices.runs().size() - kMostRuns) + " more runs";
  }
  return text;
}

// "lane 1: 25.0 %, slices 0..9".
std::string LaneTitle(const RepairPlan& plan, size_t index) {
  uint64_t all = 0;
  for (const PlanLane& lane : plan.lanes) all += lane.slices.count();
  const LaneSlices& slices = plan.lanes[index].slices;
  std::string title = "lane " + std::to_string(index) + ": ";
  if (plan.lanes.size() > 1) {
    title += Fixed(100.0 * slices.count() / static_cast<double>(all), 1) + " %, ";
  }
  return title + "slices " + SlicesText(slices);
}

std::string Listed(const std::vector<uint32_t>& numbers) {
  std::string text;
  for (const uint32_t number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number);
  return text;
}

std::string HopLine(const ExplainedRepair& repair, const PlanHop& hop, size_t index) {
  char head[32];
  std::snprintf(head, sizeof head, "  %3zu  ", index);
  std::string line = head + hop.node;
  if (const std::string rack = RackOf(repair, hop.node); !rack.empty()) line += " (" + rack + ")";
  if (hop.block_index >= 0) {
    line += "  reads " + BlockName(repair, hop.block_index);
    if (repair.plan.layout.sub_blocks > 1) line += " sub-blocks " + Listed(hop.sub_blocks);
    line += " x [" + Hex(hop.coefficients) + "]";
  }
  if (!hop.inputs.empty()) {
    line += "  takes from";
    for (const PlanInput& input : hop.inputs) {
      line += " " + std::to_string(input.from_hop);
      if (!input.coefficients.empty()) line += " x [" + Hex(input.coefficients) + "]";
    }
  }
  if (!hop.stored_rows.empty()) {
    line += "  stores";
    for (const Row row : hop.stored_rows) {
      const uint32_t sub_blocks = repair.plan.layout.sub_blocks;
      if (row % sub_blocks != 0) continue;  // its first row has named the block
      line += " block " + std::to_string(repair.plan.failed[row / sub_blocks]);
    }
  }
  return line + "\n";
}

Json HopJson(const ExplainedRepair& repair, const PlanHop& hop) {
  Json json{{"node", hop.node}};
  if (const std::string rack = RackOf(repair, hop.node); !rack.empty()) json["rack"] = rack;
  if (hop.block_index >= 0) {
    json["block_id"] = BlockName(repair, hop.block_index);
    json["block_index"] = hop.block_index;
    json["coefficients"] = hop.coefficients;
    json["sub_blocks"] = hop.sub_blocks;
  }
  json["rows"] = hop.rows;
  json["inputs"] = Json::array();
  for (const PlanInput& input : hop.inputs) {
    Json edge{{"from_hop", input.from_hop}, {"rows", input.rows}};
    if (!input.coefficients.empty()) edge["coefficients"] = input.coefficients;
    json["inputs"].push_back(edge);
  }
  if (!hop.stored_rows.empty()) json["stored_rows"] = hop.stored_rows;
  return json;
}

std::string Quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

}  // namespace

std::string PlanAsText(const ExplainedRepair& repair) {
  const RepairPlan& plan = repair.plan;
  const PlanCost& cost = repair.cost;
  std::string text =
      "scheme " + plan.scheme + ", stripe " + repair.stripe_id + ", code " + repair.code + "\n";
  text += "range  " + std::to_string(plan.grid.bytes) + " bytes from byte " +
          std::to_string(plan.grid.offset) + " in " + std::to_string(plan.grid.slice_count()) +
          " slices of " + FormatSize(plan.grid.slice_bytes);
  if (plan.layout.sub_blocks > 1) {
    text += ", of each of " + std::to_string(plan.layout.sub_blocks) + " sub-blocks";
  }
  text += "\n";
  for (size_t i = 0; i < plan.lanes.size(); ++i) {
    const PlanLane& lane = plan.lanes[i];
    text += LaneTitle(plan, i) + "\n";
    for (size_t hop = 0; hop < lane.hops.size(); ++hop) {
      text += HopLine(repair, lane.hops[hop], hop);
    }
  }
  text += "expected: " + Fixed(cost.seconds, 3) + " s (" + Fixed(cost.timeslots, 3) +
          " timeslots); busiest link " + FormatSize(cost.busiest_link_bytes) + ", all links " +
          FormatSize(cost.total_bytes) + "\n";
  for (const SchemePrediction& prediction : repair.predictions) {
    text += "  " + prediction.scheme +
            std::string(16 - std::min<size_t>(15, prediction.scheme.size()), ' ') +
            Fixed(prediction.cost.seconds, 3) + " s (" + Fixed(prediction.cost.timeslots, 3) +
            " timeslots)";
    if (prediction.cost.cross_rack_bytes > 0) {
      text += ", " + FormatSize(prediction.cost.cross_rack_bytes) + " between racks";
    }
    text += prediction.scheme == plan.scheme ? "  <- this plan\n" : "\n";
  }
  return text;
}

std::string PlanAsJson(const ExplainedRepair& repair) {
  const RepairPlan& plan = repair.plan;
  Json json{{"scheme", plan.scheme}, {"stripe_id", repair.stripe_id}, {"code", repair.code}};
  json["offset"] = plan.grid.offset;
  json["bytes"] = plan.grid.bytes;
  json["slice_bytes"] = plan.grid.slice_bytes;
  json["slice_count"] = plan.grid.slice_count();
  json["sub_blocks"] = plan.layout.sub_blocks;
  json["unit_bytes"] = plan.layout.unit_bytes;
  json["failed"] = plan.failed;
  json["lanes"] = Json::array();
  for (const PlanLane& lane : plan.lanes) {
    Json lane_json{{"slices", Json::array()}, {"hops", Json::array()}};
    for (const SliceRun& run : lane.slices.runs()) {
      lane_json["slices"].push_back(
          {{"first", run.first}, {"count", run.count}, {"stride", run.stride}});
    }
    for (const PlanHop& hop : lane.hops) lane_json["hops"].push_back(HopJson(repair, hop));
    json["lanes"].push_back(lane_json);
  }
  json["expected_seconds"] = repair.cost.seconds;
  json["timeslots"] = repair.cost.timeslots;
  json["busiest_link_bytes"] = repair.cost.busiest_link_bytes;
  json["total_bytes"] = repair.cost.total_bytes;
  json["predictions"] = Json::array();
  for (const SchemePrediction& prediction : repair.predictions) {
    json["predictions"].push_back({{"scheme", prediction.scheme},
                                   {"expected_seconds", prediction.cost.seconds},
                                   {"timeslots", prediction.cost.timeslots},
                                   {"cross_rack_bytes", prediction.cost.cross_rack_bytes}});
  }
  json["nodes"] = Json::array();
  for (const NodeLoad& node : repair.cost.loads) {
    json["nodes"].push_back(
        {{"node", node.node}, {"up_bytes", node.up_bytes}, {"down_bytes", node.down_bytes}});
  }
  return json.dump(2) + "\n";
}

std::string PlanAsDot(const ExplainedRepair& repair) {
  std::string dot = "digraph repair {\n  rankdir=LR;\n  node [shape=box, fontname=\"sans\"];\n";
  dot += "  label=" + Quoted(repair.plan.scheme + ", stripe " + repair.stripe_id) + ";\n";
  for (size_t i = 0; i < repair.plan.lanes.size(); ++i) {
    const PlanLane& lane = repair.plan.lanes[i];
    const auto name = [&](size_t hop) {
      return "l" + std::to_string(i) + "h" + std::to_string(hop);
    };
    dot += "  subgraph cluster_" + std::to_string(i) +
           " {\n    label=" + Quoted(LaneTitle(repair.plan, i)) + ";\n";
    for (size_t hop = 0; hop < lane.hops.size(); ++hop) {
      const PlanHop& planned = lane.hops[hop];
      std::string label = planned.node;
      if (planned.block_index >= 0) label += "\n" + BlockName(repair, planned.block_index);
      std::string escaped;
      for (const char c : Quoted(label)) escaped += c == '\n' ? "\\n" : std::string(1, c);
      dot += "    " + name(hop) + " [label=" + escaped +
             (planned.stored_rows.empty() ? "" : ", style=bold") + "];\n";
      for (const PlanInput& input : planned.inputs) {
        dot += "    " + name(static_cast<size_t>(input.from_hop)) + " -> " + name(hop) + ";\n";
      }
    }
    dot += "  }\n";
  }
  return dot + "}\n";
}

}  // namespace ecpipe
