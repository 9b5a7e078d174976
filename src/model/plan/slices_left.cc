// SPDX-License-Identifier: Apache-2.0
#include "model/plan/slices_left.h"

#include <algorithm>
#include <utility>

#include "base/status.h"

namespace ecpipe {
namespace {

// `total` divided in the ratio of the slices of lanes, by largest remainders.
std::vector<uint32_t> Shares(const std::vector<PlanLane>& lanes, uint64_t total) {
  uint64_t of_all = 0;
  for (const PlanLane& lane : lanes) of_all += lane.slices.count();
  std::vector<uint32_t> shares;
  std::vector<std::pair<uint64_t, size_t>> remainders;
  uint64_t left = total;
  for (size_t i = 0; i < lanes.size(); ++i) {
    const uint64_t product = total * lanes[i].slices.count();
    shares.push_back(static_cast<uint32_t>(product / of_all));
    left -= shares.back();
    remainders.emplace_back(product % of_all, i);
  }
  std::stable_sort(remainders.begin(), remainders.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  for (size_t i = 0; i < left; ++i) ++shares[remainders[i].second];
  return shares;
}

// The slices at these places among the missing ones.
std::vector<SliceRun> AtPlaces(const std::vector<SliceRun>& places,
                               const std::vector<SliceRun>& missing) {
  std::vector<SliceRun> runs;
  size_t hole = 0;
  uint32_t before = 0;  // missing slices before the hole
  for (SliceRun place : places) {
    while (place.count > 0) {
      while (place.first >= before + missing[hole].count) before += missing[hole++].count;
      const uint32_t skipped = place.first - before;
      const uint32_t count = std::min(place.count, missing[hole].count - skipped);
      const uint32_t first = missing[hole].first + skipped;
      if (!runs.empty() && runs.back().first + runs.back().count == first) {
        runs.back().count += count;
      } else {
        runs.push_back({first, count, 1});
      }
      place.first += count;
      place.count -= count;
    }
  }
  return runs;
}

}  // namespace

absl::Status SlicesLeft::Validate() const {
  ECPIPE_RETURN_IF_ERROR(grid.Validate());
  if (std::any_of(missing.begin(), missing.end(),
                  [](const SliceRun& run) { return run.stride != 1; })) {
    return absl::InvalidArgumentError("a run of missing slices must have stride 1");
  }
  return LaneSlices::Create(missing, grid.slice_count()).status();
}

uint64_t SlicesLeft::bytes() const {
  uint64_t bytes = 0;
  for (const SliceRun& run : missing) {
    const uint32_t last = run.first + run.count - 1;
    bytes += grid.SliceOffset(last) + grid.SliceBytes(last) - grid.SliceOffset(run.first);
  }
  return bytes;
}

absl::Status KeepMissing(const SlicesLeft& left, RepairPlan* plan) {
  if (plan->grid != left.grid) {
    return absl::InternalError(
        "the plan cuts the block into other slices than the attempt before it");
  }
  uint32_t slices = 0;
  for (const SliceRun& run : left.missing) slices += run.count;
  std::vector<uint32_t> shares = Shares(plan->lanes, slices);
  std::vector<PlanLane> lanes;
  for (size_t i = 0; i < shares.size(); ++i) {
    if (shares[i] > 0) lanes.push_back(std::move(plan->lanes[i]));
  }
  std::erase(shares, 0u);
  const std::vector<LaneSlices> places = Interleaved(shares, slices);
  for (size_t i = 0; i < lanes.size(); ++i) {
    ECPIPE_ASSIGN_OR_RETURN(
        lanes[i].slices,
        LaneSlices::Create(AtPlaces(places[i].runs(), left.missing), plan->grid.slice_count()));
  }
  plan->lanes = std::move(lanes);
  return absl::OkStatus();
}

}  // namespace ecpipe
