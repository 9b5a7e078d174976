// SPDX-License-Identifier: Apache-2.0
#include "coordinator/planning/all_survivors.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/check.h"
#include "coordinator/planning/lanes.h"

namespace ecpipe {
namespace {

// The shares, in blocks: min(1, c_i T) with the T for which they add up to k.
std::vector<double> Shares(const std::vector<double>& speeds, int k) {
  std::vector<double> descending = speeds;
  std::sort(descending.begin(), descending.end(), std::greater<>());
  // With the `full` fastest taking part in all slices, the others must make up the rest.
  double rest = std::accumulate(descending.begin(), descending.end(), 0.0);
  double time = 0;
  for (int full = 0; full <= k; ++full) {
    time = rest > 0 ? (k - full) / rest : 0;
    const size_t next = static_cast<size_t>(full);
    if (next == descending.size() || descending[next] * time <= 1) break;
    rest -= descending[next];
  }
  // Those that were counted as full reach 1 before `time` or at it.
  std::vector<double> shares;
  for (const double speed : speeds) shares.push_back(std::min(1.0, speed * time));
  return shares;
}

// Whole slices, none more than slice_count, k * slice_count in all.
std::vector<uint32_t> WholeSlices(const std::vector<double>& shares, int k, uint32_t slice_count) {
  std::vector<uint32_t> whole;
  std::vector<std::pair<double, size_t>> fractions;
  uint64_t missing = static_cast<uint64_t>(k) * slice_count;
  for (size_t i = 0; i < shares.size(); ++i) {
    const double exact = shares[i] * slice_count;
    const auto floor = std::min(slice_count, static_cast<uint32_t>(exact));
    whole.push_back(floor);
    fractions.push_back({std::floor(exact) - exact, i});
    missing -= std::min<uint64_t>(missing, floor);
  }
  std::sort(fractions.begin(), fractions.end());
  while (missing > 0) {
    const uint64_t before = missing;
    for (const auto& [fraction, i] : fractions) {
      if (missing == 0 || whole[i] == slice_count) continue;
      ++whole[i];
      --missing;
    }
    ECPIPE_CHECK(missing < before);
  }
  return whole;
}

}  // namespace

std::vector<SharedLane> ShareSlices(const std::vector<double>& speeds, int k,
                                    uint32_t slice_count) {
  ECPIPE_CHECK(1 <= k && static_cast<size_t>(k) <= speeds.size() && slice_count > 0);
  const std::vector<uint32_t> slices = WholeSlices(Shares(speeds, k), k, slice_count);
  // Helper i covers [begin[i], begin[i] + slices[i]) on a circle of slice_count.
  std::vector<uint32_t> begin;
  std::set<uint32_t> cuts = {0};
  uint64_t at = 0;
  for (const uint32_t length : slices) {
    begin.push_back(static_cast<uint32_t>(at % slice_count));
    cuts.insert(begin.back());
    at += length;
  }
  std::vector<SharedLane> lanes;
  for (auto cut = cuts.begin(); cut != cuts.end(); ++cut) {
    const auto end = std::next(cut) == cuts.end() ? slice_count : *std::next(cut);
    SharedLane& lane = lanes.emplace_back();
    lane.slices = end - *cut;
    for (size_t i = 0; i < slices.size(); ++i) {
      const uint32_t into = (*cut + slice_count - begin[i]) % slice_count;
      if (into < slices[i]) lane.helpers.push_back(static_cast<int>(i));
    }
    ECPIPE_CHECK(lane.helpers.size() == static_cast<size_t>(k));
  }
  return lanes;
}

PlanLanes LanesOverAllSurvivors(const PlanRequest& request, const OrderHelpers& order) {
  const RepairEquation& base = request.equation;
  const auto k = static_cast<int>(base.terms.size());
  if (request.code == nullptr || static_cast<int>(request.survivors.size()) <= k) return {};
  const Links links(request.cluster);
  std::vector<double> speeds;
  for (const int block : request.survivors) {
    const Links::End node = links.At(request.block_nodes[static_cast<size_t>(block)]);
    speeds.push_back(std::min(node.up(), node.down()));
  }
  std::vector<LaneOverBlocks> lanes;
  for (const SharedLane& shared : ShareSlices(speeds, k, request.grid.slice_count())) {
    LaneOverBlocks lane{{}, shared.slices};
    for (const int helper : shared.helpers) {
      lane.blocks.push_back(request.survivors[static_cast<size_t>(helper)]);
    }
    order(lanes.size(), &lane.blocks);
    lanes.push_back(std::move(lane));
  }
  return LanesOverBlocks(request, lanes);
}

}  // namespace ecpipe
