// SPDX-License-Identifier: Apache-2.0
#include "coordinator/planning/lane_watch.h"

#include <algorithm>

#include "coordinator/planning/plan_cost.h"
#include "coordinator/planning/scheme.h"

namespace ecpipe {
namespace {

// A link that holds lanes up is in use for most of the time...
constexpr double kHeldShare = 0.3;
// ...and passes this many times less than the plan counted on.
constexpr double kTimesBehindPlan = 1.5;
// It tells if so much of it was to pass since the look before: sockets take less than that ahead.
constexpr double kLeastPlannedBytes = 256u << 10;
// Of a link that passes nothing: no lane of use has it.
constexpr double kDeadBytesPerSecond = 1;

using NodePair = std::pair<std::string, std::string>;

// All streams between two nodes, or of one node's link.
struct Flow {
  double planned = 0;  // bytes since the look before
  double passed = 0;
  double held_share = 0;  // of the time, of the stream that was held up longest
  int slow = 0;           // pairs of the node's link that are slow
  int telling = 0;        // pairs that tell whether they are

  void Add(const Flow& other) {
    planned += other.planned;
    passed += other.passed;
    held_share = std::max(held_share, other.held_share);
  }
  bool Tells() const { return held_share >= kHeldShare && planned >= kLeastPlannedBytes; }
  bool IsSlow() const { return Tells() && passed / held_share * kTimesBehindPlan < planned; }
  double Rate(double seconds) const {
    return std::max(passed / (held_share * seconds), kDeadBytesPerSecond);
  }
};

double SecondsLeft(const WatchedLanes::Lane& lane, double done, double done_before,
                   double seconds) {
  // Of a lane on which nothing came, a slice may be about to.
  const double least = 1.0 / std::max(1u, lane.slices);
  const double gained = done > done_before ? done - done_before : least;
  return (1 - done) / gained * seconds;
}

// The node's link, if all pairs that tell of it are slow, and there are several.
bool IsLinkOfNode(const Flow& of_node) {
  return of_node.slow > 1 && of_node.slow == of_node.telling;
}

SeenLinks Slower(const std::map<NodePair, Flow>& pairs, double seconds) {
  std::map<std::string, Flow> out;
  std::map<std::string, Flow> in;
  const auto count = [](const Flow& pair, Flow* node) {
    node->Add(pair);
    node->slow += pair.IsSlow() ? 1 : 0;
    node->telling += pair.Tells() ? 1 : 0;
  };
  for (const auto& [ends, pair] : pairs) {
    count(pair, &out[ends.first]);
    count(pair, &in[ends.second]);
  }
  SeenLinks seen;
  for (const auto& [ends, pair] : pairs) {
    if (!pair.IsSlow()) continue;
    const auto& [from, to] = ends;
    if (IsLinkOfNode(out[from])) {
      seen.up[from] = out[from].Rate(seconds);
    } else if (IsLinkOfNode(in[to])) {
      seen.down[to] = in[to].Rate(seconds);
    } else {
      seen.pairs[ends] = pair.Rate(seconds);
    }
  }
  return seen;
}

}  // namespace

WatchedLanes LanesToWatch(const RepairPlan& plan, double seconds) {
  WatchedLanes watched;
  const Scheme* const scheme = FindScheme(plan.scheme);
  if (scheme == nullptr || !scheme->weighs_lanes || plan.lanes.size() < 2) return watched;
  watched.seconds = seconds;
  for (const PlanLane& lane : plan.lanes) {
    WatchedLanes::Lane& to_watch = watched.lanes.emplace_back();
    to_watch.slices = lane.slices.count();
    const uint64_t row_bytes = LaneBytes(plan, lane);
    for (const PlanHop& hop : lane.hops) {
      for (const PlanInput& input : hop.inputs) {
        const std::string& from = lane.hops[static_cast<size_t>(input.from_hop)].node;
        if (from == hop.node) continue;
        to_watch.streams.push_back({from, hop.node, row_bytes * input.rows.size()});
      }
    }
  }
  return watched;
}

LaneLook LookAtLanes(const WatchedLanes& plan, const std::vector<StreamPassed>& streams,
                     double seconds) {
  LaneLook look;
  if (seconds <= 0 || plan.seconds <= 0) return look;
  struct Done {
    double now = 1;
    double before = 1;
  };
  std::vector<Done> done(plan.lanes.size());
  std::map<NodePair, Flow> pairs;
  for (const StreamPassed& passed : streams) {
    if (passed.lane >= plan.lanes.size()) continue;
    for (const WatchedLanes::Stream& stream : plan.lanes[passed.lane].streams) {
      if (stream.from != passed.from || stream.to != passed.to || stream.bytes == 0) continue;
      const auto bytes = static_cast<double>(stream.bytes);
      Done& lane = done[passed.lane];
      lane.now = std::min(lane.now, static_cast<double>(passed.bytes) / bytes);
      lane.before =
          std::min(lane.before, static_cast<double>(passed.bytes - passed.since_look) / bytes);
      pairs[{passed.from, passed.to}].Add({.planned = bytes / plan.seconds * seconds,
                                           .passed = static_cast<double>(passed.since_look),
                                           .held_share = passed.held_seconds / seconds});
    }
  }
  for (size_t i = 0; i < done.size(); ++i) {
    look.seconds_left = std::max(look.seconds_left,
                                 SecondsLeft(plan.lanes[i], done[i].now, done[i].before, seconds));
  }
  look.slower = Slower(pairs, seconds);
  return look;
}

}  // namespace ecpipe
