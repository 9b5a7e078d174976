// SPDX-License-Identifier: Apache-2.0
#include "coordinator/planning/plan_cost.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "base/status.h"
#include "coordinator/planning/scheme.h"

namespace ecpipe {
namespace {

// The nodes of a plan by number, in the order in which they come.
class NodeNumbers {
 public:
  explicit NodeNumbers(const Links& links) : links_(links) {}

  // The name must outlive this.
  size_t Of(const std::string& node) {
    const auto [found, added] = numbers_.try_emplace(node, ends_.size());
    if (added) {
      ends_.push_back(links_.At(node));
      loads_.push_back({.node = node});
    }
    return found->second;
  }
  const Links::End& end(size_t number) const { return ends_[number]; }
  NodeLoad& load(size_t number) { return loads_[number]; }
  std::vector<NodeLoad> TakeLoads() { return std::move(loads_); }

 private:
  const Links& links_;
  std::unordered_map<std::string_view, size_t> numbers_;
  std::vector<Links::End> ends_;
  std::vector<NodeLoad> loads_;
};

// Bytes that leave racks and enter them.
struct RackLoads {
  struct Load {
    uint64_t up_bytes = 0;
    uint64_t down_bytes = 0;
  };

  void Add(const std::string& from, const std::string& to, uint64_t bytes) {
    of_rack[from].up_bytes += bytes;
    of_rack[to].down_bytes += bytes;
    of_pair[{from, to}] += bytes;
  }

  std::map<std::string, Load> of_rack;
  std::map<std::pair<std::string, std::string>, uint64_t> of_pair;
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
  NodeNumbers nodes(links);
  const bool have_pairs = HavePairs(cluster);
  RackLoads racks;
  std::map<std::pair<size_t, size_t>, uint64_t> pair_bytes;
  const uint64_t first_slice = std::min<uint64_t>(plan.grid.slice_bytes, plan.grid.bytes);
  double fill = 0;  // seconds until the first slice of every lane is on its last stream
  for (const PlanLane& lane : plan.lanes) {
    size_t widest = 1;  // rows on one stream
    double slowest = std::numeric_limits<double>::infinity();
    const uint64_t lane_bytes = LaneBytes(plan, lane);
    std::vector<size_t> numbers;
    for (const PlanHop& hop : lane.hops) {
      numbers.push_back(nodes.Of(hop.node));
      const size_t receiver = numbers.back();
      for (const PlanInput& input : hop.inputs) {
        const size_t sender = numbers[static_cast<size_t>(input.from_hop)];
        if (sender == receiver) continue;
        const uint64_t bytes = lane_bytes * input.rows.size();
        nodes.load(sender).up_bytes += bytes;
        nodes.load(receiver).down_bytes += bytes;
        cost.total_bytes += bytes;
        const Links::End& from = nodes.end(sender);
        const Links::End& to = nodes.end(receiver);
        if (Links::CrossesRacks(from, to)) {
          cost.cross_rack_bytes += bytes;
          racks.Add(from.rack(), to.rack(), bytes);
        }
        if (have_pairs) pair_bytes[{sender, receiver}] += bytes;
        widest = std::max(widest, input.rows.size());
        slowest = std::min(slowest, links.Between(from, to));
      }
    }
    const int depth = LaneDepth(lane);
    cost.depth = std::max(cost.depth, depth);
    fill = std::max(fill,
                    std::max(0, depth - 1) * static_cast<double>(first_slice * widest) / slowest);
  }
  const auto takes = [&](uint64_t bytes, double speed) {
    cost.seconds = std::max(cost.seconds, static_cast<double>(bytes) / speed);
  };
  for (const auto& [pair, bytes] : pair_bytes) {
    takes(bytes, links.Between(nodes.end(pair.first), nodes.end(pair.second)));
  }
  cost.loads = nodes.TakeLoads();
  for (size_t i = 0; i < cost.loads.size(); ++i) {
    const NodeLoad& load = cost.loads[i];
    cost.busiest_link_bytes = std::max({cost.busiest_link_bytes, load.up_bytes, load.down_bytes});
    takes(load.up_bytes, nodes.end(i).up());
    takes(load.down_bytes, nodes.end(i).down());
  }
  if (cluster.rack_bytes_per_second > 0) {
    for (const auto& [rack, load] : racks.of_rack) {
      takes(std::max(load.up_bytes, load.down_bytes), cluster.rack_bytes_per_second);
    }
  }
  for (const auto& [pair, bytes] : racks.of_pair) {
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
