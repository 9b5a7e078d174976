// SPDX-License-Identifier: Apache-2.0
// For f > 1 failed blocks: a path f rows wide for a share of the slices, and for the rest stars
// into each of the requestors in turn, both at once. The path loads helpers' links and the stars
// the requestors'. With f requestors 1 + (f - 1)(k - 1) / (k - 1 + f(f - 1)) timeslots: 2.29 for
// (14, 10) and f = 4, where a path takes 4. docs/design/002-schemes.md has the derivation. With one
// requestor it is a path.
#include <algorithm>
#include <cmath>

#include "coordinator/planning/lanes.h"
#include "coordinator/planning/scheme.h"

namespace ecpipe::schemes {
namespace {

// The share of the slices that takes the path; docs/design/004-several-blocks.md.
double PathShare(const PlanRequest& request, const std::vector<Taker>& takers) {
  const auto k = static_cast<double>(request.equation.terms.size());
  const auto f = static_cast<double>(request.equation.rows() / request.equation.layout.sub_blocks);
  const auto g = static_cast<double>(takers.size());
  // Blocks of the requestor that takes the most.
  const auto fewer = [](const Taker& a, const Taker& b) { return a.rows.size() < b.rows.size(); };
  const Taker& most = *std::max_element(takers.begin(), takers.end(), fewer);
  const auto m = static_cast<double>(most.rows.size() / request.equation.layout.sub_blocks);
  const double as_centre = (k + m * (g - 1)) / g;
  return as_centre <= 1 ? 1 : (as_centre - 1) / (as_centre - 1 + f - m);
}

absl::StatusOr<PlanLanes> PlanMixed(const PlanRequest& request) {
  const uint32_t slices = request.grid.slice_count();
  const std::vector<Taker> takers = Takers(request);
  const double path_share = PathShare(request, takers);
  std::vector<uint32_t> counts;
  PlanLanes lanes;
  const auto add = [&](PlanLane lane, uint32_t count) {
    if (count == 0) return;
    lanes.push_back(std::move(lane));
    counts.push_back(count);
  };
  const auto on_path = static_cast<uint32_t>(std::lround(path_share * slices));
  add(PathLane(request, request.equation.terms), on_path);
  const uint32_t in_stars = slices - on_path;
  for (uint64_t i = 0; i < takers.size(); ++i) {
    const uint64_t before = in_stars * i / takers.size();
    const uint64_t after = in_stars * (i + 1) / takers.size();
    add(StarLane(request, takers[i]), static_cast<uint32_t>(after - before));
  }
  const std::vector<LaneSlices> whose = Interleaved(counts, slices);
  for (size_t i = 0; i < lanes.size(); ++i) lanes[i].slices = whose[i];
  return lanes;
}

}  // namespace

extern const Scheme mixed = {
    .name = "mixed",
    .help = "a path and stars at once; for several lost blocks of a stripe",
    .timeslots = "1 + (f-1)(k-1)/(k-1+f(f-1))",
    .source = "beyond the paper",
    .looks_at = {.several_blocks = true},
    .rank = 60,
    .plan = PlanMixed};

}  // namespace ecpipe::schemes
