// SPDX-License-Identifier: Apache-2.0
// Repair pipelining over all survivors at once, beyond the paper (the idea of FullRepair,
// CLUSTER'23): when the helpers' links and not the requestor's hold a repair up, every slice still
// takes k helpers, but not always the same ones.
//
// How much each helper does. Let helper i carry a share x_i <= 1 of the slices; its link of speed
// c_i is then busy for x_i B / c_i. Every slice needs k helpers, so the shares add up to k. The
// least time T for which that is possible solves sum of min(1, c_i T / B) = k: every helper either
// takes part in all slices or is busy until the end. No plan of any shape can be faster.
//
// Who works together. Write the shares one after the other round a circle of one block's length:
// they go round k times, so k different helpers cover each point (McNaughton's wrap-around rule,
// 1959). Between two ends of shares the set of helpers is the same: these at most n - 1 pieces are
// the lanes, each a path.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "coordinator/planning/plan_request.h"

namespace ecpipe {

struct SharedLane {
  uint32_t slices = 0;       // the number of slices; which ones is decided later
  std::vector<int> helpers;  // indices into `speeds`, k of them
};

// Speeds are greater than 0, in any unit; 1 <= k <= speeds.size(). The lanes' slices add up to
// slice_count; whole slices make the shares inexact by less than one slice.
std::vector<SharedLane> ShareSlices(const std::vector<double>& speeds, int k, uint32_t slice_count);

// Puts the helpers of a lane, which are block indices, in the order of its path.
using OrderHelpers = std::function<void(size_t lane, std::vector<int>* helpers)>;

// The lanes of ShareSlices, with the links of the survivors' nodes as speeds. Empty: there is no
// choice of helpers, or the code cannot use those of a lane.
PlanLanes LanesOverAllSurvivors(const PlanRequest& request, const OrderHelpers& order);

}  // namespace ecpipe
