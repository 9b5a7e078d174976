// SPDX-License-Identifier: Apache-2.0
#include "coordinator/planning/plan_cost.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

#include "base/status.h"
#include "coordinator/planning/scheme.h"

namespace ecpipe {
namespace {

class Loads {
 public:
  NodeLoad& Of(const std::string& node) {
    const auto [found, added] = index_.try_emplace(node, loads_.size());
    if (added) loads_.push_back({.node = node});
    return loads_[found->second];
  }
  std::vector<NodeLoad> Take() { return std::move(loads_); }

 private:
  std::map<std::string, size_t> index_;
  std::vector<NodeLoad> loads_;
};

// Streams on the longest path that ends at each hop; the largest over the lane.
int LaneDepth(const PlanLane& lane) {
  std::vector<int> depth(lane.hops.size(), 0);
  int deepest = 0;
  for (size_t i = 0; i < lane.hops.size(); ++i) {
    for (const PlanInput& input : lane.hops[i].inputs) {
      const auto from = static_cast<size_t>(input.from_hop);
      const int cost = lane.hops[from].node == lane.hops[i].node ? 0 : 1;
      depth[i] = std::max(depth[i], depth[from] + cost);
    }
    deepest = std::max(deepest, depth[i]);
  }
  return deepest;
}

}  // namespace

uint64_t LaneBytes(const RepairPlan& plan, const PlanLane& lane) {
  uint64_t slices = lane.slices.count();
  uint64_t bytes = slices * plan.grid.slice_bytes;
  // Only the very last slice of the range can be short.
  const uint32_t last = plan.grid.slice_count() - 1;
  if (lane.slices.SliceIndex(lane.slices.count() - 1) == last) {
    bytes -= plan.grid.slice_bytes - plan.grid.SliceBytes(last);
  }
  return bytes;
}

PlanCost EstimateCost(const RepairPlan& plan, const ClusterView& cluster) {
  const Links links(cluster);
  PlanCost cost;
  Loads loads;
  Loads racks;
  std::map<std::pair<std::string, std::string>, uint64_t> pair_bytes;
  std::map<std::pair<std::string, std::string>, uint64_t> rack_pair_bytes;
  const uint64_t first_slice = std::min<uint64_t>(plan.grid.slice_bytes, plan.grid.bytes);
  double fill = 0;  // seconds until the first slice of every lane is on its last stream
  for (const PlanLane& lane : plan.lanes) {
    size_t widest = 1;  // rows on one stream
    double slowest = std::numeric_limits<double>::infinity();
    const uint64_t lane_bytes = LaneBytes(plan, lane);
    for (const PlanHop& hop : lane.hops) {
      loads.Of(hop.node);
      for (const PlanInput& input : hop.inputs) {
        const std::string& sender = lane.hops[static_cast<size_t>(input.from_hop)].node;
        if (sender == hop.node) continue;
        const uint64_t bytes = lane_bytes * input.rows.size();
        loads.Of(sender).up_bytes += bytes;
        loads.Of(hop.node).down_bytes += bytes;
        cost.total_bytes += bytes;
        if (links.CrossesRacks(sender, hop.node)) {
          cost.cross_rack_bytes += bytes;
          racks.Of(links.RackOf(sender)).up_bytes += bytes;
          racks.Of(links.RackOf(hop.node)).down_bytes += bytes;
          if (cluster.shared_by_racks != nullptr) {
            rack_pair_bytes[{links.RackOf(sender), links.RackOf(hop.node)}] += bytes;
          }
        }
        if (links.HavePairs()) pair_bytes[{sender, hop.node}] += bytes;
        widest = std::max(widest, input.rows.size());
        slowest = std::min(slowest, links.Between(sender, hop.node));
      }
    }
    const int depth = LaneDepth(lane);
    cost.depth = std::max(cost.depth, depth);
    fill = std::max(fill,
                    std::max(0, depth - 1) * static_cast<double>(first_slice * widest) / slowest);
  }
  cost.loads = loads.Take();
  const auto takes = [&](uint64_t bytes, double speed) {
    cost.seconds = std::max(cost.seconds, static_cast<double>(bytes) / speed);
  };
  for (const NodeLoad& load : cost.loads) {
    cost.busiest_link_bytes = std::max({cost.busiest_link_bytes, load.up_bytes, load.down_bytes});
    takes(load.up_bytes, links.Up(load.node));
    takes(load.down_bytes, links.Down(load.node));
  }
  if (cluster.rack_bytes_per_second > 0) {
    for (const NodeLoad& rack : racks.Take()) {
      takes(std::max(rack.up_bytes, rack.down_bytes), cluster.rack_bytes_per_second);
    }
  }
  for (const auto& [pair, bytes] : pair_bytes) takes(bytes, links.Between(pair.first, pair.second));
  for (const auto& [pair, bytes] : rack_pair_bytes) {
    const double shared = links.BetweenRacks(pair.first, pair.second);
    if (shared > 0) takes(bytes, shared);
  }
  cost.seconds += fill;
  const auto range_bytes = static_cast<double>(plan.grid.bytes * plan.layout.sub_blocks);
  cost.timeslots = cost.seconds / (range_bytes / cluster.default_bytes_per_second);
  return cost;
}

absl::StatusOr<RepairPlan> ChoosePlan(const PlanRequest& request) {
  if (request.scheme != "auto" && !request.scheme.empty()) return MakePlan(request);
  std::optional<RepairPlan> best;
  PlanCost best_cost;
  for (const std::string& scheme :
       SchemesWorthATry(request.cluster, request.equation.failed.size())) {
    PlanRequest candidate = request;
    candidate.scheme = scheme;
    ECPIPE_ASSIGN_OR_RETURN(RepairPlan plan, MakePlan(candidate));
    PlanCost cost = EstimateCost(plan, request.cluster);
    const auto rank = [](const PlanCost& of) {
      return std::tuple(of.seconds, of.cross_rack_bytes, of.total_bytes);
    };
    const bool better = !best || rank(cost) < rank(best_cost);
    if (!better) continue;
    best = std::move(plan);
    best_cost = std::move(cost);
  }
  return *std::move(best);
}

absl::StatusOr<std::vector<SchemePrediction>> PredictAll(const PlanRequest& request) {
  std::vector<SchemePrediction> predictions;
  for (const std::string& scheme : SchemesThatRepair()) {
    PlanRequest candidate = request;
    candidate.scheme = scheme;
    ECPIPE_ASSIGN_OR_RETURN(const RepairPlan plan, MakePlan(candidate));
    predictions.push_back({scheme, EstimateCost(plan, request.cluster)});
  }
  return predictions;
}

}  // namespace ecpipe
